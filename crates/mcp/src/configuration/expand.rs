//! Replaces `${VAR}` and `${VAR:-default}` in the values of the servers file, and locates values in their files.

use std::path::Path;

use toml_edit::{Document, Item, TableLike};

use super::{Error, Result, Secrets, secret};
use perihelion_settings::config::strict;

/// The lookup of variables; the process environment outside of tests.
pub(super) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Defaults within defaults; more of them are a mistake.
const DEEPEST: usize = 8;

/// Variables that every server started here receives; their values are no secrets.
pub(super) const INHERITED: &str = "PATH HOME USER LOGNAME SHELL TERM TZ TMPDIR LANG LANGUAGE LC_ALL \
     LC_COLLATE LC_CTYPE LC_MESSAGES LC_MONETARY LC_NUMERIC LC_TIME LC_PAPER XDG_CONFIG_HOME XDG_DATA_HOME";

/// Expands every variable in `text`; secrets among the values are noted.
///
/// An unset or empty variable takes its default, in which there may be variables again. A `$` without `{` stays
/// unchanged.
pub(super) fn expand(
    text: &str,
    env: Environment<'_>,
    secrets: &mut Secrets,
) -> Result<String, Unexpanded> {
    let mut unset = Vec::new();
    let expanded = expand_within(text, env, secrets, &mut unset, DEEPEST)?;
    match unset.into_iter().next() {
        Some(name) => Err(Unexpanded::Unset(name)),
        None => Ok(expanded),
    }
}

/// Lists the variables that `text` needs and that are not set.
pub(super) fn missing(text: &str, env: Environment<'_>) -> Vec<String> {
    let mut unset = Vec::new();
    // Anything else that is wrong with the text is reported when it is expanded.
    let _ = expand_within(text, env, &mut Secrets::default(), &mut unset, DEEPEST);
    unset
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unexpanded {
    #[error("a `${{` is not closed: {0}")]
    Open(String),
    #[error("not the name of an environment variable: {0}")]
    Name(String),
    #[error("defaults are nested deeper than {DEEPEST}: {0}")]
    Deep(String),
    #[error(
        "set it, or give a default as in ${{{0}:-value}}; this environment variable is not set: {0}"
    )]
    Unset(String),
}

impl EntryLocation<'_> {
    /// Returns the secret in a variable that is named under a key, without the space around it.
    pub(super) fn secret(
        &self,
        key: &str,
        variable: Option<&str>,
        env: Environment<'_>,
        secrets: &mut Secrets,
    ) -> Result<Option<String>> {
        let Some(variable) = variable else { return Ok(None) };
        let found = env(variable).filter(|secret| !secret.trim().is_empty()).ok_or_else(|| {
            self.error(key, format!("this environment variable is not set: {variable}"))
        })?;
        secrets.add(&found);
        Ok(Some(found.trim().to_owned()))
    }
}

/// Expands a text; unset variables are replaced by nothing, and listed.
fn expand_within(
    text: &str,
    env: Environment<'_>,
    secrets: &mut Secrets,
    unset: &mut Vec<String>,
    levels: usize,
) -> Result<String, Unexpanded> {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        expanded.push_str(before);
        let (reference, tail) =
            reference(after).ok_or_else(|| Unexpanded::Open(text.to_owned()))?;
        rest = tail;
        let (name, default) = match reference.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (reference, None),
        };
        if !is_variable_name(name) {
            return Err(Unexpanded::Name(name.to_owned()));
        }
        match (env(name).filter(|value| !value.is_empty() || default.is_none()), default) {
            (Some(value), _) => {
                note(name, &value, secrets);
                expanded.push_str(&value);
            }
            (None, Some(_)) if levels == 0 => {
                return Err(Unexpanded::Deep(text.to_owned()));
            }
            (None, Some(default)) => {
                expanded.push_str(&expand_within(default, env, secrets, unset, levels - 1)?);
            }
            (None, None) => unset.push(name.to_owned()),
        }
    }
    expanded.push_str(rest);
    Ok(expanded)
}

fn reference(text: &str) -> Option<(&str, &str)> {
    let mut open = 0;
    for (at, letter) in text.char_indices() {
        match letter {
            '{' if text.get(..at).is_some_and(|before| before.ends_with('$')) => open += 1,
            '}' if open == 0 => return Some((text.get(..at)?, text.get(at + 1..)?)),
            '}' => open -= 1,
            _ => {}
        }
    }
    None
}

/// Notes a value that came from the environment: a secret, or else one that is removed from the log alone.
pub(super) fn note(name: &str, value: &str, secrets: &mut Secrets) {
    if INHERITED.split(' ').any(|known| known == name) {
        return;
    }
    let mut logged = Secrets::default();
    let secrets = if secret::is_variable(name, value) { secrets } else { &mut logged };
    secrets.add(value);
}

fn is_variable_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

pub(super) struct EntryLocation<'a> {
    pub path: &'a Path,
    pub section: &'a str,
    pub server: &'a str,
}

