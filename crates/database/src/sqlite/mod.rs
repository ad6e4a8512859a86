//! One SQLite file, shared by the processes of one machine.
//!
//! Enter at [`File`]. Invariant: one connection of a process writes, however often the file was opened, a write is on disk when the call returns (write-ahead log,
//! `synchronous = FULL`), and what is deleted is overwritten where the opener asks for it. Deliberately absent: any lock of our own
//! between processes; SQLite's does, and a writer waits for it.

mod file;
mod writing;

pub use file::{Deleted, File, Reader, Writer, code};
