//! Fits a request into a model's window: task and rules stay, recent text goes first, and cuts are marked.
//!
//! It runs when a request leaves, below the recording, so a thread can be replayed with any window.

use std::ops::Range;

use super::{ChatMessage, ChatRequest, ChatResponse, MessageRole, ToolCall, Usage, attached};

/// Characters of a text that always stay.
const LEAST: usize = 300;

/// Elements of the conversation that always stay.
const NEWEST: usize = 2;

/// Elements with instructions: they are cut last.
const TASKS: [&str; 8] =
    ["user_request", "users_request", "request", "question", "task", "goal", "criterion", "agents"];

/// Tokens of a message in addition to its text.
const OF_MESSAGE: u64 = 4;

/// Tokens of an image or file, whatever its size.
const OF_FILE: u64 = 1_000;

/// Counts the tokens of a text, rather too many than too few: a third of the characters of English, one for each other.
pub(super) fn tokens(text: &str) -> u64 {
    let plain = text.chars().filter(char::is_ascii).count();
    let others = text.chars().count() - plain;
    u64::try_from(plain.div_ceil(3) + others).unwrap_or(u64::MAX)
}

/// Counts the tokens of a request, the descriptions of its tools and of its answer included.
pub(super) fn count(request: &ChatRequest) -> u64 {
    let messages: u64 = request.messages.iter().map(of_message).sum();
    let tools = request.tools.iter().map(|tool| {
        tokens(&tool.name) + tokens(&tool.description) + tokens(&tool.parameters.to_string())
    });
    let format = request.format.as_ref().map_or(0, |format| tokens(&format.schema.to_string()));
    messages + tools.sum::<u64>() + format
}

fn of_message(message: &ChatMessage) -> u64 {
    let attached =
        message.attached.iter().map(|one| one.text().map_or(OF_FILE, |text| tokens(&text)));
    OF_MESSAGE + tokens(&message.content) + of_calls(&message.tool_calls) + attached.sum::<u64>()
}

fn of_calls(calls: &[ToolCall]) -> u64 {
    calls.iter().map(|call| tokens(&call.name) + tokens(&call.arguments.to_string())).sum()
}

/// Estimates the tokens of a call whose endpoint did not count them, so that limits bind nonetheless.
pub(super) fn estimate(request: &ChatRequest, answer: &ChatResponse) -> Usage {
    let texts = tokens(&answer.content) + answer.reasoning.as_deref().map_or(0, tokens);
    let output_tokens = texts + of_calls(&answer.tool_calls);
    Usage { input_tokens: count(request), output_tokens, cached_tokens: 0, estimated: true }
}

/// Returns the request cut to a number of tokens; `None` if it fits.
pub(super) fn fit(request: &ChatRequest, most: u64) -> Option<ChatRequest> {
    if count(request) <= most {
        return None;
    }
    let mut request = request.clone();
    request.messages.iter_mut().for_each(attached::inline);
    leave_out_results(&mut request, most);
    leave_out_talk(&mut request, most);
    cut_material(&mut request, most);
    Some(request)
}

/// Leaves out results of tools, the oldest first; the newest stays.
fn leave_out_results(request: &mut ChatRequest, most: u64) {
    let is_result = |message: &ChatMessage| message.role == MessageRole::Tool;
    let results: Vec<usize> =
        (0..request.messages.len()).filter(|index| is_result(&request.messages[*index])).collect();
    let mut total = count(request);
    for index in results.iter().rev().skip(1).rev() {
        if total <= most {
            return;
        }
        let message = &mut request.messages[*index];
        let wording = format!(
            "(the call was made; its result of {} characters is left out here, for the window is full)",
            message.content.chars().count()
        );
        if wording.len() < message.content.len() {
            total = total.saturating_sub(tokens(&message.content)) + tokens(&wording);
            message.content = wording;
        }
    }
}

