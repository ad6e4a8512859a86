//! The guest's files: a small tree in memory, of which only the scratch folders can be written.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::embedded::{LIBRARY, LIBRARY_PATH};

/// The working directory of the program; its files are in the outcome.
pub const WORK: &str = "work";
/// The directory of temporary files, which are dropped.
pub const TEMPORARY: &str = "tmp";
/// The place of the request and the report.
pub const RUN: &str = "run";

/// A node's number; never used again after the node is gone.
pub type Inode = u64;

pub const ROOT: Inode = 1;

pub enum Node {
    Folder(BTreeMap<String, Inode>),
    Fixed(&'static [u8]),
    Data(Arc<Vec<u8>>),
}

/// Why an operation was refused, as WASI numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Errno {
    Success = 0,
    Access = 2,
    BadFile = 8,
    Exists = 20,
    TooBig = 22,
    Invalid = 28,
    IsFolder = 31,
    NameTooLong = 37,
    NoEntry = 44,
    NoSpace = 51,
    NotFolder = 54,
    NotEmpty = 55,
    NotSupported = 58,
}

pub struct Files {
    nodes: BTreeMap<Inode, Node>,
    next: Inode,
    /// Bytes that may still be written.
    room: usize,
    /// Files and folders that may still be made.
    slots: usize,
    /// The file with a separate size limit.
    report: Option<Inode>,
    opened: BTreeMap<Inode, Opened>,
}

/// The number of an open file's descriptors, and whether the file has lost its name.
#[derive(Default)]
struct Opened {
    count: usize,
    is_unnamed: bool,
}

const REPORT_BYTES: usize = 16 << 20;

impl Files {
    pub fn new(room: usize, slots: usize) -> Self {
        let mut files = Self {
            nodes: BTreeMap::new(),
            next: ROOT + 1,
            room: usize::MAX,
            slots: usize::MAX,
            report: None,
            opened: BTreeMap::new(),
        };
        files.nodes.insert(ROOT, Node::Folder(BTreeMap::new()));
        let library = LIBRARY_PATH.trim_start_matches('/');
        let (folder, name) = library.rsplit_once('/').unwrap_or(("", library));
        let mut at = ROOT;
        for part in folder.split('/') {
            at = files.add(at, part, Node::Folder(BTreeMap::new()));
        }
        files.add(at, name, Node::Fixed(LIBRARY));
        for folder in [WORK, TEMPORARY, RUN] {
            files.add(ROOT, folder, Node::Folder(BTreeMap::new()));
        }
        files.room = room;
        files.slots = slots;
        files
    }

    /// Puts a file into a folder of the root, outside of the limits.
    pub fn put(&mut self, folder: &str, name: &str, node: Node) {
        if let Ok(folder) = self.child(ROOT, folder) {
            self.add(folder, name, node);
        }
    }

    pub fn put_report(&mut self, folder: &str, name: &str) {
        if let Ok(folder) = self.child(ROOT, folder) {
            self.report = Some(self.add(folder, name, Node::Data(Arc::default())));
        }
    }

    pub fn is_report(&self, inode: Inode) -> bool {
        self.report == Some(inode)
    }

    pub fn node(&self, inode: Inode) -> Result<&Node, Errno> {
        // A folder that was removed while it was open.
        self.nodes.get(&inode).ok_or(Errno::BadFile)
    }

    pub fn folder(&self, inode: Inode) -> Result<&BTreeMap<String, Inode>, Errno> {
        match self.node(inode)? {
            Node::Folder(entries) => Ok(entries),
            _ => Err(Errno::NotFolder),
        }
    }

    pub fn bytes(&self, inode: Inode) -> Result<&[u8], Errno> {
        match self.node(inode)? {
            Node::Folder(_) => Err(Errno::IsFolder),
            Node::Fixed(bytes) => Ok(bytes),
            Node::Data(bytes) => Ok(bytes),
        }
    }

    pub fn child(&self, folder: Inode, name: &str) -> Result<Inode, Errno> {
        self.folder(folder)?.get(name).copied().ok_or(Errno::NoEntry)
    }

