//! Judges calls of the model: each recorded answer was asked for, and none asked for again without a reason.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use perihelion::checkpoint::{EffectKind, EffectRow, EffectStatus, Error};
use serde_json::{Value, json};

use super::calls::Taken;
use super::logs::{MODELS, ModelCall, lines, sorted};
use super::oracle::Findings;
use super::turns::Sent;

/// Every request that came, by thread.
#[derive(Debug, Default)]
pub struct ModelCalls(HashMap<String, Vec<ModelCall>>);

impl ModelCalls {
    pub fn read(directory: &Path, findings: &mut Findings) -> Self {
        let mut calls = Self::default();
        for call in lines::<ModelCall>(directory, MODELS) {
            findings.model_calls += 1;
            calls.0.entry(call.thread.clone()).or_default().push(call);
        }
        calls
    }

    /// Judges the calls of a thread.
    ///
    /// A recorded answer is never asked for again: a request that came before comes in another turn. Whatever is recorded as
    /// answered was asked, in these very words.
    ///
    /// # Errors
    /// When a recorded request cannot be read.
    pub fn judge(
        &mut self,
        taken: &Taken<'_>,
        effects: &[EffectRow],
        findings: &mut Findings,
    ) -> Result<(), Error> {
        let thread = taken.thread;
        let calls = self.0.remove(&thread.to_string()).unwrap_or_default();
        let mut equal: HashMap<(&str, &str), Vec<Sent>> = HashMap::new();
        for ModelCall { process, at, role, request, .. } in &calls {
            let sent = Sent { process: *process, at: *at, lost: false };
            equal.entry((role, request)).or_default().push(sent);
        }
        for ((role, request), sent) in equal {
            findings.model_repeats += sent.len() as u64 - 1;
            if let Some(why) = taken.unexplained(&sent) {
                let what = format!("{thread} {role} {request}: {why}: {sent:?}");
                findings.violate("model asked for no reason", what);
            }
        }
        let asked: BTreeSet<(&str, &str)> =
            calls.iter().map(|call| (&*call.role, &*call.messages)).collect();
        let answered = effects
            .iter()
            .filter(|row| row.kind == EffectKind::Model && row.status == EffectStatus::Done);
        for row in answered {
            let request: Value = row.request.decode()?;
            if !asked.contains(&(&*row.name, &*conversation(&request["messages"]))) {
                let what = format!("{thread} step {}: {} {request}", row.step, row.name);
                findings.violate("model never asked", what);
            }
        }
        Ok(())
    }

    /// What is left was asked for no thread.
    pub fn finish(self, findings: &mut Findings) {
        for thread in self.0.into_keys() {
            findings.violate("model asked for no reason", format!("{thread}: nobody's thread"));
        }
    }
}

/// Hashes the messages of a request, whether they are as they were sent or as they are recorded.
pub fn conversation(messages: &Value) -> String {
    let mut hasher = blake3::Hasher::new();
    for message in messages.as_array().into_iter().flatten() {
        let calls = message["tool_calls"].as_array().into_iter().flatten().map(call);
        let calls: Vec<Value> = calls.collect();
        let content = message["content"].as_str().unwrap_or_default();
        let one = json!([message["role"], content, message["tool_call_id"], calls]);
        hasher.update(one.to_string().as_bytes());
    }
    hasher.finalize().to_hex()[..24].to_owned()
}

/// Reads a call of a tool: on the wire its name and arguments lie deeper, and the arguments are text.
fn call(call: &Value) -> Value {
    let function = call.get("function").unwrap_or(call);
    let arguments = &function["arguments"];
    let read = arguments.as_str().and_then(|text| serde_json::from_str(text).ok());
    json!([call["id"], function["name"], sorted(&read.unwrap_or_else(|| arguments.clone()))])
}
