//! The list of documents, if the server provides it: for finding them by name, and for questions about it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::json;

use crate::cited::{self, Work, WorkUpdate};
use crate::lenient;
use crate::pipeline::{
    AgentError, ErrorKind, Finding, NO_CALLS, Stage, StageError, StageResult, Step,
};

/// Documents that a list shows at most.
const SHOWN: usize = 50;

/// Characters of a summary in a list.
const SUMMARY: usize = 200;

/// A document in the server's list; third-party servers can leave out unknown fields.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Listed {
    document: String,
    title: String,
    path: String,
    summary: Option<String>,
}

impl Listed {
    /// Returns whether a name means this document: its ID, its title or its file.
    fn is_called(&self, name: &str) -> bool {
        let file = self.path.rsplit('/').next().unwrap_or_default();
        let same = |known: &str| known.to_lowercase() == name.to_lowercase();
        self.document == name || same(&self.title) || same(file)
    }

    fn line(&self) -> String {
        let title = if self.title.is_empty() { &self.document } else { &self.title };
        match &self.summary {
            Some(summary) => {
                format!("{title}: {}", summary.chars().take(SUMMARY).collect::<String>())
            }
            None => title.clone(),
        }
    }
}

/// Asks for the list; the inner error says why there is none.
async fn listed(stage: &Stage<Work>) -> Result<Result<Vec<Listed>, AgentError>, StageError> {
    if stage.budget().tool_calls == 0 {
        return Ok(Err(AgentError::new(ErrorKind::Budget, NO_CALLS)));
    }
    let reply = stage.call("list", json!({})).await?;
    if reply.is_error {
        return Ok(Err(AgentError::of_message(reply.text)));
    }
    let documents = reply.structured.as_ref().and_then(|data| data["documents"].as_array());
    Ok(Ok(documents.into_iter().flatten().filter_map(lenient::read).collect()))
}

fn unlisted(error: &AgentError) -> String {
    format!("the documents could not be listed: {}", error.message)
}

/// Returns the ids of documents by the names that the task has for them, and what of them is not there.
pub(super) async fn ids(
    stage: &Stage<Work>,
) -> Result<(BTreeMap<String, String>, Vec<String>), StageError> {
    let mut ids = BTreeMap::new();
    let mut remarks = Vec::new();
    let entities = stage.assignment().entities.iter();
    let named = entities.filter(|entity| entity.name.trim().eq_ignore_ascii_case("document"));
    let names: Vec<&str> = named.map(|entity| entity.value.trim()).collect();
    if names.is_empty() || !stage.has_tool("list") {
        return Ok((ids, remarks));
    }
    let known = match listed(stage).await? {
        Ok(known) => known,
        Err(error) => return Ok((ids, vec![unlisted(&error)])),
    };
    for name in names {
        // A part of a title will do where it is one document's alone.
        let part = |one: &&Listed| one.title.to_lowercase().contains(&name.to_lowercase());
        let mut in_part = known.iter().filter(part);
        let only = in_part.next().filter(|_| in_part.next().is_none());
        match known.iter().find(|one| one.is_called(name)).or(only) {
            Some(one) => {
                ids.insert(name.to_owned(), one.document.clone());
            }
            None => remarks.push(format!("no document is called so: {name}")),
        }
    }
    Ok((ids, remarks))
}

/// Returns the documents a line each, and how many more there are.
fn lines(known: &[Listed]) -> Vec<String> {
    let mut lines: Vec<String> = known.iter().take(SHOWN).map(Listed::line).collect();
    if known.len() > SHOWN {
        lines.push(format!("… and {} more", known.len() - SHOWN));
    }
    lines
}

/// The model's answer to request the list; prompts/documents_answer.md describes it.
const LIST: &str = "LIST";

pub(super) async fn answer(stage: Stage<Work>) -> StageResult<Work> {
    if !stage.has_tool("list") {
        return cited::answer(stage).await;
    }
    if stage.state().passages.is_empty() {
        let mut output = cited::nothing(stage.state());
        let known = match listed(&stage).await? {
            Err(error) => unlisted(&error),
            Ok(known) if known.is_empty() => "There are no documents.".to_owned(),
            Ok(known) => format!("The documents are:\n- {}", lines(&known).join("\n- ")),
        };
        output.push_str(&format!("\n\n{known}"));
        return Ok(Step::done(Finding::text(output).confidence(cited::NOTHING)));
    }
    let mut written = cited::write(&stage, json!({ "can_list": true })).await?;
    if written.trim() == LIST {
        let documents = listed(&stage).await?;
        let documents =
            documents.map_or_else(|error| vec![unlisted(&error)], |known| lines(&known));
        written = cited::write(&stage, json!({ "documents": documents })).await?;
    }
    Ok(Step::done_with(WorkUpdate::new(), cited::finding(&stage, &written).await?))
}
