//! Recognizes values that look like secrets, so that they are written as references and never shown.

use std::ops::Range;

/// Words in a variable's, header's or option's name that announce a secret.
const NAMES: &str = "KEY TOKEN SECRET PASS PWD CREDENTIAL AUTH DSN DATABASE_URL COOKIE BEARER";

/// The same words separately, because they can be next to harmless ones.
const WHOLE_NAMES: [&str; 3] = ["PAT", "SIG", "JWT"];

/// How the keys and tokens of well-known services begin.
const BEGINNINGS: &str = "sk- sk_live_ sk_test_ rk_live_ rk_test_ whsec_ ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ glpat- \
     glptt- gldt- xoxb- xoxp- xoxa- xoxe- xoxs- xapp- AKIA ASIA AIza ya29. eyJ hf_ npm_ pypi- \
     dckr_pat_ dop_v1_ shpat_ SG. ATATT lin_api_ ntn_ figd_ xai- gsk_ tvly- nvapi- pplx- PMAK- \
     -----BEGIN";

/// The prefixes of a secret in a header.
const SCHEMES: [&str; 4] = ["bearer", "basic", "token", "apikey"];

/// Shorter values are modes and switches.
const SHORTEST: usize = 6;

/// Shorter random words are versions and numbers of things.
const RANDOM: usize = 12;

pub(super) fn is_named(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let mut words = name.split(|letter: char| !letter.is_ascii_alphanumeric());
    NAMES.split(' ').any(|word| name.contains(word))
        || words.any(|word| WHOLE_NAMES.contains(&word))
}

/// Returns whether the value of a variable is or contains a secret: by its name, its form, or because it looks random.
pub(super) fn is_variable(name: &str, value: &str) -> bool {
    // Names of a directory, not of a password.
    let is_directory = matches!(name, "PWD" | "OLDPWD");
    (is_named(name) && !is_directory) || !in_value(name, value).is_empty() || is_random(value)
}

/// Returns whether a long word in a value changes often between letters and digits or cases; a path is none.
fn is_random(value: &str) -> bool {
    let is_path = ["/", "./", "../", "~/"].iter().any(|start| value.starts_with(start));
    let is_change = |(a, b): &(u8, u8)| {
        a.is_ascii_digit() != b.is_ascii_digit() || a.is_ascii_lowercase() && b.is_ascii_uppercase()
    };
    let is_mixed = |word: &str| {
        let changes = word.bytes().zip(word.bytes().skip(1)).filter(is_change).count();
        word.len() >= RANDOM && changes * 4 >= word.len()
    };
    let joined = value.replace(['-', '_'], "");
    !is_path && joined.split(|letter: char| !letter.is_ascii_alphanumeric()).any(is_mixed)
}

/// Returns the parts of a value that are secrets in plain text, in order; each with a name for it.
///
/// Seen are values as a whole, `Bearer VALUE` and the like, `NAME=VALUE`, `Header: VALUE`, and addresses with a
/// password or with a key in their query.
pub(super) fn in_value(name: &str, value: &str) -> Vec<(Range<usize>, String)> {
    let trimmed = value.trim();
    let start = value.len() - value.trim_start().len();
    let at = |found: Vec<(Range<usize>, String)>, offset: usize| {
        found
            .into_iter()
            .map(move |(part, name)| (part.start + offset..part.end + offset, name))
            .collect()
    };
    if trimmed.contains("://") {
        return at(in_address(name, trimmed), start);
    }
    if let Some((inner, rest)) = named_part(trimmed) {
        let found = in_value(inner, rest);
        // What only looks like a name and a value may be a secret that ends in `=`.
        if !found.is_empty() {
            return at(found, start + trimmed.len() - rest.len());
        }
    }
    let (scheme, secret) = match trimmed.split_once(' ') {
        Some((scheme, rest)) if SCHEMES.contains(&scheme.to_ascii_lowercase().as_str()) => {
            (scheme, rest.trim_start())
        }
        _ => ("", trimmed),
    };
    if secret.contains("${") || secret.len() < SHORTEST {
        return Vec::new();
    }
    let known = is_known(secret) || !scheme.is_empty();
    // A cookie is several words.
    let is_cookie = name.to_ascii_uppercase().contains("COOKIE");
    let shaped = (is_cookie || !secret.contains(char::is_whitespace))
        && !secret.starts_with(['/', '.', '~'])
        && !secret.chars().all(|digit| digit.is_ascii_digit() || digit == '.');
    if known || (is_named(name) && shaped) {
        let begin = start + trimmed.len() - secret.len();
        vec![(begin..begin + secret.len(), name.to_owned())]
    } else {
        Vec::new()
    }
}

fn named_part(text: &str) -> Option<(&str, &str)> {
    let is_name = |name: &str, more: char| {
        name.starts_with(|first: char| first.is_ascii_alphabetic())
            && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == more)
    };
    let variable = text.split_once('=').filter(|(name, _)| is_name(name, '_'));
    variable.or_else(|| {
        let (name, value) = text.split_once(':').filter(|(name, _)| is_name(name, '-'))?;
        Some((name, value.trim_start()))
    })
}

