//! Once nothing breaks any more, resumes and answers bring every thread to its end, or to the failure that is
//! its plan's own.

use super::Record;
use crate::simulation::record::End;

pub fn check(record: &Record) -> Result<(), String> {
    match &record.end {
        End::Done => Ok(()),
        End::Doomed(_) if record.plan.as_ref().is_some_and(|plan| plan.is_doomed()) => Ok(()),
        other => Err(format!("{other:?}")),
    }
}
