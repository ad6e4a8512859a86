//! Reads on around the best passages, where the server can be read.

use serde_json::json;

use crate::agents::cited::{Work, WorkUpdate};
use crate::agents::pipeline::{Stage, StageResult, Step};

/// Characters read before and after a quote.
const AROUND: u64 = 700;

/// Passages that are read around; the others stand for themselves.
const BEST: usize = 4;

pub(super) async fn read(stage: Stage<Work>) -> StageResult<Work> {
    let mut passages = stage.state().passages.clone();
    if stage.has_tool("read") {
        for passage in passages.iter_mut().take(BEST) {
            let (Some(start), Some(end)) = (passage.start, passage.end) else { continue };
            if stage.budget().tool_calls == 0 {
                break;
            }
            let arguments = json!({
                "document": passage.document,
                "start": start.saturating_sub(AROUND),
                "end": end.saturating_add(AROUND),
            });
            let reply = stage.call("read", arguments).await?;
            if reply.is_error {
                continue;
            }
            let text = reply.structured.as_ref().and_then(|data| data["text"].as_str());
            // What was read must hold the quote, or it is from another version.
            let text = text.filter(|text| text.contains(passage.quote.as_str()));
            passage.around = text.map(str::to_owned);
        }
    }
    Ok(Step::next(WorkUpdate::new().passages(passages)))
}
