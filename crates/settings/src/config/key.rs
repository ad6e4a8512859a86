//! What names a setting: its key in the file, and the variable that goes before it.

/// A key of the settings file and the environment variable that goes before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    pub table: &'static str,
    pub key: &'static str,
    pub variable: &'static str,
}
