//! A small disk of its own that can be filled: a tmpfs, where this user may mount one.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A mounted file system; unmounted with this value.
#[derive(Debug)]
pub struct Disk {
    pub path: PathBuf,
}

impl Disk {
    /// Mounts a disk of so many MiB at `directory`; `None` where this user may not.
    pub fn mount(directory: &Path, mib: u64) -> Option<Self> {
        std::fs::create_dir_all(directory).unwrap();
        let size = format!("size={mib}m,mode=1777");
        let status = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
            .arg(directory)
            .status();
        status.is_ok_and(|status| status.success()).then(|| Self { path: directory.to_owned() })
    }

    /// Takes all the space there is.
    pub fn fill(&self) {
        let mut ballast =
            OpenOptions::new().create(true).append(true).open(self.ballast()).unwrap();
        for size in [1 << 20, 4096, 1] {
            let block = vec![1; size];
            while ballast.write(&block).is_ok_and(|written| written == size) {}
        }
    }

    /// Gives it back.
    pub fn free(&self) {
        File::create(self.ballast()).unwrap();
    }

    fn ballast(&self) -> PathBuf {
        self.path.join("ballast")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.path).status();
    }
}
