//! Searches by the task, and by the task with what upstream agents found, among the documents that its entities name.

use serde_json::{Map, Value, json};

use super::filters::Filters;
use crate::agents::cited::{CANDIDATES, Passage, Work, WorkUpdate};
use crate::agents::pipeline::{Stage, StageError, StageResult, Step};

/// Characters of an upstream output that refine the question.
const UPSTREAM: usize = 600;

pub(super) async fn search(stage: Stage<Work>) -> StageResult<Work> {
    let mut queries = vec![stage.query().to_owned()];
    let upstream: Vec<String> = stage
        .assignment()
        .dependency_outputs
        .iter()
        .map(|one| one.output.chars().take(UPSTREAM).collect())
        .filter(|output: &String| !output.trim().is_empty())
        .collect();
    if !upstream.is_empty() {
        queries.push(format!("{} {}", stage.query(), upstream.join(" ")));
    }
    if let Some(feedback) = stage.feedback() {
        queries.push(format!("{} {feedback}", stage.query()));
    }
    // Servers of others may not filter at all.
    let filters = stage.tool("search").map(|tool| &tool.input_schema["properties"]["filters"]);
    let Filters { by, mut remarks } = match filters.is_some_and(Value::is_object) {
        true => Filters::of(&stage.assignment().entities),
        false => Filters::default(),
    };
    let (mut passages, reported) = all(&stage, &queries, &by).await?;
    remarks.extend(reported);
    if passages.is_empty() && !by.is_empty() {
        let named: Vec<String> = by.iter().map(|(name, value)| format!("{name} {value}")).collect();
        remarks.push(format!("nothing was found with {}; these are others", named.join(", ")));
        let (others, reported) = all(&stage, &queries, &Map::new()).await?;
        passages = others;
        remarks.extend(reported);
    }
    Ok(Step::next(WorkUpdate::new().passages(passages).remarks(remarks)))
}

/// Asks every query, and takes from each list in turn.
async fn all(
    stage: &Stage<Work>,
    queries: &[String],
    by: &Map<String, Value>,
) -> Result<(Vec<Passage>, Vec<String>), StageError> {
    let mut found: Vec<Vec<Passage>> = Vec::new();
    let mut remarks = Vec::new();
    for query in queries {
        stage.progress(format!("searching for: {}", query.chars().take(100).collect::<String>()));
        let (passages, remark) = ask(stage, query, by).await?;
        found.push(passages);
        remarks.extend(remark);
    }
    Ok((interleaved(found), remarks))
}

async fn ask(
    stage: &Stage<Work>,
    query: &str,
    by: &Map<String, Value>,
) -> Result<(Vec<Passage>, Option<String>), StageError> {
    let mut arguments = json!({ "query": query, "limit": CANDIDATES });
    if !by.is_empty() {
        arguments["filters"] = json!(by);
    }
    let reply = stage.call("search", arguments).await?;
    if reply.is_error {
        return Ok((Vec::new(), Some(reply.text)));
    }
    let hits = reply.structured.as_ref().and_then(|data| data["hits"].as_array());
    let passages: Vec<Passage> = match hits {
        Some(hits) => hits.iter().filter_map(Passage::of_hit).collect(),
        // A server that answers in words alone: the answer is one passage.
        None => of_text(stage, &reply.text).into_iter().collect(),
    };
    Ok((passages, None))
}

fn of_text(stage: &Stage<Work>, text: &str) -> Option<Passage> {
    let passage = json!({ "document": stage.agent(), "title": stage.agent(), "quote": text });
    Passage::of_hit(&passage)
}

/// Takes from each list in turn, each place once.
fn interleaved(lists: Vec<Vec<Passage>>) -> Vec<Passage> {
    let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
    let mut passages: Vec<Passage> = Vec::new();
    for rank in 0..longest {
        for passage in lists.iter().filter_map(|list| list.get(rank)) {
            if !passages.iter().any(|known| known.overlaps(passage)) {
                passages.push(passage.clone());
            }
        }
    }
    passages.truncate(CANDIDATES);
    passages
}
