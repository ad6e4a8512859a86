//! The command line of a server, which a sandbox and a bound on memory wrap in other programs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use perihelion_sandbox::find_program;

pub(super) struct Program<'a> {
    pub program: PathBuf,
    pub args: Vec<String>,
    /// The whole environment.
    pub env: &'a BTreeMap<String, String>,
    /// `None`: the current directory of this process.
    pub cwd: Option<&'a str>,
}

impl Program<'_> {
    /// Finds the program's file; a name alone is looked for on the server's own PATH.
    pub fn find(&self) -> Option<PathBuf> {
        let path = self.env.get("PATH").map(AsRef::as_ref).unwrap_or_default();
        find_program(&self.program, path, Path::new(self.cwd.unwrap_or_default()))
    }
}
