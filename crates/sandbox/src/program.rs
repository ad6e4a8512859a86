use std::time::Duration;

use serde_json::{Map, Value};

/// What runs a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// CPython as WebAssembly: the standard library, nothing of the host.
    Wasm,
    /// The system's Python with its packages, under bubblewrap.
    System,
}

/// A program and everything it may know.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// Python source; the value of a last expression is its result.
    pub code: String,
    /// Values by name; the program finds them in `inputs` and, where a name can be one, as variables.
    pub inputs: Map<String, Value>,
    /// When the program starts, as time since the epoch. Its clock moves with what it computes, so equal runs see equal times.
    pub clock: Duration,
    /// What its randomness follows from.
    pub seed: u64,
}