    pub fn make(&mut self, folder: Inode, name: &str, node: Node) -> Result<Inode, Errno> {
        if self.folder(folder)?.contains_key(name) {
            return Err(Errno::Exists);
        }
        self.slots = self.slots.checked_sub(1).ok_or(Errno::NoSpace)?;
        Ok(self.add(folder, name, node))
    }

    /// Removes an entry; an open file exists without its name until it is closed.
    pub fn remove(&mut self, folder: Inode, name: &str, is_folder: bool) -> Result<(), Errno> {
        let inode = self.child(folder, name)?;
        match self.node(inode)? {
            Node::Folder(_) if !is_folder => return Err(Errno::IsFolder),
            Node::Folder(entries) if !entries.is_empty() => return Err(Errno::NotEmpty),
            Node::Fixed(_) | Node::Data(_) if is_folder => return Err(Errno::NotFolder),
            _ => {}
        }
        self.unlink(folder, name);
        match self.opened.get_mut(&inode) {
            Some(opened) => opened.is_unnamed = true,
            None => self.drop_node(inode),
        }
        Ok(())
    }

    /// Notes that a file was opened once more.
    pub fn open(&mut self, inode: Inode) {
        self.opened.entry(inode).or_default().count += 1;
    }

    /// Notes that a descriptor of a file was closed.
    pub fn close(&mut self, inode: Inode) {
        let Some(opened) = self.opened.get_mut(&inode) else { return };
        opened.count -= 1;
        if opened.count == 0 {
            let is_unnamed = opened.is_unnamed;
            self.opened.remove(&inode);
            if is_unnamed {
                self.drop_node(inode);
            }
        }
    }

    /// Drops a node without a name, and gives its space back.
    fn drop_node(&mut self, inode: Inode) {
        if let Some(Node::Data(bytes)) = self.nodes.remove(&inode) {
            self.room = self.room.saturating_add(bytes.len());
        }
        self.slots = self.slots.saturating_add(1);
    }

    /// Moves an entry, replacing a file of that name.
    pub fn rename(&mut self, from: (Inode, &str), to: (Inode, &str)) -> Result<(), Errno> {
        let inode = self.child(from.0, from.1)?;
        if from == to {
            return Ok(());
        }
        if self.is_within(to.0, inode) {
            return Err(Errno::Invalid);
        }
        if let Ok(there) = self.child(to.0, to.1) {
            let is_folder = matches!(self.node(there)?, Node::Folder(_));
            self.remove(to.0, to.1, is_folder)?;
        }
        self.folder(to.0)?;
        self.unlink(from.0, from.1);
        if let Some(Node::Folder(entries)) = self.nodes.get_mut(&to.0) {
            entries.insert(to.1.to_owned(), inode);
        }
        Ok(())
    }

    /// Writes bytes at an offset, filling a gap with zeros.
    pub fn write(&mut self, inode: Inode, offset: usize, bytes: &[u8]) -> Result<(), Errno> {
        let end = offset.checked_add(bytes.len()).ok_or(Errno::TooBig)?;
        let length = self.bytes(inode)?.len();
        if end > length {
            self.resize(inode, end)?;
        }
        if let Some(Node::Data(data)) = self.nodes.get_mut(&inode)
            && let Some(place) = Arc::make_mut(data).get_mut(offset..end)
        {
            place.copy_from_slice(bytes);
            return Ok(());
        }
        Err(Errno::Access)
    }

    /// Cuts a file, or fills it with zeros.
    pub fn resize(&mut self, inode: Inode, size: usize) -> Result<(), Errno> {
        let is_report = self.is_report(inode);
        let Some(Node::Data(data)) = self.nodes.get_mut(&inode) else { return Err(Errno::Access) };
        let length = data.len();
        if is_report {
            if size > REPORT_BYTES {
                return Err(Errno::NoSpace);
            }
            Arc::make_mut(data).resize(size, 0);
            return Ok(());
        }
        let more = size.saturating_sub(length);
        self.room = self.room.checked_sub(more).ok_or(Errno::NoSpace)?;
        Arc::make_mut(data).resize(size, 0);
        self.room = self.room.saturating_add(length.saturating_sub(size));
        Ok(())
    }

    /// Returns the files below a folder of the root, by path.
    pub fn below(&self, folder: &str) -> Vec<(String, Arc<Vec<u8>>)> {
        let mut found = Vec::new();
        if let Ok(folder) = self.child(ROOT, folder) {
            self.collect_below(folder, "", &mut found);
        }
        found
    }

