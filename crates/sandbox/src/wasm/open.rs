//! The guest's open files.

use super::files::{Errno, Inode, ROOT};

/// Most files open at once.
const MOST: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Area {
    /// Folders without files of the program.
    Fixed,
    /// The writable folders of the program.
    Scratch,
}

#[derive(Clone, Debug)]
pub enum Open {
    /// Standard input, which is empty.
    Input,
    /// Standard output or standard error.
    Output,
    Folder {
        inode: Inode,
        area: Area,
    },
    File(OpenFile),
}

#[derive(Clone, Debug)]
pub struct OpenFile {
    pub inode: Inode,
    pub offset: u64,
    pub appends: bool,
    pub may_write: bool,
}

/// The open nodes, by descriptor.
pub struct OpenFiles(Vec<Option<Open>>);

impl OpenFiles {
    /// The three streams, and the root, as the snapshot expects them.
    pub fn new() -> Self {
        let root = Open::Folder { inode: ROOT, area: Area::Fixed };
        Self(vec![Some(Open::Input), Some(Open::Output), Some(Open::Output), Some(root)])
    }

    pub fn get(&self, descriptor: u32) -> Result<&Open, Errno> {
        self.0.get(descriptor as usize).and_then(Option::as_ref).ok_or(Errno::BadFile)
    }

    pub fn file(&mut self, descriptor: u32) -> Result<&mut OpenFile, Errno> {
        match self.0.get_mut(descriptor as usize) {
            Some(Some(Open::File(file))) => Ok(file),
            Some(Some(Open::Folder { .. })) => Err(Errno::IsFolder),
            Some(Some(_)) => Err(Errno::Invalid),
            _ => Err(Errno::BadFile),
        }
    }

    pub fn add(&mut self, open: Open) -> Result<u32, Errno> {
        let free = self.0.iter().position(Option::is_none).unwrap_or(self.0.len());
        if free >= MOST {
            return Err(Errno::NoSpace);
        }
        if free == self.0.len() {
            self.0.push(None);
        }
        if let Some(place) = self.0.get_mut(free) {
            *place = Some(open);
        }
        u32::try_from(free).map_err(|_| Errno::NoSpace)
    }

    pub fn close(&mut self, descriptor: u32) -> Result<Open, Errno> {
        let place = self.0.get_mut(descriptor as usize).ok_or(Errno::BadFile)?;
        place.take().ok_or(Errno::BadFile)
    }
}
