//! Splits a model's text: its reasoning, tool calls, marks of its chat template, and the answer.
//!
//! Enter at [`Cleaner`], which reads answers of every role, whole or piece by piece. A mark inside code or quotation
//! marks is part of the text. Deliberately absent: the meaning of a written call, which `written_calls` decides.

use crate::ChatRequest;
use crate::marks::{LONGEST, MARKS, MESSAGE_ENDS, Mark, QUOTE_ENDS, QUOTES, TEMPLATE, THOUGHTS};
use crate::prompts::{escapes, is_unescaped};

/// Characters of a streamed answer that are delayed until it is clear whether its beginning is reasoning. An answer
/// that breaks off within them is requested again, because no reader has seen it.
const OPENING: usize = 40;

/// If harmony's marks were lost, the names of its channels stay in the text.
const BARE_ANALYSIS: &str = "analysis";
const BARE_FINAL: &str = "assistantfinal";

pub(super) struct WrittenCall {
    /// The tool, if a mark outside the body names it.
    pub name: Option<String>,
    pub body: String,
}

#[derive(Default)]
pub(super) struct Cleaned {
    pub content: String,
    pub reasoning: String,
    pub calls: Vec<WrittenCall>,
    /// The chat template begins the reasoning, so that the answer has only its end.
    pub is_begun_by_template: bool,
}

/// The kind of the text after the last mark.
#[derive(Default)]
enum Inside {
    #[default]
    Answer,
    Reasoning {
        open: &'static str,
        close: &'static str,
    },
    Call {
        open: &'static str,
        close: &'static str,
    },
    Author,
    Channel,
    /// The body of a harmony message that is not the answer: a call if it has a recipient, otherwise reasoning.
    Aside,
}

#[derive(Default)]
pub(super) struct Cleaner {
    marks: Vec<(&'static str, Mark)>,
    inside: Inside,
    /// The body of a part that is not the answer, as received so far.
    body: String,
    /// The last received text, uncertain from `read` on: it may be a part of a mark.
    pending: String,
    read: usize,
    cleaned: Cleaned,
    /// Reasoning was at the beginning, so that no later mark ends it.
    has_reasoned: bool,
    /// The bytes of the reasoning, and of the content that was handed out, before the content became reasoning.
    moved: Option<(usize, usize)>,
    /// The tool that a harmony message is addressed to.
    recipient: Option<String>,
    /// Ends of code blocks in the first bytes of the content.
    fences: usize,
    counted: usize,
    /// Bytes of the content that were handed out.
    given: usize,
    is_buffered: bool,
    expects_reasoning: bool,
    has_tools: bool,
    /// The text has characters that its prompt escapes, so escapes in it are meant as such.
    is_unescaped: bool,
}

impl Cleaner {
    /// Prepares for the answer to a request; `expects_reasoning` delays it until its reasoning has ended.
    pub(super) fn new(request: &ChatRequest, expects_reasoning: bool) -> Self {
        let mut marks = MARKS.to_vec();
        marks.extend(TEMPLATE.split(' ').map(|mark| (mark, Mark::Template)));
        marks.extend(MARKS.iter().filter_map(|(_, mark)| match mark {
            Mark::Reasoning(close) => Some((*close, Mark::ReasoningEnd)),
            _ => None,
        }));
        // In JSON a quotation mark must stay escaped until the text has been parsed.
        if request.format.is_none() {
            let escapes = escapes(request).into_iter();
            marks.extend(escapes.map(|(text, character)| (text, Mark::Escape(character))));
        }
        Self {
            marks,
            is_buffered: true,
            expects_reasoning,
            has_tools: !request.tools.is_empty(),
            ..Self::default()
        }
    }

    /// Accepts a piece, and returns the certain part of the answer; `is_apart` means that the endpoint sends the
    /// reasoning separately.
    pub(super) fn push(&mut self, piece: &str, is_apart: bool) -> String {
        // Databases keep no text with zeros.
        self.pending.extend(piece.split('\0'));
        self.advance(false);
        if self.is_buffered && !is_apart && self.may_be_reasoning() {
            return String::new();
        }
        self.is_buffered = false;
        self.fresh()
    }

    /// Returns the rest of the answer, and the whole.
    pub(super) fn finish(mut self) -> (String, Cleaned) {
        self.advance(true);
        self.restore();
        let content = &self.cleaned.content;
        if content.starts_with(BARE_ANALYSIS)
            && let Some(at) = content.rfind(BARE_FINAL)
        {
            let answer = content[at + BARE_FINAL.len()..].trim_start().to_owned();
            let reasoning = content[BARE_ANALYSIS.len()..at].to_owned();
            self.cleaned.reasoning.push_str(&reasoning);
            self.cleaned.content = answer;
        }
        let last = self.fresh();
        (last, self.cleaned)
    }