    fn collect_below(&self, folder: Inode, path: &str, found: &mut Vec<(String, Arc<Vec<u8>>)>) {
        let Ok(entries) = self.folder(folder) else { return };
        for (name, inode) in entries {
            let path = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
            match self.nodes.get(inode) {
                Some(Node::Folder(_)) => self.collect_below(*inode, &path, found),
                Some(Node::Data(bytes)) => found.push((path, Arc::clone(bytes))),
                _ => {}
            }
        }
    }

    fn is_within(&self, mut folder: Inode, inode: Inode) -> bool {
        // Folders are few; the tree has no links, so each has one parent.
        while folder != ROOT {
            if folder == inode {
                return true;
            }
            let parent = self.nodes.iter().find(|(_, node)| {
                matches!(node, Node::Folder(entries) if entries.values().any(|child| *child == folder))
            });
            let Some((parent, _)) = parent else { return false };
            folder = *parent;
        }
        inode == ROOT
    }

    fn add(&mut self, folder: Inode, name: &str, node: Node) -> Inode {
        let inode = self.next;
        self.next += 1;
        self.nodes.insert(inode, node);
        if let Some(Node::Folder(entries)) = self.nodes.get_mut(&folder) {
            entries.insert(name.to_owned(), inode);
        }
        inode
    }

    fn unlink(&mut self, folder: Inode, name: &str) {
        if let Some(Node::Folder(entries)) = self.nodes.get_mut(&folder) {
            entries.remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(text: &str) -> Node {
        Node::Data(Arc::new(text.as_bytes().to_vec()))
    }

    #[test]
    fn writing_is_bounded_by_bytes_and_by_number_of_files_and_removing_gives_back() {
        let mut files = Files::new(10, 2);
        let work = files.child(ROOT, WORK).unwrap();
        let a = files.make(work, "a", data("")).unwrap();
        files.write(a, 0, b"12345678").unwrap();
        assert_eq!(files.write(a, 8, b"123"), Err(Errno::NoSpace));
        assert_eq!(files.resize(a, usize::MAX), Err(Errno::NoSpace));
        files.make(work, "b", Node::Folder(BTreeMap::new())).unwrap();
        assert_eq!(files.make(work, "c", data("")), Err(Errno::NoSpace));
        files.remove(work, "a", false).unwrap();
        let c = files.make(work, "c", data("")).unwrap();
        files.write(c, 3, b"1234567").unwrap();
        assert_eq!(files.bytes(c).unwrap(), b"\0\0\x001234567");
    }

    #[test]
    fn an_open_file_exists_without_its_name_until_it_is_closed() {
        let mut files = Files::new(10, 1);
        let work = files.child(ROOT, WORK).unwrap();
        let a = files.make(work, "a", data("")).unwrap();
        files.open(a);
        files.remove(work, "a", false).unwrap();
        files.write(a, 0, b"12345678").unwrap();
        assert_eq!(files.bytes(a).unwrap(), b"12345678");
        assert_eq!(files.make(work, "b", data("")), Err(Errno::NoSpace));
        files.close(a);
        let b = files.make(work, "b", data("")).unwrap();
        files.write(b, 0, b"1234567890").unwrap();
        assert_eq!(files.bytes(a), Err(Errno::BadFile));
    }

    #[test]
    fn a_folder_cannot_move_into_itself_and_a_full_one_cannot_be_removed() {
        let mut files = Files::new(10, 9);
        let work = files.child(ROOT, WORK).unwrap();
        let a = files.make(work, "a", Node::Folder(BTreeMap::new())).unwrap();
        let b = files.make(a, "b", Node::Folder(BTreeMap::new())).unwrap();
        assert_eq!(files.rename((work, "a"), (b, "a")), Err(Errno::Invalid));
        assert_eq!(files.remove(work, "a", true), Err(Errno::NotEmpty));
        files.rename((a, "b"), (work, "b")).unwrap();
        files.remove(work, "a", true).unwrap();
        assert_eq!(files.folder(work).unwrap().keys().collect::<Vec<_>>(), ["b"]);
    }
}