/// Finds the secrets of an address: all of it if it contains a password, otherwise values of its query.
pub(super) fn in_address(name: &str, value: &str) -> Vec<(Range<usize>, String)> {
    let Some((_, rest)) = value.split_once("://") else { return Vec::new() };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let user = authority.rsplit_once('@').map(|(user, _)| user).filter(|user| !user.contains("${"));
    let is_secret = |user: &str| match user.split_once(':') {
        Some((user, password)) => !password.is_empty() || is_known(user),
        None => is_known(user),
    };
    if user.is_some_and(is_secret) {
        return vec![(0..value.len(), if name.is_empty() { "url" } else { name }.to_owned())];
    }
    let Some((before, query)) = value.split_once('?') else { return Vec::new() };
    let mut found = Vec::new();
    let mut at = before.len() + 1;
    for pair in query.split('#').next().unwrap_or_default().split('&') {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        for (part, name) in in_value(key, value) {
            let begin = at + pair.len() - value.len();
            found.push((begin + part.start..begin + part.end, name));
        }
        at += pair.len() + 1;
    }
    found
}

fn is_known(text: &str) -> bool {
    BEGINNINGS.split(' ').any(|start| text.starts_with(start))
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct InArgs {
    /// Of the argument.
    pub index: usize,
    pub part: Range<usize>,
    /// The option's, variable's or header's name.
    pub name: String,
}

/// Finds the secrets in plain text among arguments.
///
/// `--api-key=VALUE` and `--api-key VALUE` are seen, and `NAME=VALUE`, headers and addresses in either.
pub(super) fn in_args(args: &[String]) -> Vec<InArgs> {
    let option = |arg: &str| arg.trim_start_matches('-').to_owned();
    let mut found = Vec::new();
    for (index, arg) in args.iter().enumerate() {
        let before = index.checked_sub(1).and_then(|before| args.get(before));
        let before = before.filter(|before| before.starts_with('-') && !before.contains('='));
        let (name, value) = match arg.split_once('=').filter(|_| arg.starts_with('-')) {
            Some((name, value)) => (option(name), value),
            None if arg.starts_with('-') && !arg.starts_with("-----BEGIN") => continue,
            None => (before.map_or_else(String::new, |name| option(name)), arg.as_str()),
        };
        let offset = arg.len() - value.len();
        found.extend(in_value(&name, value).into_iter().map(|(part, name)| InArgs {
            index,
            part: part.start + offset..part.end + offset,
            name: if name.is_empty() { "secret".to_owned() } else { name },
        }));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_distinguished_from_references_switches_and_paths() {
        for (name, value) in [
            ("API_KEY", "abc123def456"),
            ("ANYTHING", "ghp_0123456789"),
            ("STRIPE", "rk_live_0123456789"),
            ("JIRA_PAT", "abc123def456"),
            ("API_KEY", "YWJjMTIzZGVmNDU2=="),
            ("authorization", "Bearer abcdef"),
            ("X-Custom", "Basic dXNlcjpwYXNz"),
            ("Cookie", "session=abcdef; theme=dark"),
            ("DATABASE_URL", "postgres://ann:hunter2@db/x"),
            ("REMOTE", "https://ghp_0123456789@github.com/x"),
            ("ENDPOINT", "https://h/mcp?region=eu&api_key=abcdef123"),
        ] {
            assert!(!in_value(name, value).is_empty(), "{name}={value}");
        }
        for (name, value) in [
            ("API_KEY", "${API_KEY}"),
            ("AUTH_MODE", "none"),
            ("TOKEN_LIMIT", "4000000"),
            ("PASSWORD_FILE", "/run/secrets/password"),
            ("DATABASE_URL", "postgres://db/x"),
            ("DATABASE_URL", "postgres://ann:${PW}@db/x"),
            ("REGION", "eu-central-1"),
            ("PATH", "relative-directory"),
            ("URL", "https://h/mcp?region=eu-west&api_key=${KEY}"),
            ("authorization", "Bearer ${TOKEN}"),
        ] {
            assert!(in_value(name, value).is_empty(), "{name}={value}");
        }
    }

    #[test]
    fn random_values_are_distinguished_from_names_dates_and_paths() {
        for value in [
            "550e8400-e29b-41d4-a716-446655440000",
            "9f8a7b6c5d4e3f2a1b0c",
            "tRq8ZkP0vXw2LmN4aBcD",
            "https://hooks.example/services/T0/aB3dE5gH7jK9mN1pQ",
        ] {
            assert!(is_variable("ANY", value), "{value}");
        }
        for value in [
            "production",
            "my-project-123456",
            "123456789012345",
            "2026-01-15T10:30:00Z",
            "node20-alpine3",
            "GitHubEnterpriseServer",
            "/srv/9f8a7b6c5d4e3f2a1b0c",
            "https://example.org/mcp",
        ] {
            assert!(!is_variable("ANY", value), "{value}");
        }
    }

    #[test]
    fn secrets_among_arguments_are_found_at_any_position() {
        let args = [
            "--token",
            "abc123def",
            "--api-key=abc123def",
            "--root",
            "./documents",
            "-e",
            "GITHUB_PAT=abc123def",
            "--env=K=ghp_abcdef",
            "--header",
            "Authorization: Bearer abc123def",
            "https://h/?key=abc123def&x=1",
            "-e",
            "MODE=production",
            "--label",
            "a: b",
        ];
        let args = args.map(str::to_owned);
        let found: Vec<_> = in_args(&args)
            .into_iter()
            .map(|one| (one.index, args[one.index][one.part].to_owned(), one.name))
            .collect();
        let reported: Vec<_> =
            found.iter().map(|(at, text, name)| (*at, &**text, &**name)).collect();
        assert_eq!(
            reported,
            [
                (1, "abc123def", "token"),
                (2, "abc123def", "api-key"),
                (6, "abc123def", "GITHUB_PAT"),
                (7, "ghp_abcdef", "K"),
                (9, "abc123def", "Authorization"),
                (10, "abc123def", "key"),
            ]
        );
    }
}