impl EntryLocation<'_> {
    pub fn error(&self, key: &str, reason: impl Into<Reason>) -> Error {
        let dot = if key.is_empty() { "" } else { "." };
        Error::value(self.path, format!("{}.{}{dot}{key}", self.section, self.server), reason)
    }

    pub fn at<T>(&self, key: &str, read: Result<T, impl Into<Reason>>) -> Result<T> {
        read.map_err(|reason| self.error(key, reason))
    }
}

type Reason = Box<dyn std::error::Error + Send + Sync>;

pub(super) fn refuse(place: &EntryLocation<'_>, keys: &[(&str, bool)], why: &str) -> Result<()> {
    match keys.iter().find(|(_, set)| *set) {
        Some((key, _)) => Err(place.error(key, why)),
        None => Ok(()),
    }
}

/// Adds the line and column of its key to an error about a value of the file at `path`, if the key can be found.
pub(super) fn locate(path: &Path, text: &str, error: Error) -> Error {
    match error {
        Error::Value { path: named, key, source, .. } if named == path => {
            let place = offset(text, &key).map(|offset| strict::position(text, offset));
            Error::Value { path: named, place, key, source }
        }
        other => other,
    }
}

/// Returns the position of the deepest existing part of a dotted key.
fn offset(text: &str, key: &str) -> Option<usize> {
    let document = Document::parse(text).ok()?;
    let mut table: &dyn TableLike = document.as_table();
    let mut found = None;
    for part in key.split('.') {
        let Some((key, item)) = table.get_key_value(part) else { break };
        // A table's own header says more than the first of the dotted keys that it is made of.
        let place = match item {
            Item::Table(table) => table.span(),
            _ => None,
        };
        found = place.or_else(|| key.span()).map(|span| span.start).or(found);
        match item.as_table_like() {
            Some(next) => table = next,
            None => break,
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_may_be_a_variable_with_a_default() {
        let env = |name: &str| (name == "B").then(|| "of-b".to_owned());
        let expand = |text: &str| expand(text, &env, &mut Secrets::default());
        assert_eq!(expand("<${A:-${C:-z}}>").unwrap(), "<z>");
        assert_eq!(expand("${A:-x-${B}-${C:-q}}y").unwrap(), "x-of-b-qy");
        assert_eq!(expand("${B:-${C}}").unwrap(), "of-b", "what is not needed is not missed");
        assert_eq!(expand("${A:-${C}}"), Err(Unexpanded::Unset("C".to_owned())));
        assert!(matches!(expand("${A:-${C:-z}"), Err(Unexpanded::Open(_))));
        let deep = format!("{}z{}", "${A:-".repeat(10), "}".repeat(10));
        assert!(matches!(expand(&deep), Err(Unexpanded::Deep(_))));
    }

    #[test]
    fn every_missing_variable_without_a_default_is_listed() {
        let env = |name: &str| (name == "SET").then(|| "x".to_owned());
        let listed = missing("${A} ${SET} ${B:-${C}} ${D:-d} ${", &env);
        assert_eq!(listed, ["A", "C"]);
    }

    fn expanded(text: &str) -> Result<String, Unexpanded> {
        let env = |name: &str| match name {
            "TOKEN" => Some("s3cret-token".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        expand(text, &env, &mut Secrets::default())
    }

    #[test]
    fn a_set_variable_wins_over_its_default_and_an_unset_or_empty_one_takes_it() {
        assert_eq!(expanded("a ${TOKEN:-b} c").unwrap(), "a s3cret-token c");
        assert_eq!(expanded("${EMPTY:-b}${NOT:-}${NOT:-é}").unwrap(), "bé");
        assert_eq!(expanded("costs $5 ${EMPTY}").unwrap(), "costs $5 ");
    }

    #[test]
    fn an_unset_variable_without_default_is_named() {
        assert!(expanded("x ${NOT}").unwrap_err().to_string().ends_with("is not set: NOT"));
        assert!(matches!(expanded("${TOKEN"), Err(Unexpanded::Open(_))));
        assert!(expanded("${1A}").is_err());
    }

    #[test]
    fn values_from_the_environment_become_secrets_and_harmless_ones_do_not() {
        let mut secrets = Secrets::default();
        let env = |name: &str| {
            let value = match name {
                "HOME" => "/home/ada",
                "DB_PASSWORD" => "hunter22",
                "WORKSPACE" => "/home/ada/work",
                "PWD" => "/home/ada/here",
                "MODE" => "production",
                "ACCOUNT" => "100000",
                "HOSTED" => "https://ghp_0123456789@git.example/x",
                _ => "9f8a7b6c5d4e3f2a1b0c",
            };
            Some(value.to_owned())
        };
        let text =
            "${HOME} ${DB_PASSWORD} ${WORKSPACE} ${PWD} ${MODE} ${ACCOUNT} ${HOSTED} ${UNSURE}";
        let expanded = expand(text, &env, &mut secrets).unwrap();
        assert_eq!(
            secrets.redact(&expanded),
            "/home/ada [redacted] /home/ada/work /home/ada/here production 100000 [redacted] [redacted]"
        );
        assert_eq!(super::super::redact::redact_log("in production"), "in [redacted]");
    }
}