/// Leaves out messages of a prompt's conversation, the oldest first.
fn leave_out_talk(request: &mut ChatRequest, most: u64) {
    let mut total = count(request);
    for message in request.messages.iter_mut().filter(|one| one.role == MessageRole::User) {
        let reported = elements(&message.content, "message");
        let mut end = None;
        let mut left_out = 0;
        for element in reported.iter().rev().skip(NEWEST).rev() {
            if total <= most {
                break;
            }
            total = total.saturating_sub(tokens(&message.content[element.clone()]));
            (end, left_out) = (Some(element.end), left_out + 1);
        }
        if let Some((end, first)) = end.zip(reported.first()) {
            let wording = format!("({left_out} earlier messages are left out here)");
            message.content.replace_range(first.start..end, &wording);
        }
    }
}

/// Finds the elements of a name, in their order; dynamic text in a prompt is escaped, so every tag is the template's.
fn elements(text: &str, name: &str) -> Vec<Range<usize>> {
    let open = format!("<{name}");
    let close = format!("</{name}>");
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(start) = text[from..].find(&open).map(|at| from + at) {
        from = start + open.len();
        if !text[from..].starts_with([' ', '>']) {
            continue;
        }
        let Some(end) = text[from..].find(&close).map(|at| from + at + close.len()) else { break };
        found.push(start..end);
        from = end;
    }
    found
}

struct Piece {
    message: usize,
    range: Range<usize>,
    is_task: bool,
    chars: usize,
    /// Characters that stay.
    keep: usize,
    tokens: u64,
}

/// Cuts the longest text by half, repeatedly: material first, and tasks only if there is no more material.
fn cut_material(request: &mut ChatRequest, most: u64) {
    let mut total = count(request);
    let mut pieces: Vec<Piece> = Vec::new();
    for (index, message) in request.messages.iter().enumerate() {
        if message.role != MessageRole::System {
            pieces.extend(pieces_of(index, &message.content));
        }
    }
    while total > most {
        let can_be_cut = pieces.iter_mut().filter(|piece| piece.keep > LEAST);
        let Some(longest) = can_be_cut.max_by_key(|piece| (!piece.is_task, piece.keep)) else {
            break;
        };
        longest.keep = (longest.keep / 2).max(LEAST);
        let text = &request.messages[longest.message].content[longest.range.clone()];
        let now = tokens(&cut(text, longest.keep));
        total = total.saturating_sub(longest.tokens) + now;
        longest.tokens = now;
    }
    // From the end, so that what stands before stays where it is.
    for piece in pieces.iter().rev().filter(|piece| piece.keep < piece.chars) {
        let content = &mut request.messages[piece.message].content;
        let shorter = cut(&content[piece.range.clone()], piece.keep);
        content.replace_range(piece.range.clone(), &shorter);
    }
}

/// Finds the texts of innermost elements; a text without any is one piece.
fn pieces_of(message: usize, text: &str) -> Vec<Piece> {
    let piece = |range: Range<usize>, name: &str| {
        let text = &text[range.clone()];
        let chars = text.chars().count();
        let is_task = TASKS.contains(&name);
        Piece { message, range, is_task, chars, keep: chars, tokens: tokens(text) }
    };
    let mut pieces = Vec::new();
    let mut opened: Option<(&str, usize)> = None;
    for (at, _) in text.match_indices('<') {
        if let Some((name, start)) = opened.take()
            && text[at..].starts_with("</")
        {
            pieces.push(piece(start..at, name));
        }
        let Some(end) = text[at..].find('>').map(|end| at + end) else { break };
        let tag = &text[at + 1..end];
        let name = tag.split(' ').next().unwrap_or_default();
        let is_name = |name: &str| {
            !name.is_empty() && name.bytes().all(|byte| byte == b'_' || byte.is_ascii_lowercase())
        };
        opened = is_name(name).then_some((name, end + 1));
    }
    if pieces.is_empty() { vec![piece(0..text.len(), "")] } else { pieces }
}

