//! Separates what a model writes into one text: its reasoning, tool calls, marks of its chat template, and the answer.
//!
//! Enter at [`Cleaner`], which reads answers of every role, whole or piece by piece. A mark inside code or quotation
//! marks is part of the text. Deliberately absent: what a written call means, which `written_calls` decides.

use crate::{ChatRequest, prompts::escapes};

/// What a mark begins or ends.
#[derive(Clone, Copy)]
enum Mark {
    /// Reasoning up to the given mark.
    Reasoning(&'static str),
    /// The end of reasoning whose beginning the chat template wrote into the prompt.
    ReasoningEnd,
    /// A tool call up to the given mark or the end of the answer.
    Call(&'static str),
    /// The channel of a harmony message, whose body follows `<|message|>`.
    Channel,
    /// The author of a harmony message.
    Author,
    /// A mark that carries no text.
    Template,
    /// An escaped character, as prompts write it.
    Escape(char),
}

const MARKS: [(&str, Mark); 29] = [
    ("<think>", Mark::Reasoning("</think>")),
    ("<thinking>", Mark::Reasoning("</thinking>")),
    ("<thought>", Mark::Reasoning("</thought>")),
    ("<reasoning>", Mark::Reasoning("</reasoning>")),
    ("<seed:think>", Mark::Reasoning("</seed:think>")),
    ("[THINK]", Mark::Reasoning("[/THINK]")),
    ("◁think▷", Mark::Reasoning("◁/think▷")),
    ("<|START_THINKING|>", Mark::Reasoning("<|END_THINKING|>")),
    ("<|begin_of_thought|>", Mark::Reasoning("<|end_of_thought|>")),
    ("<|channel>thought", Mark::Reasoning("<channel|>")),
    ("</think>", Mark::ReasoningEnd),
    ("</thinking>", Mark::ReasoningEnd),
    ("[/THINK]", Mark::ReasoningEnd),
    ("◁/think▷", Mark::ReasoningEnd),
    ("<|END_THINKING|>", Mark::ReasoningEnd),
    ("<tool_call>", Mark::Call("</tool_call>")),
    ("<function_call>", Mark::Call("</function_call>")),
    ("<function=", Mark::Call("</function>")),
    ("[TOOL_CALLS]", Mark::Call("</s>")),
    ("<|python_tag|>", Mark::Call("<|eom_id|>")),
    ("<|channel|>", Mark::Channel),
    ("<|start|>", Mark::Author),
    ("<|message|>", Mark::Template),
    ("<|end|>", Mark::Template),
    ("<|return|>", Mark::Template),
    ("<|call|>", Mark::Template),
    ("<|im_end|>", Mark::Template),
    ("<|eot_id|>", Mark::Template),
    ("<|endoftext|>", Mark::Template),
];

/// The marks that end the body of a harmony message.
const MESSAGE_ENDS: [&str; 5] = ["<|end|>", "<|return|>", "<|call|>", "<|start|>", "<|channel|>"];

const LONGEST: usize = 24;

/// Characters of a streamed answer that are held back until its beginning shows whether it is reasoning. An answer that
/// breaks off within them is asked for again, for nobody has read any of it.
const OPENING: usize = 40;

/// Beginnings of reasoning whose first mark is missing, in small letters.
const THOUGHTS: [&str; 16] = [
    "okay",
    "ok,",
    "alright",
    "hmm",
    "let me",
    "let's",
    "first, i",
    "we need",
    "the user",
    "i need to",
    "i should",
    "so,",
    "so the",
    "wait",
    "thinking",
    "analysis",
];

/// Where harmony's marks were lost, the names of its channels stay in the text.
const BARE_ANALYSIS: &str = "analysis";
const BARE_FINAL: &str = "assistantfinal";

/// A tool call as the model wrote it.
pub(super) struct WrittenCall {
    /// The tool, where a mark outside the body names it.
    pub name: Option<String>,
    pub body: String,
}

/// What an answer consists of.
#[derive(Default)]
pub(super) struct Cleaned {
    pub content: String,
    pub reasoning: String,
    pub calls: Vec<WrittenCall>,
    /// The chat template begins the reasoning, so that the answer holds only its end.
    pub is_begun_by_template: bool,
}

/// What the text after the last mark is.
enum Inside {
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
    /// The body of a harmony message that is not the answer.
    Analysis,
    Commentary,
}

/// Cleans an answer while it arrives.
pub(super) struct Cleaner {
    marks: Vec<(&'static str, Mark)>,
    inside: Inside,
    /// The body of what is no answer, as far as it has arrived.
    body: String,
    /// What arrived last, from `read` on not certain yet: it may be a part of a mark.
    pending: String,
    read: usize,
    cleaned: Cleaned,
    /// The tool that a harmony message is addressed to.
    recipient: Option<String>,
    /// Ends of code blocks in so many bytes of the content.
    fences: usize,
    counted: usize,
    /// Bytes of the content that were handed out.
    given: usize,
    is_buffered: bool,
    expects_reasoning: bool,
    has_tools: bool,
}

impl Cleaner {
    /// Prepares for the answer to a request; `expects_reasoning` holds it back until its reasoning has ended.
    pub(super) fn new(request: &ChatRequest, expects_reasoning: bool) -> Self {
        let mut marks = MARKS.to_vec();
        // In JSON a quotation mark must stay escaped until the text has been parsed.
        if request.format.is_none() {
            let escapes = escapes(request).into_iter();
            marks.extend(escapes.map(|(text, character)| (text, Mark::Escape(character))));
        }
        Self {
            marks,
            inside: Inside::Answer,
            body: String::new(),
            pending: String::new(),
            read: 0,
            cleaned: Cleaned::default(),
            recipient: None,
            fences: 0,
            counted: 0,
            given: 0,
            is_buffered: true,
            expects_reasoning,
            has_tools: !request.tools.is_empty(),
        }
    }

    /// Takes a piece in, and returns what of the answer can be shown by now; `is_apart` tells that the endpoint sends
    /// the reasoning beside the answer.
    pub(super) fn push(&mut self, piece: &str, is_apart: bool) -> String {
        self.pending.push_str(piece);
        self.advance(false);
        if self.is_buffered && !is_apart && self.may_be_reasoning() {
            return String::new();
        }
        self.is_buffered = false;
        self.fresh()
    }

    /// Returns what of the answer was not shown yet, and the whole.
    pub(super) fn finish(mut self) -> (String, Cleaned) {
        self.advance(true);
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

    fn fresh(&mut self) -> String {
        let fresh = self.cleaned.content.get(self.given..).unwrap_or_default().to_owned();
        self.given = self.cleaned.content.len();
        fresh
    }

    fn may_be_reasoning(&self) -> bool {
        if self.cleaned.is_begun_by_template {
            return false;
        }
        let opening: String = self.cleaned.content.chars().take(OPENING).collect();
        let opening = opening.to_lowercase();
        self.expects_reasoning
            || opening.chars().count() < OPENING
            // It may be a call that is written as bare JSON.
            || self.has_tools && opening.starts_with(['{', '[', '`'])
            || THOUGHTS.iter().any(|thought| opening.starts_with(thought))
    }

    /// Reads what is pending as far as it is certain.
    fn advance(&mut self, is_over: bool) {
        while self.read < self.pending.len() {
            let has_ended = match self.inside {
                Inside::Answer => self.read_answer(is_over),
                Inside::Reasoning { close, .. } | Inside::Call { close, .. } => {
                    self.read_body(&[close], is_over)
                }
                Inside::Author => self.read_body(&["<|channel|>", "<|message|>"], is_over),
                Inside::Channel => self.read_body(&["<|message|>"], is_over),
                Inside::Analysis | Inside::Commentary => self.read_body(&MESSAGE_ENDS, is_over),
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
            found = self.marks.iter().copied().find(|(mark, _)| rest.starts_with(mark));
            let is_open = !is_over && self.marks.iter().any(|(mark, _)| mark.starts_with(rest));
            if found.is_some() || is_open {
                end = at;
                break;
            }
        }
        self.say(&fresh[..end]);
        self.read += end;
        self.pending = pending;
        let Some((text, mark)) = found else { return false };
        self.read += text.len();
        let is_text = match mark {
            Mark::Escape(_) => false,
            Mark::ReasoningEnd => self.is_quoted() || self.cleaned.content.starts_with('{'),
            _ => self.is_quoted(),
        };
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
            Mark::ReasoningEnd => {
                let reasoning = std::mem::take(&mut self.cleaned.content);
                self.cleaned.reasoning.push_str(&reasoning);
                self.cleaned.is_begun_by_template = true;
                self.given = 0;
                self.fences = 0;
                self.counted = 0;
            }
        }
    }

    /// Reads the body of what is no answer up to one of its ends; returns whether it ended.
    fn read_body(&mut self, ends: &[&str], is_over: bool) -> bool {
        let fresh = &self.pending[self.read..];
        let ended = ends.iter().filter_map(|end| Some((fresh.find(end)?, end.len()))).min();
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
            Inside::Reasoning { .. } | Inside::Analysis => {
                self.cleaned.reasoning.push_str(&body);
                Inside::Answer
            }
            Inside::Call { open, .. } => {
                let body = if open == "<function=" { format!("{open}{body}") } else { body };
                self.cleaned.calls.push(WrittenCall { name: None, body });
                Inside::Answer
            }
            Inside::Commentary => {
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
                    Some("analysis") => Inside::Analysis,
                    Some("commentary") => Inside::Commentary,
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

    /// Tells whether what follows is quoted or stands in a block of code.
    fn is_quoted(&mut self) -> bool {
        let fresh = &self.cleaned.content[self.counted..];
        self.fences += fresh.matches("```").count();
        let open = (fresh.len() - fresh.trim_end_matches('`').len()) % 3;
        self.counted = self.cleaned.content.len() - open;
        !self.fences.is_multiple_of(2)
            || self.cleaned.content.ends_with(['`', '"', '\'', '“', '„', '«'])
    }
}

fn recipient(header: &str) -> Option<String> {
    let name = header.split_once("to=")?.1.split(|c: char| c.is_whitespace() || c == '<').next()?;
    let name = name.strip_prefix("functions.").unwrap_or(name);
    (!name.is_empty() && name != "assistant" && name != "user").then(|| name.to_owned())
}
