//! Renders the prompt templates, with everything dynamic escaped.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, ValueKind};
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde::Serialize;
use serde_json::Value;

use super::{ChatMessage, ChatRequest, Error};
use perihelion_settings::config::strict;

/// The line of a template that ends its system part; the user part follows.
const USER_PART: &str = "<!-- user -->";

const TEMPLATES: [(&str, &str); 14] = [
    ("supervisor", include_str!("../../../prompts/supervisor.md")),
    ("supervisor_choice", include_str!("../../../prompts/supervisor_choice.md")),
    ("agent", include_str!("../../../prompts/agent.md")),
    ("reflector", include_str!("../../../prompts/reflector.md")),
    ("qa", include_str!("../../../prompts/qa.md")),
    ("feedback", include_str!("../../../prompts/feedback.md")),
    ("tool_result", include_str!("../../../prompts/tool_result.md")),
    ("instruction", include_str!("../../../prompts/instruction.md")),
    ("summarizer", include_str!("../../../prompts/summarizer.md")),
    ("extractor", include_str!("../../../prompts/extractor.md")),
    ("user_memory", include_str!("../../../prompts/user_memory.md")),
    ("architect", include_str!("../../../prompts/architect.md")),
    ("judge", include_str!("../../../prompts/judge.md")),
    ("judge_pair", include_str!("../../../prompts/judge_pair.md")),
];

/// The prompt templates, checked and ready.
///
/// Every interpolated value is escaped, after any filters, so no dynamic text can close its tag. A variable that is not
/// given is an error, never an empty text.
pub struct Prompts {
    environment: Environment<'static>,
    /// By template: whether it has a user part.
    parts: BTreeMap<String, bool>,
}

impl Prompts {
    /// Uses the embedded templates, and those in `dir` with the name `<name>.md`.
    ///
    /// # Errors
    /// [`Error::Prompt`] when the directory or a file cannot be read, a file there replaces no template, or
    /// a template is not well-formed.
    pub fn new(dir: Option<&Path>) -> Result<Self, Error> {
        Self::with(dir, [])
    }

    /// Does the same with further templates, each a name and its source, which the directory can replace as well.
    pub fn with(
        dir: Option<&Path>,
        more: impl IntoIterator<Item = (&'static str, &'static str)>,
    ) -> Result<Self, Error> {
        let templates: Vec<(&str, &str)> = TEMPLATES.into_iter().chain(more).collect();
        let names: Vec<&str> = templates.iter().map(|(name, _)| *name).collect();
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        environment.set_syntax(syntax.map_err(|error| refused("(all)", describe(&error)))?);
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.add_filter(IN_TAG, in_tag);
        environment.set_formatter(|output, _, value| match value.kind() {
            ValueKind::None => Ok(()),
            _ => output.write_str(&escape(&value.to_string())).map_err(minijinja::Error::from),
        });
        let mut prompts = Self { environment, parts: BTreeMap::new() };
        let mut replaced = match dir {
            Some(dir) => replacements(dir, &names)?,
            None => BTreeMap::new(),
        };
        for (name, embedded) in templates {
            let source = replaced.remove(name).unwrap_or_else(|| embedded.to_owned());
            prompts.add(name, &source)?;
        }
        Ok(prompts)
    }

    /// Renders a template to one text: the system part, and the user part after a blank line.
    ///
    /// # Errors
    /// [`Error::Prompt`] for an unknown template or a variable that `context` does not give.
    pub fn render(&self, name: &str, context: impl Serialize) -> Result<String, Error> {
        let messages = self.messages(name, context)?;
        Ok(messages.into_iter().map(|message| message.content).collect::<Vec<_>>().join("\n\n"))
    }

    /// Renders a template to messages: system, and user if the template has such a part.
    ///
    /// The parts are split in the template, not in the rendered text, so no value can move the border.
    pub fn messages(&self, name: &str, context: impl Serialize) -> Result<Vec<ChatMessage>, Error> {
        let Some(has_user_part) = self.parts.get(name) else {
            let known = self.parts.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            return Err(refused(name, format!("there is no such template; there are: {known}")));
        };
        let context = minijinja::Value::from(Serde(&context));
        let render = |part: &str| {
            let template = self.environment.get_template(&format!("{name}.{part}"));
            let text = template.and_then(|template| template.render(&context));
            text.map(|text| text.trim().to_owned()).map_err(|error| refused(name, describe(&error)))
        };
        let mut messages = vec![ChatMessage::system(render("system")?)];
        if *has_user_part {
            messages.push(ChatMessage::user(render("user")?));
        }
        Ok(messages)
    }

    fn add(&mut self, name: &str, source: &str) -> Result<(), Error> {
        let (system, user) = match source.split_once(USER_PART) {
            Some((system, user)) => (system, Some(user)),
            None => (source, None),
        };
        self.parts.insert(name.to_owned(), user.is_some());
        for (part, text) in [("system", Some(system)), ("user", user)] {
            let Some(text) = text else { continue };
            self.environment
                .add_template_owned(format!("{name}.{part}"), guarded(text))
                .map_err(|error| refused(name, describe(&error)))?;
        }
        Ok(())
    }
}

/// Reads the templates of a directory; each must replace an embedded one.
fn replacements(dir: &Path, names: &[&str]) -> Result<BTreeMap<String, String>, Error> {
    let unreadable = |error: std::io::Error| {
        refused(dir.display(), format!("the directory cannot be read: {error}"))
    };
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(dir).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let (Some(name), Some("md")) =
            (path.file_stem().and_then(|s| s.to_str()), path.extension().and_then(|s| s.to_str()))
        else {
            continue;
        };
        if name.eq_ignore_ascii_case("readme") {
            continue;
        }
        if !names.contains(&name) {
            let hint = strict::nearest(name, names.iter().copied())
                .map_or_else(|| names.join(", "), |near| format!("did you mean {near}.md?"));
            return Err(refused(path.display(), format!("it replaces no template: {hint}")));
        }
        let text =
            std::fs::read_to_string(&path).map_err(|error| refused(path.display(), error))?;
        found.insert(name.to_owned(), text);
    }
    Ok(found)
}

