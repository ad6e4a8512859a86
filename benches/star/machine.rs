//! What the machine says about itself and this process.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::process::Command;

use perihelion::clock;

use crate::figures::{median, rounded};

/// Returns where temporary data goes: `BENCH_TMP`, best on the database's disk.
pub fn scratch() -> std::path::PathBuf {
    std::env::var_os("BENCH_TMP").map_or_else(std::env::temp_dir, Into::into)
}

/// Returns the median time of writing and flushing 8 KiB here and now, in µs.
///
/// A durable step contains such a flush, and a shared disk's can change twentyfold between two runs.
pub fn fsync_probe() -> anyhow::Result<f64> {
    let mut file: File = tempfile::tempfile_in(scratch())?;
    let block = [b'x'; 8192];
    let mut times = Vec::with_capacity(40);
    for _ in 0..40 {
        let begin = clock::monotonic();
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&block)?;
        file.sync_data()?;
        times.push(begin.elapsed().as_secs_f64() * 1e6);
    }
    Ok(rounded(median(&mut times), 1))
}

/// Returns the highest resident size of this process so far, in MiB; `None` where `/proc` is missing.
pub fn peak_memory() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(rounded(kibibytes / 1024.0, 1))
}

/// Returns user and system time of this process so far, in seconds; `None` where `/proc` is missing.
pub fn cpu_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    // Linux counts in hundredths of a second for programs, whatever its own tick.
    Some((user + system) / 100.0)
}

/// Returns the mean number of running processes over the last minute.
pub fn load() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// Returns the commit that the repository stands at, with `-dirty` where files differ from it; `None` without git.
pub fn commit() -> Option<String> {
    let mut git = Command::new("git");
    git.args(["-C", env!("CARGO_MANIFEST_DIR"), "describe", "--always", "--dirty", "--exclude=*"]);
    let output = git.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}

/// Returns what the figures were taken on.
pub fn name() -> String {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name").and_then(|rest| rest.split_once(':')))
        .map_or("unknown processor", |(_, model)| model.trim());
    let system = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{processors} × {model}, {} {}", std::env::consts::OS, system.trim())
}
