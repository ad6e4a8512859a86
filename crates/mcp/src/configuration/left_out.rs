//! Servers that cannot be used as things stand: they are left out with the reason, and the others stay.

use super::{
    entry_location::EntryLocation, expand::Environment, expand::missing as missing_in, table::Table,
};

/// A server that is left out until somebody does something about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unusable {
    pub server: String,
    /// What is wrong, and the way out.
    pub reason: String,
    /// The start of the program fails because of it.
    pub required: bool,
}

/// Lists the variables that a table needs and that are not set; nothing is demanded of a disabled server.
pub(super) fn missing(table: &Table, env: Environment<'_>) -> Vec<String> {
    if !table.is_enabled() {
        return Vec::new();
    }
    let texts = table.command.iter().chain(&table.args).chain(&table.cwd).chain(&table.url);
    let values = table.env.values().chain(table.http_headers.values());
    let sandbox = table.sandbox.iter();
    let paths = sandbox.flat_map(|sandbox| sandbox.read_only.iter().chain(&sandbox.writable));
    let mut names: Vec<String> =
        texts.chain(values).chain(paths).flat_map(|text| missing_in(text, env)).collect();
    let secret = table.oauth.as_ref().and_then(|oauth| oauth.client_secret_env_var.as_ref());
    let tokens = table.bearer_token_env_var.iter().chain(secret);
    let is_unset = |name: &&String| env(name).is_none_or(|value| value.trim().is_empty());
    names.extend(tokens.filter(is_unset).cloned());
    let mut seen = std::collections::BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}

/// Says what is missing, all of it at once.
pub(super) fn reason(place: &EntryLocation<'_>, missing: &[String]) -> String {
    let path = place.path.display();
    match missing {
        [name] => format!(
            "set it, or give a default as in ${{{name}:-value}} in {path}; this environment variable is not set: {name}"
        ),
        names => format!(
            "set them, or give defaults as in ${{NAME:-value}} in {path}; these environment variables are not set: {}",
            names.join(", ")
        ),
    }
}
