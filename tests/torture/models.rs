//! Judges calls of the model: each recorded answer was asked for, and none asked for again without a reason.

use std::collections::HashMap;
use std::path::Path;

use perihelion::checkpoint::{EffectKind, EffectRow, EffectStatus};
use perihelion::ids::ThreadId;

use super::logs::{MODELS, ModelCall, lines};
use super::oracle::Findings;

/// How often each request came, by thread.
#[derive(Debug, Default)]
pub struct ModelCalls(HashMap<String, HashMap<(String, String), u64>>);

impl ModelCalls {
    pub fn read(directory: &Path, findings: &mut Findings) -> Self {
        let mut calls = Self::default();
        for ModelCall { thread, role, request } in lines(directory, MODELS) {
            findings.model_calls += 1;
            *calls.0.entry(thread).or_default().entry((role, request)).or_default() += 1;
        }
        calls
    }

    /// Judges the calls of a thread that was taken over so many times.
    ///
    /// A recorded answer is never asked for again: a request that came before comes from one who took the thread from
    /// the one who had sent it.
    pub fn judge(
        &mut self,
        thread: ThreadId,
        effects: &[EffectRow],
        takeovers: u64,
        findings: &mut Findings,
    ) {
        let calls = self.0.remove(&thread.to_string()).unwrap_or_default();
        for ((role, request), count) in &calls {
            findings.model_repeats += count - 1;
            if *count > 1 + takeovers {
                let what =
                    format!("{thread} {role} {request}: {count} times, {takeovers} takeovers");
                findings.violate("model asked for no reason", what);
            }
        }
        let answered = effects
            .iter()
            .filter(|row| row.kind == EffectKind::Model && row.status == EffectStatus::Done);
        let answered = answered.count();
        if calls.len() < answered {
            let what = format!("{thread}: {answered} answers of {} requests", calls.len());
            findings.violate("model never asked", what);
        }
    }

    /// What is left was asked for no thread.
    pub fn finish(self, findings: &mut Findings) {
        for thread in self.0.into_keys() {
            findings.violate("model asked for no reason", format!("{thread}: nobody's thread"));
        }
    }
}
