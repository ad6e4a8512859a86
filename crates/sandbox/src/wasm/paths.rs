//! The WASI functions over paths.

use std::collections::BTreeMap;
use std::sync::Arc;

use wasmtime::Linker;

use super::descriptors::describe;
use super::files::{Errno, Inode, Node, ROOT, TEMPORARY, WORK};
use super::host::{Host, WASI, wasi};
use super::open::{Area, Open, OpenFile};

const CREATE: u32 = 1;
const FOLDER_ONLY: u32 = 2;
const EXCLUSIVE: u32 = 4;
const TRUNCATE: u32 = 8;
const APPEND: u32 = 1;
const RIGHT_TO_WRITE: u64 = 1 << 6;
/// Longest name of one file, as on most systems.
const LONGEST_NAME: usize = 255;

pub fn link(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    wasi! { linker, "path_open", |guest, fd: u32, _: u32, path: u32, length: u32, how: u32,
        rights: u64, _: u64, flags: u32, at: u32| {
        let path = guest.path(path, length)?;
        let writes = rights & RIGHT_TO_WRITE != 0;
        let wanted = OpenMode { how, writes, appends: flags & APPEND != 0 };
        let opened = open(guest.host, fd, &path, &wanted)?;
        guest.put_u32(at, opened)
    } }
    wasi! { linker, "path_filestat_get", |guest, fd: u32, _: u32, path: u32, length: u32, at: u32| {
        let path = guest.path(path, length)?;
        let inode = find(guest.host, fd, &path)?.existing(guest.host)?;
        describe(guest, Some(inode), at)
    } }
    wasi!(linker, "path_create_directory", |guest, fd: u32, path: u32, length: u32| {
        let path = guest.path(path, length)?;
        let place = writable(guest.host, fd, &path)?;
        let folder = Node::Folder(BTreeMap::new());
        guest.host.files.make(place.folder, &place.name, folder).map(drop)
    });
    wasi!(linker, "path_remove_directory", |guest, fd: u32, path: u32, length: u32| {
        let path = guest.path(path, length)?;
        let place = writable(guest.host, fd, &path)?;
        guest.host.files.remove(place.folder, &place.name, true)
    });
    wasi!(linker, "path_unlink_file", |guest, fd: u32, path: u32, length: u32| {
        let path = guest.path(path, length)?;
        let place = writable(guest.host, fd, &path)?;
        guest.host.files.remove(place.folder, &place.name, false)
    });
    wasi! { linker, "path_rename", |guest, fd: u32, old: u32, old_length: u32, to: u32, new: u32,
        length: u32| {
        let old = guest.path(old, old_length)?;
        let new = guest.path(new, length)?;
        let from = writable(guest.host, fd, &old)?;
        let to = writable(guest.host, to, &new)?;
        guest.host.files.rename((from.folder, &from.name), (to.folder, &to.name))
    } }
    let set_times = |_: u32, _: u32, _: u32, _: u32, _: u64, _: u64, _: u32| 0_u32;
    linker.func_wrap(WASI, "path_filestat_set_times", set_times)?;
    let refused = Errno::NotSupported as u32;
    let link = move |_: u32, _: u32, _: u32, _: u32, _: u32, _: u32, _: u32| refused;
    linker.func_wrap(WASI, "path_link", link)?;
    let symlink = move |_: u32, _: u32, _: u32, _: u32, _: u32| refused;
    linker.func_wrap(WASI, "path_symlink", symlink)?;
    // There are no links.
    let readlink = |_: u32, _: u32, _: u32, _: u32, _: u32, _: u32| Errno::Invalid as u32;
    linker.func_wrap(WASI, "path_readlink", readlink)?;
    Ok(())
}

struct PathTarget {
    folder: Inode,
    /// Empty if the path names the folder.
    name: String,
    area: Area,
}

impl PathTarget {
    fn existing(&self, host: &Host) -> Result<Inode, Errno> {
        if self.name.is_empty() {
            Ok(self.folder)
        } else {
            host.files.child(self.folder, &self.name)
        }
    }
}

struct OpenMode {
    how: u32,
    writes: bool,
    appends: bool,
}