const IN_TAG: &str = "in_tag";

/// Writes a value for the inside of a tag, where a quotation mark would end an attribute.
fn in_tag(value: &minijinja::Value) -> String {
    match value.kind() {
        ValueKind::None => String::new(),
        _ => value.to_string().replace('"', "”").replace('\'', "’"),
    }
}

/// Applies the filter [`in_tag`] to every value inside of a tag.
fn guarded(source: &str) -> String {
    let mut guarded = String::with_capacity(source.len() + source.len() / 16);
    let mut rest = source;
    let mut is_in_tag = false;
    while let Some(at) = rest.find(['<', '>', '{']) {
        let (before, from) = rest.split_at(at);
        guarded.push_str(before);
        let code = [("{{", "}}"), ("{%", "%}"), ("{#", "#}")]
            .into_iter()
            .find(|(open, _)| from.starts_with(open))
            .and_then(|(open, close)| Some((open, from.find(close)? + close.len())));
        let end = match code {
            Some(("{{", end)) if is_in_tag => {
                let value = from[2..end - 2].trim_matches(['-', ' ']);
                guarded.push_str(&format!("{{{{ ({value}) | {IN_TAG} }}}}"));
                rest = &from[end..];
                continue;
            }
            Some((_, end)) => end,
            None => {
                let is_name = |next: char| next.is_ascii_alphabetic() || next == '/';
                match from.as_bytes().first() {
                    Some(b'<') => is_in_tag = from[1..].starts_with(is_name),
                    Some(b'>') => is_in_tag = false,
                    _ => {}
                }
                1
            }
        };
        guarded.push_str(&from[..end]);
        rest = &from[end..];
    }
    guarded + rest
}

/// Escapes a text for the content of an element in an XML-like prompt, and removes what no reader can see.
///
/// Quotation marks stay: escaped ones are several tokens each, and small models copy them. Values inside of tags lack it.
///
/// Control characters (except newline and tab), text direction marks and Unicode tag characters go: they carry
/// instructions past the eyes of a person. Escaping an escaped text is the caller's decision.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + text.len() / 16);
    for character in text.chars() {
        match character {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '\n' | '\t' => escaped.push(character),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e007f}' => {}
            control if control.is_control() => {}
            other => escaped.push(other),
        }
    }
    escaped
}

/// Cuts a text to a number of characters, and marks the cut.
pub fn clip(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Makes a text one line of bounded length, without control characters.
pub fn line(text: &str, chars: usize) -> String {
    let is_between = |letter: char| letter.is_whitespace() || letter.is_control();
    let words = text.split(is_between).filter(|word| !word.is_empty());
    clip(&words.collect::<Vec<_>>().join(" "), chars)
}

/// The replacements in XML; [`escape`] writes the first three.
const ESCAPES: [(&str, char); 5] =
    [("&lt;", '<'), ("&gt;", '>'), ("&amp;", '&'), ("&quot;", '"'), ("&apos;", '\'')];

/// Returns the escapes in a request: an answer that copies one means the character.
pub(super) fn escapes(request: &ChatRequest) -> Vec<(&'static str, char)> {
    let contents = request.messages.iter().map(|one| one.content.as_str());
    let contents: Vec<&str> = contents.filter(|text| text.contains('&')).collect();
    let is_used = |escape: &str| contents.iter().any(|text| text.contains(escape));
    ESCAPES.into_iter().filter(|(text, _)| is_used(text)).collect()
}

/// Returns whether a character of a text, at which `rest` begins, would not stand in a text that [`escape`] wrote.
pub(super) fn is_unescaped(rest: &str) -> bool {
    rest.starts_with('<')
        || rest.starts_with('&')
            && !ESCAPES.iter().any(|(text, _)| rest.starts_with(text) || text.starts_with(rest))
}

/// Replaces escapes in all texts of a value by their characters; a text that was not copied means its escapes.
pub(super) fn unescape(value: &mut Value, escapes: &[(&'static str, char)]) {
    match value {
        Value::String(text) if text.contains('&') => {
            if text.match_indices(['<', '&']).any(|(at, _)| is_unescaped(&text[at..])) {
                return;
            }
            // The ampersand last: `&amp;quot;` means `&quot;`.
            let last = |(text, _): &&(&'static str, char)| *text == "&amp;";
            let (last, first): (Vec<_>, Vec<_>) = escapes.iter().partition(last);
            for (escape, character) in first.into_iter().chain(last) {
                *text = text.replace(escape, character.encode_utf8(&mut [0; 4]));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| unescape(item, escapes)),
        Value::Object(fields) => fields.values_mut().for_each(|field| unescape(field, escapes)),
        _ => {}
    }
}

fn refused(name: impl Display, reason: impl Display) -> Error {
    Error::Prompt { name: name.to_string(), reason: reason.to_string() }
}

/// Describes a template error with its line; the default text repeats the template's internal name.
fn describe(error: &minijinja::Error) -> String {
    let detail = error.detail().map_or_else(String::new, |detail| format!(": {detail}"));
    let line = error.line().map_or_else(String::new, |line| format!(" (line {line} of its part)"));
    format!("{}{detail}{line}", error.kind())
}

#[cfg(test)]
#[path = "prompts_tests.rs"]
mod tests;
