//! The WASI functions for open descriptors.

use wasmtime::Linker;

use super::files::{Errno, Inode, Node};
use super::guest::Guest;
use super::host::{Host, WASI, wasi};
use super::open::Open;

const CHARACTER_DEVICE: u8 = 2;
const FOLDER: u8 = 3;
const REGULAR_FILE: u8 = 4;

pub fn link(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    wasi!(linker, "fd_read", |guest, fd: u32, list: u32, n: u32, done: u32| {
        read(guest, fd, (list, n), None, done)
    });
    wasi!(linker, "fd_pread", |guest, fd: u32, list: u32, n: u32, offset: u64, done: u32| {
        read(guest, fd, (list, n), Some(offset), done)
    });
    wasi!(linker, "fd_write", |guest, fd: u32, list: u32, n: u32, done: u32| {
        write(guest, fd, (list, n), None, done)
    });
    wasi!(linker, "fd_pwrite", |guest, fd: u32, list: u32, n: u32, offset: u64, done: u32| {
        write(guest, fd, (list, n), Some(offset), done)
    });
    wasi!(linker, "fd_seek", |guest, fd: u32, by: i64, from: u32, at: u32| {
        seek(guest, fd, by, from, at)
    });
    wasi!(linker, "fd_tell", |guest, fd: u32, at: u32| seek(guest, fd, 0, 1, at));
    wasi!(linker, "fd_close", |guest, fd: u32| {
        if let Open::File(file) = guest.host.open.close(fd)? {
            guest.host.files.close(file.inode);
        }
        Ok(())
    });
    wasi!(linker, "fd_readdir", |guest, fd: u32, at: u32, size: u32, cookie: u64, used: u32| {
        list(guest, fd, (at, size), cookie, used)
    });
    wasi!(linker, "fd_filestat_set_size", |guest, fd: u32, size: u64| {
        resize(guest.host, fd, size)
    });
    wasi!(linker, "fd_fdstat_get", |guest, fd: u32, at: u32| {
        let kind = match guest.host.open.get(fd)? {
            Open::Input | Open::Output => 0,
            Open::Folder { .. } => FOLDER,
            Open::File(_) => REGULAR_FILE,
        };
        guest.put(at, &numbers([kind.into(), u64::MAX, u64::MAX]))
    });
    wasi!(linker, "fd_filestat_get", |guest, fd: u32, at: u32| {
        let inode = match guest.host.open.get(fd)? {
            Open::Input | Open::Output => None,
            Open::Folder { inode, .. } => Some(*inode),
            Open::File(file) => Some(file.inode),
        };
        describe(guest, inode, at)
    });
    wasi!(linker, "fd_prestat_get", |guest, fd: u32, at: u32| {
        if fd != 3 {
            return Err(Errno::BadFile);
        }
        guest.put_u32(at, 0)?;
        guest.put_u32(at.saturating_add(4), 1)
    });
    wasi!(linker, "fd_prestat_dir_name", |guest, fd: u32, at: u32, size: u32| {
        if fd != 3 || size < 1 {
            return Err(Errno::BadFile);
        }
        guest.put(at, b"/")
    });
    linker.func_wrap(WASI, "fd_filestat_set_times", |_: u32, _: u64, _: u64, _: u32| 0_u32)?;
    linker.func_wrap(WASI, "fd_fdstat_set_flags", |_: u32, _: u32| 0_u32)?;
    linker.func_wrap(WASI, "fd_advise", |_: u32, _: u64, _: u64, _: u32| 0_u32)?;
    linker.func_wrap(WASI, "fd_datasync", |_: u32| 0_u32)?;
    linker.func_wrap(WASI, "fd_sync", |_: u32| 0_u32)?;
    Ok(())
}

/// Writes the metadata of a node; a stream has none.
pub fn describe(guest: &mut Guest<'_>, inode: Option<Inode>, at: u32) -> Result<(), Errno> {
    let (kind, size) = match inode {
        None => (CHARACTER_DEVICE, 0),
        Some(inode) => match guest.host.files.node(inode)? {
            Node::Folder(_) => (FOLDER, 0),
            _ => (REGULAR_FILE, guest.host.files.bytes(inode)?.len() as u64),
        },
    };
    let time = u64::try_from(guest.host.started.as_nanos()).unwrap_or(u64::MAX);
    guest.put(at, &numbers([1, inode.unwrap_or(0), kind.into(), 1, size, time, time, time]))
}

/// Returns the bytes of a record whose fields are padded to eight each.
fn numbers<const N: usize>(fields: [u64; N]) -> Vec<u8> {
    fields.map(u64::to_le_bytes).concat()
}