fn find(host: &Host, fd: u32, path: &str) -> Result<PathTarget, Errno> {
    let Open::Folder { inode, area } = host.open.get(fd)? else { return Err(Errno::NotFolder) };
    let mut steps = vec![(*inode, *area)];
    let mut parts = path.split('/').filter(|part| !part.is_empty() && *part != ".").peekable();
    while let Some(part) = parts.next() {
        let (folder, area) = steps.last().copied().unwrap_or((ROOT, Area::Fixed));
        if part == ".." {
            match steps.len() {
                // The parent of the root is the root; the parent of an open folder is not accessible.
                1 if folder != ROOT => return Err(Errno::Access),
                1 => {}
                _ => drop(steps.pop()),
            }
            continue;
        }
        if part.len() > LONGEST_NAME {
            return Err(Errno::NameTooLong);
        }
        let is_scratch = folder == ROOT && (part == WORK || part == TEMPORARY);
        let inside = if is_scratch { Area::Scratch } else { area };
        let is_last = parts.peek().is_none();
        match host.files.child(folder, part) {
            Ok(child) if matches!(host.files.node(child)?, Node::Folder(_)) && !is_last => {
                steps.push((child, inside))
            }
            Ok(_) | Err(_) if is_last => {
                return Ok(PathTarget { folder, name: part.to_owned(), area });
            }
            Ok(_) => return Err(Errno::NotFolder),
            Err(errno) => return Err(errno),
        }
    }
    let (folder, area) = steps.last().copied().unwrap_or((ROOT, Area::Fixed));
    Ok(PathTarget { folder, name: String::new(), area })
}

fn writable(host: &mut Host, fd: u32, path: &str) -> Result<PathTarget, Errno> {
    let place = find(host, fd, path)?;
    if place.area == Area::Scratch && !place.name.is_empty() {
        return Ok(place);
    }
    Err(refuse(host, path))
}

/// Refuses a path outside the scratch folders, and notes it.
fn refuse(host: &mut Host, path: &str) -> Errno {
    let shown: String = path.chars().take(200).collect();
    host.violation = Some(format!(
        "the sandbox has no files but its scratch folder: /{}",
        shown.trim_start_matches('/')
    ));
    Errno::Access
}

fn open(host: &mut Host, fd: u32, path: &str, wanted: &OpenMode) -> Result<u32, Errno> {
    let place = match find(host, fd, path) {
        Ok(place) => place,
        // The guest sees no file of the host.
        Err(Errno::NoEntry | Errno::NotFolder) if !is_scratch_path(path) => {
            return Err(refuse(host, path));
        }
        Err(errno) => return Err(errno),
    };
    let existing = place.existing(host);
    let is_report = existing.is_ok_and(|inode| host.files.is_report(inode));
    let may_write = is_report || place.area == Area::Scratch;
    let inode = match existing {
        Ok(_) if wanted.how & EXCLUSIVE != 0 && wanted.how & CREATE != 0 => {
            return Err(Errno::Exists);
        }
        Ok(inode) => inode,
        Err(Errno::NoEntry) if wanted.how & CREATE != 0 && may_write => {
            host.files.make(place.folder, &place.name, Node::Data(Arc::default()))?
        }
        Err(Errno::NoEntry) if place.area != Area::Scratch => return Err(refuse(host, path)),
        Err(errno) => return Err(errno),
    };
    if matches!(host.files.node(inode)?, Node::Folder(_)) {
        let is_scratch = place.folder == ROOT && (place.name == WORK || place.name == TEMPORARY);
        let area = if is_scratch { Area::Scratch } else { place.area };
        return host.open.add(Open::Folder { inode, area });
    }
    if wanted.how & FOLDER_ONLY != 0 {
        return Err(Errno::NotFolder);
    }
    let changes = wanted.how & TRUNCATE != 0 || wanted.appends;
    // Opening asks for every right there might be; only a wish to change is refused here, the write itself by the open file.
    if changes && !may_write {
        return Err(refuse(host, path));
    }
    if wanted.how & TRUNCATE != 0 {
        host.files.resize(inode, 0)?;
    }
    let file = OpenFile {
        inode,
        offset: 0,
        appends: wanted.appends,
        may_write: may_write && wanted.writes,
    };
    let opened = host.open.add(Open::File(file))?;
    host.files.open(inode);
    Ok(opened)
}

fn is_scratch_path(path: &str) -> bool {
    let mut steps: Vec<&str> = Vec::new();
    for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part == ".." {
            steps.pop();
        } else {
            steps.push(part);
        }
    }
    steps.first().is_some_and(|top| *top == WORK || *top == TEMPORARY)
}
