//! One SQLite file, shared by the processes of one machine.
//!
//! Enter at [`File`]. Invariant: one connection of a process writes, for all openers of the file. A write is on disk
//! when the call returns (write-ahead log, `synchronous = FULL`). Deleted data is overwritten if the opener requires
//! it. Deliberately absent: a lock between processes; SQLite has one, and a writer waits for it.

mod file;
mod writing;
mod written;

pub use file::{Deleted, File, Reader, Writer, code};
