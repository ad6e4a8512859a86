//! The pages of rows that a process looks through, one of each kind at a time.

/// Rows of one look.
pub(super) const PAGE: u32 = 64;

/// The places at which the next look reads.
#[derive(Default)]
pub(super) struct Looks {
    pub approvals: Place,
    pub threads: Place,
    pub crons: Place,
    pub runs: Place,
}

/// A place in a list of rows: those that this process cannot take hide no later ones.
#[derive(Default)]
pub(super) struct Place {
    /// The number of rows before it.
    pub passed: u32,
}

impl Place {
    /// Moves behind a page of which `left` rows were not taken; after the last page, or when all were taken, to the beginning.
    pub(super) fn move_on(&mut self, page: usize, left: usize) {
        let is_full = page >= PAGE as usize;
        self.passed = if is_full && left > 0 { self.passed + left as u32 } else { 0 };
    }
}
