//! Reads the passages around the best hits, where the server can be read.

use serde_json::{Value, json};

use crate::cited::{Passage, Work, WorkUpdate};
use crate::pipeline::{Stage, StageResult, Step};

/// Characters read before and after a quote, of servers that do not say which passage it stands in.
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
