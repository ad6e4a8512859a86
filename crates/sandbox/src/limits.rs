use std::time::Duration;

/// The bounds of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest run, sleep included.
    pub time: Duration,
    /// Most memory, in bytes, the interpreter's own 40 MB included.
    pub memory_bytes: usize,
    /// Most bytes kept of what is printed; the rest is dropped and the outcome says so.
    pub output_bytes: usize,
    /// Most bytes of all files in the scratch folder together.
    pub file_bytes: usize,
    /// Most files and folders in the scratch folder.
    pub files: usize,
    /// Most rows of a table.
    pub rows: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(10),
            memory_bytes: 256 << 20,
            output_bytes: 64 << 10,
            file_bytes: 32 << 20,
            files: 256,
            rows: 10_000,
        }
    }
}
