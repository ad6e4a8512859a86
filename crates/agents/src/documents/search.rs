//! Searches by the task, and by the task with the findings of upstream agents, among the documents of its entities;
//! compared sides are searched separately.

use serde_json::{Map, Value, json};

use super::filters::{Filters, Side};
use super::list;
use crate::cited::{CANDIDATES, Passage, Work, WorkUpdate};
use crate::pipeline::{NO_CALLS, Stage, StageError, StageResult, Step};

/// Characters of an upstream output that refine the question.
const UPSTREAM: usize = 600;

pub(super) async fn search(stage: Stage<Work>) -> StageResult<Work> {
    let mut queries = vec![stage.query().to_owned()];
    let outputs = stage.assignment().dependency_outputs.iter();
    let upstream: Vec<String> = outputs
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
    let (filters, mut remarks) = if takes(&stage, "filters") {
        let (ids, unknown) = list::ids(&stage).await?;
        (Filters::of(&stage.assignment().entities, &ids), unknown)
    } else {
        (Filters::none(), Vec::new())
    };
    remarks.extend(filters.remarks.iter().cloned());
    let (mut passages, reported) = all(&stage, &queries, &filters.sides).await?;
    remarks.extend(reported);
    if passages.is_empty() && filters.is_narrow() && stage.budget().tool_calls > 0 {
        remarks.push(format!("nothing was found with {}; these are others", filters.named()));
        let (others, reported) = all(&stage, &queries, &Filters::none().sides).await?;
        passages = others;
        remarks.extend(reported);
    }
    Ok(Step::next(WorkUpdate::new().passages(passages).remarks(remarks)))
}

fn takes(stage: &Stage<Work>, argument: &str) -> bool {
    stage.tool("search").is_some_and(|tool| tool.input_schema["properties"][argument].is_object())
}

/// Asks every query of each side, and takes from each list in turn; each side has an equal share.
async fn all(
    stage: &Stage<Work>,
    queries: &[String],
    sides: &[Side],
) -> Result<(Vec<Passage>, Vec<String>), StageError> {
    let share = CANDIDATES / sides.len().max(1);
    let mut of_sides: Vec<Vec<Passage>> = Vec::new();
    let mut remarks = Vec::new();
    let mut is_ended = false;
    for (number, side) in sides.iter().enumerate() {
        let mut found: Vec<Vec<Passage>> = Vec::new();
        for query in queries {
            // Without any call left, the first search fails. A later one is skipped, so that the earlier results are used.
            let is_first = of_sides.is_empty() && found.is_empty();
            if !is_first && stage.budget().tool_calls == 0 {
                is_ended = true;
                break;
            }
            let shown: String = query.chars().take(100).collect();
            stage.progress(format!("searching {} for: {shown}", side.name).replace("  ", " "));
            let (mut passages, remark) = ask(stage, query, (&side.by, share)).await?;
            passages.iter_mut().for_each(|passage| passage.side = number);
            found.push(passages);
            remarks.extend(remark);
        }
        // Nothing is known of a side that was not searched.
        if found.is_empty() {
            break;
        }
        of_sides.push(interleaved(found, share));
    }
    remarks.extend(is_ended.then(|| format!("the search ended early: {NO_CALLS}")));
    let unsearched = sides.iter().skip(of_sides.len());
    remarks.extend(unsearched.map(|side| format!("not searched: {}", side.name)));
    let is_any = of_sides.iter().any(|found| !found.is_empty());
    let empty = sides.iter().zip(&of_sides).filter(|(_, found)| is_any && found.is_empty());
    remarks.extend(empty.map(|(side, _)| format!("nothing was found with {}", side.name)));
    Ok((interleaved(of_sides, CANDIDATES), remarks))
}

async fn ask(
    stage: &Stage<Work>,
    query: &str,
    (by, limit): (&Map<String, Value>, usize),
) -> Result<(Vec<Passage>, Option<String>), StageError> {
    let mut arguments = json!({ "query": query, "limit": limit });
    if takes(stage, "parents") {
        arguments["parents"] = json!(true);
    }
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
    let first = hits.and_then(|hits| hits.first()).filter(|_| passages.is_empty());
    let remark = first.map(|hit| format!("the server's hits cannot be read, such as {hit}"));
    Ok((passages, remark))
}

fn of_text(stage: &Stage<Work>, text: &str) -> Option<Passage> {
    let passage = json!({ "document": stage.agent(), "title": stage.agent(), "quote": text });
    Passage::of_hit(&passage)
}

/// Takes from each list in turn, each place once, and at most `most`.
fn interleaved(lists: Vec<Vec<Passage>>, most: usize) -> Vec<Passage> {
    let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
    let mut passages: Vec<Passage> = Vec::new();
    for rank in 0..longest {
        for passage in lists.iter().filter_map(|list| list.get(rank)) {
            if !passages.iter().any(|known| known.overlaps(passage)) {
                passages.push(passage.clone());
            }
        }
    }
    passages.truncate(most);
    passages
}

/// Characters read before and after a quote, for servers that do not name the passage.
const CONTEXT: u64 = 700;

pub(super) async fn read(stage: Stage<Work>) -> StageResult<Work> {
    let mut passages = stage.state().passages.clone();
    if stage.has_tool("read") {
        let places: Vec<(usize, Value)> = (0..)
            .zip(&passages)
            .filter_map(|(place, passage)| Some((place, context(passage)?)))
            .take(stage.budget().tool_calls)
            .collect();
        let arguments = places.iter().map(|(_, arguments)| arguments.clone());
        let replies = stage.follow_all("read", arguments).await?;
        for ((place, _), reply) in places.iter().zip(replies) {
            let Some(passage) = passages.get_mut(*place).filter(|_| !reply.is_error) else {
                continue;
            };
            let text = reply.structured.as_ref().and_then(|data| data["text"].as_str());
            // What was read must hold the quote, or it is from another version.
            let text = text.filter(|text| text.contains(passage.quote.as_str()));
            passage.context = text.map(str::to_owned);
        }
    }
    Ok(Step::next(WorkUpdate::new().passages(passages)))
}

fn context(passage: &Passage) -> Option<Value> {
    let (start, end) = match &passage.parent {
        Some(parent) => (parent.start, parent.end),
        None => (passage.start?.saturating_sub(CONTEXT), passage.end?.saturating_add(CONTEXT)),
    };
    Some(json!({ "document": passage.document, "start": start, "end": end }))
}
