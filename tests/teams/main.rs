//! Teams designed at run time, through the program itself: real servers as child processes, a scripted model, both databases.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "clippy exempts only the test functions themselves, not what they share"
)]

#[path = "../it/support/hostile.rs"]
#[expect(dead_code, reason = "shared with the other tests, which use more of it")]
mod hostile;

#[path = "../it/cli/world.rs"]
#[expect(dead_code, reason = "shared with the other tests, which use more of it")]
mod world;

mod budgets;
mod cancelled;
mod crashes;
mod designs;
mod founding;
mod nested;
mod office;
mod questions;
mod runs;
mod served;

use perihelion_test_database::postgres;