    /// Gives text back that became reasoning by a mark after which nothing follows.
    fn restore(&mut self) {
        let cleaned = &mut self.cleaned;
        let is_empty = cleaned.content.is_empty() && cleaned.calls.is_empty();
        let Some((start, given)) = self.moved.filter(|_| is_empty && !self.expects_reasoning)
        else {
            return;
        };
        if begins_as_thought(&cleaned.reasoning[start..]) {
            return;
        }
        cleaned.content = cleaned.reasoning.split_off(start);
        cleaned.is_begun_by_template = false;
        self.given = given;
    }

    fn fresh(&mut self) -> String {
        let fresh = self.cleaned.content.get(self.given..).unwrap_or_default().to_owned();
        self.given = self.cleaned.content.len();
        fresh
    }

    fn may_be_reasoning(&self) -> bool {
        if self.cleaned.is_begun_by_template {
            return false;
        }
        let content = &self.cleaned.content;
        self.expects_reasoning
            || content.chars().nth(OPENING - 1).is_none()
            // It may be a call that is written as bare JSON.
            || self.has_tools && content.starts_with(['{', '[', '`'])
            || begins_as_thought(content)
    }

    /// Reads the certain part of the pending text.
    fn advance(&mut self, is_over: bool) {
        while self.read < self.pending.len() {
            let has_ended = match self.inside {
                Inside::Answer => self.read_answer(is_over),
                Inside::Reasoning { close, .. } | Inside::Call { close, .. } => {
                    self.read_body(&[close], is_over)
                }
                Inside::Author => self.read_body(&["<|channel|>", "<|message|>"], is_over),
                Inside::Channel => self.read_body(&["<|message|>"], is_over),
                Inside::Aside => self.read_body(&MESSAGE_ENDS, is_over),
            };
            if !has_ended {
                break;
            }
        }
        if is_over && !matches!(self.inside, Inside::Answer) {
            self.end_body(false);
        }
        self.pending.drain(..self.read);
        self.read = 0;
    }

    /// Reads text of the answer up to the next mark; returns whether there was one.
    fn read_answer(&mut self, is_over: bool) -> bool {
        let pending = std::mem::take(&mut self.pending);
        let fresh = &pending[self.read..];
        let mut end = fresh.len();
        let mut found = None;
        for (at, _) in fresh.match_indices(['<', '[', '◁', '&']) {
            let rest = &fresh[at..];
            found = self.marks.iter().copied().find(|(mark, _)| begins_with(rest, mark));
            let is_open = !is_over && self.marks.iter().any(|(mark, _)| begins_with(mark, rest));
            if found.is_some() || is_open {
                end = at;
                break;
            }
            self.is_unescaped |= is_unescaped(rest);
        }
        self.say(&fresh[..end]);
        self.read += end;
        let after = found.map_or("", |(text, _)| &fresh[end + text.len()..]);
        let may_be_prose = !self.expects_reasoning
            && self.cleaned.content.ends_with([' ', '('])
            && !begins_as_thought(&self.cleaned.content);
        let is_clear = is_over || !may_be_prose || !after.trim_start_matches(' ').is_empty();
        let is_prose = may_be_prose && continues_sentence(after);
        self.pending = pending;
        let Some((text, mark)) = found else { return false };
        let is_open = !is_over && self.read + text.len() == self.pending.len();
        let is_text = match mark {
            // The character after it shows whether it is quoted alone.
            Mark::Escape(_) if is_open && self.cleaned.content.ends_with(QUOTES) => return false,
            Mark::Escape(_) => {
                let is_named = self.pending[self.read + text.len()..].starts_with(QUOTE_ENDS);
                self.is_unescaped || self.cleaned.content.ends_with(QUOTES) && is_named
            }
            Mark::ReasoningEnd if !is_clear => return false,
            Mark::ReasoningEnd => {
                is_prose || self.is_quoted() || self.cleaned.content.starts_with('{')
            }
            _ => self.is_quoted(),
        };
        self.read += text.len();
        if is_text {
            self.say(text);
        } else {
            self.enter(text, mark);
        }
        true
    }

    fn enter(&mut self, open: &'static str, mark: Mark) {
        match mark {
            Mark::Reasoning(close) => self.inside = Inside::Reasoning { open, close },
            Mark::Call(close) => self.inside = Inside::Call { open, close },
            Mark::Channel => self.inside = Inside::Channel,
            Mark::Author => self.inside = Inside::Author,
            Mark::Template => {}
            Mark::Escape(character) => self.say(character.encode_utf8(&mut [0; 4])),
            Mark::ReasoningEnd if self.has_reasoned => {}
            Mark::ReasoningEnd => {
                self.has_reasoned = true;
                self.moved = Some((self.cleaned.reasoning.len(), self.given));
                let reasoning = std::mem::take(&mut self.cleaned.content);
                self.cleaned.reasoning.push_str(&reasoning);
                self.cleaned.is_begun_by_template = true;
                self.given = 0;
                self.is_unescaped = false;
                self.fences = 0;
                self.counted = 0;
            }
        }
    }