fn cut(text: &str, keep: usize) -> String {
    let chars = text.chars().count();
    if chars <= keep {
        return text.to_owned();
    }
    let at = |char: usize| text.char_indices().nth(char).map_or(text.len(), |(at, _)| at);
    let head = keep - keep / 3;
    let head = &text[..at(head)];
    let tail = &text[at(chars - keep / 3)..];
    format!("{head}\n({} characters are left out here)\n{tail}", chars - keep)
}

/// Returns whether an endpoint rejected a request because it does not fit into the model's window.
pub(super) fn is_too_long(status: u16, message: &str) -> bool {
    let message = message.to_lowercase();
    let wording = [
        "context_length",
        "context length",
        "context window",
        "context size",
        "maximum context",
        "maximum model length",
        "maximum allowed length",
        "exceeds the context",
        "input length exceeds",
        "prompt is too long",
        "too many tokens",
        "input token count",
    ];
    // Some servers fail over it, in the middle of an answer as well.
    let is_failure =
        status == 500 && (message.contains("exceed") || message.contains("longer than"));
    (matches!(status, 400 | 413 | 422) || is_failure)
        && wording.iter().any(|words| message.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Role;

    fn request(messages: Vec<ChatMessage>) -> ChatRequest {
        ChatRequest {
            role: Role::Supervisor,
            thread: "t".into(),
            agent: None,
            stage: None,
            messages,
            tools: Vec::new(),
            format: None,
            manner: Default::default(),
        }
    }

    /// S1.06
    #[test]
    fn the_oldest_messages_are_removed_first_and_rules_and_task_stay() {
        let rules = "Rule. ".repeat(100);
        let talk: String = (0..20)
            .map(|n| {
                format!("<message role=\"user\">\nnumber {n} {}\n</message>\n", "x".repeat(900))
            })
            .collect();
        let prompt = format!("<user_request>\nthe task\n</user_request>\n{talk}\nDecide.");
        let whole = request(vec![ChatMessage::system(&rules), ChatMessage::user(prompt)]);
        assert!(fit(&whole, 100_000).is_none());
        let fitted = fit(&whole, 3_000).unwrap();
        assert!(count(&fitted) <= 3_000);
        let wording = &fitted.messages[1].content;
        assert_eq!(fitted.messages[0].content, rules);
        for stays in
            ["the task", "number 19", "number 18", "Decide.", "earlier messages are left out here)"]
        {
            assert!(wording.contains(stays), "{stays}: {wording}");
        }
        assert!(!wording.contains("number 3 "), "{wording}");
    }

    /// S1.06
    #[test]
    fn old_results_of_tools_go_before_new_ones_and_the_longest_material_is_cut() {
        let result = |n: usize| {
            ChatMessage::tool(
                format!("c{n}"),
                format!("<output>\nnumber {n} {}\n</output>", "y".repeat(9_000)),
            )
        };
        let mut messages =
            vec![ChatMessage::system("rules"), ChatMessage::user("<task>\nfind it\n</task>")];
        messages.extend((0..5).map(result));
        let fitted = fit(&request(messages), 2_000).unwrap();
        assert!(count(&fitted) <= 2_000, "{}", count(&fitted));
        let last = &fitted.messages[6].content;
        assert!(
            last.contains("number 4") && last.contains("characters are left out here)"),
            "{last}"
        );
        let left_out = &fitted.messages[2].content;
        assert!(left_out.starts_with("(the call was made; ") && !left_out.contains("again"));
        assert!(fitted.messages[1].content.contains("find it"));
    }

    #[test]
    fn a_task_that_does_not_fit_is_cut_in_its_middle() {
        let task = format!("<task>\nbegin {} end\n</task>", "z".repeat(5_000_000));
        let fitted = fit(&request(vec![ChatMessage::user(task)]), 1_000).unwrap();
        let wording = &fitted.messages[0].content;
        assert!(wording.contains("begin") && wording.contains("end") && count(&fitted) <= 1_000);
        assert!(is_too_long(400, "This model's maximum context length is 8192 tokens"));
        assert!(!is_too_long(500, "context length") && !is_too_long(400, "no such model"));
    }
}