fn read(
    guest: &mut Guest<'_>,
    fd: u32,
    list: (u32, u32),
    offset: Option<u64>,
    done: u32,
) -> Result<(), Errno> {
    let buffers = guest.buffers(list.0, list.1)?;
    let file = match guest.host.open.get(fd)? {
        Open::Input => return guest.put_u32(done, 0),
        Open::Output => return Err(Errno::BadFile),
        Open::Folder { .. } => return Err(Errno::IsFolder),
        Open::File(file) => file.clone(),
    };
    let start = offset.unwrap_or(file.offset);
    let mut at = usize::try_from(start).map_err(|_| Errno::Invalid)?;
    let mut total = 0_u32;
    for (address, length) in buffers {
        let content = guest.host.files.bytes(file.inode)?;
        let rest = content.get(at..).unwrap_or_default();
        let count = rest.len().min(length as usize);
        let place = (address as usize, (address as usize).saturating_add(count));
        let into = guest.memory.get_mut(place.0..place.1).ok_or(Errno::Invalid)?;
        into.copy_from_slice(rest.get(..count).unwrap_or_default());
        at += count;
        total = total.saturating_add(u32::try_from(count).map_err(|_| Errno::TooBig)?);
        if count < length as usize {
            break;
        }
    }
    if offset.is_none() {
        guest.host.open.file(fd)?.offset = at as u64;
    }
    guest.put_u32(done, total)
}

fn write(
    guest: &mut Guest<'_>,
    fd: u32,
    list: (u32, u32),
    offset: Option<u64>,
    done: u32,
) -> Result<(), Errno> {
    let buffers = guest.buffers(list.0, list.1)?;
    let open = guest.host.open.get(fd)?.clone();
    let mut total = 0_u32;
    for (address, length) in buffers {
        let place = (address as usize, (address as usize).saturating_add(length as usize));
        let bytes = guest.memory.get(place.0..place.1).ok_or(Errno::Invalid)?;
        match &open {
            Open::Output => guest.host.output.take(bytes),
            Open::File(file) if file.may_write => {
                let end = guest.host.files.bytes(file.inode)?.len() as u64;
                let ours = guest.host.open.file(fd)?;
                let start = match offset {
                    Some(offset) => offset,
                    None if file.appends => end,
                    None => ours.offset,
                };
                let start =
                    start.saturating_add(if offset.is_some() { u64::from(total) } else { 0 });
                let at = usize::try_from(start).map_err(|_| Errno::TooBig)?;
                guest.host.files.write(file.inode, at, bytes)?;
                if offset.is_none() {
                    guest.host.open.file(fd)?.offset = start.saturating_add(u64::from(length));
                }
            }
            Open::File(_) | Open::Input => return Err(Errno::BadFile),
            Open::Folder { .. } => return Err(Errno::IsFolder),
        }
        total = total.saturating_add(length);
    }
    guest.put_u32(done, total)
}

fn seek(guest: &mut Guest<'_>, fd: u32, by: i64, from: u32, at: u32) -> Result<(), Errno> {
    let file = guest.host.open.file(fd)?.clone();
    let start = match from {
        0 => 0,
        1 => i64::try_from(file.offset).map_err(|_| Errno::Invalid)?,
        2 => {
            i64::try_from(guest.host.files.bytes(file.inode)?.len()).map_err(|_| Errno::Invalid)?
        }
        _ => return Err(Errno::Invalid),
    };
    let offset =
        start.checked_add(by).and_then(|sum| u64::try_from(sum).ok()).ok_or(Errno::Invalid)?;
    guest.host.open.file(fd)?.offset = offset;
    guest.put_u64(at, offset)
}

fn resize(host: &mut Host, fd: u32, size: u64) -> Result<(), Errno> {
    let file = host.open.file(fd)?.clone();
    if !file.may_write {
        return Err(Errno::BadFile);
    }
    host.files.resize(file.inode, usize::try_from(size).map_err(|_| Errno::TooBig)?)
}

fn list(
    guest: &mut Guest<'_>,
    fd: u32,
    place: (u32, u32),
    cookie: u64,
    used: u32,
) -> Result<(), Errno> {
    let Open::Folder { inode, .. } = *guest.host.open.get(fd)? else {
        return Err(Errno::NotFolder);
    };
    let room = place.1 as usize;
    let mut bytes = Vec::new();
    let skip = usize::try_from(cookie).map_err(|_| Errno::Invalid)?;
    for (index, (name, child)) in guest.host.files.folder(inode)?.iter().enumerate().skip(skip) {
        let is_folder = matches!(guest.host.files.node(*child)?, Node::Folder(_));
        bytes.extend((index as u64 + 1).to_le_bytes());
        bytes.extend(child.to_le_bytes());
        bytes.extend(u32::try_from(name.len()).map_err(|_| Errno::TooBig)?.to_le_bytes());
        bytes.extend([if is_folder { FOLDER } else { REGULAR_FILE }, 0, 0, 0]);
        bytes.extend(name.as_bytes());
        if bytes.len() >= room {
            break;
        }
    }
    bytes.truncate(room);
    guest.put(place.0, &bytes)?;
    guest.put_u32(used, u32::try_from(bytes.len()).map_err(|_| Errno::TooBig)?)
}