    /// Reads the body of a part up to one of its ends; returns whether it ended.
    fn read_body(&mut self, ends: &[&str], is_over: bool) -> bool {
        let fresh = &self.pending[self.read..];
        let small = fresh.to_ascii_lowercase();
        let place = |end: &&str| Some((small.find(&end.to_ascii_lowercase())?, end.len()));
        let ended = ends.iter().filter_map(place).min();
        let taken = match ended {
            Some((at, _)) => at,
            None if is_over => fresh.len(),
            None => fresh.floor_char_boundary(fresh.len().saturating_sub(LONGEST)),
        };
        self.body.push_str(&fresh[..taken]);
        self.read += taken;
        let Some((_, length)) = ended else { return false };
        // The marks of harmony end one part and begin the next.
        if matches!(self.inside, Inside::Reasoning { .. } | Inside::Call { .. }) {
            self.read += length;
        }
        self.end_body(true);
        true
    }

    fn end_body(&mut self, is_closed: bool) {
        let body = std::mem::take(&mut self.body);
        let next = match std::mem::replace(&mut self.inside, Inside::Answer) {
            Inside::Reasoning { open, .. } if !is_closed && !self.cleaned.content.is_empty() => {
                self.say(open);
                self.say(&body);
                Inside::Answer
            }
            Inside::Reasoning { .. } => {
                self.has_reasoned |= self.cleaned.content.is_empty();
                self.cleaned.reasoning.push_str(&body);
                Inside::Answer
            }
            Inside::Call { open, .. } => {
                let is_named = ["<function=", "<invoke name=\""].contains(&open);
                let body = if is_named { format!("{open}{body}") } else { body };
                self.cleaned.calls.push(WrittenCall { name: None, body });
                Inside::Answer
            }
            Inside::Aside => {
                match self.recipient.take() {
                    Some(name) => {
                        self.cleaned.calls.push(WrittenCall { name: Some(name), body });
                    }
                    None => self.cleaned.reasoning.push_str(&body),
                }
                Inside::Answer
            }
            Inside::Author => {
                self.recipient = recipient(&body);
                Inside::Answer
            }
            Inside::Channel => {
                self.recipient = recipient(&body).or_else(|| self.recipient.take());
                match body.split_whitespace().next() {
                    Some("analysis" | "commentary") => Inside::Aside,
                    _ => Inside::Answer,
                }
            }
            Inside::Answer => Inside::Answer,
        };
        self.inside = next;
        const BEGIN: &str = "<|message|>";
        if !matches!(self.inside, Inside::Answer) && self.pending[self.read..].starts_with(BEGIN) {
            self.read += BEGIN.len();
        }
    }

    /// Adds text to the answer, which begins with no white space and no byte order mark.
    fn say(&mut self, text: &str) {
        let is_empty = self.cleaned.content.is_empty();
        let no_text = |character: char| character.is_whitespace() || character == '\u{feff}';
        let text = if is_empty { text.trim_start_matches(no_text) } else { text };
        self.cleaned.content.push_str(text);
    }

    fn is_quoted(&mut self) -> bool {
        let fresh = &self.cleaned.content[self.counted..];
        self.fences += fresh.matches("```").count();
        let open = (fresh.len() - fresh.trim_end_matches('`').len()) % 3;
        self.counted = self.cleaned.content.len() - open;
        !self.fences.is_multiple_of(2) || self.cleaned.content.ends_with(QUOTES)
    }
}

/// Compares without regard to case: models also write marks in capital letters.
fn begins_with(text: &str, mark: &str) -> bool {
    text.get(..mark.len()).is_some_and(|start| start.eq_ignore_ascii_case(mark))
}

/// Returns whether a text begins as reasoning does whose first mark is missing.
fn begins_as_thought(text: &str) -> bool {
    let opening: String = text.chars().take(OPENING).collect();
    let opening = opening.to_lowercase();
    THOUGHTS.iter().any(|thought| opening.starts_with(thought))
}

/// Returns whether a text after a mark shows that a sentence names the mark.
fn continues_sentence(after: &str) -> bool {
    let is_small = |text: &str| text.trim_start_matches(' ').starts_with(char::is_lowercase);
    after.starts_with([',', ';', ':', '.', '?', '!', ')'])
        || after.strip_prefix(' ').is_some_and(is_small)
}

fn recipient(header: &str) -> Option<String> {
    let name = header.split_once("to=")?.1.split(|c: char| c.is_whitespace() || c == '<').next()?;
    let name = name.strip_prefix("functions.").unwrap_or(name);
    (!name.is_empty() && name != "assistant" && name != "user").then(|| name.to_owned())
}
