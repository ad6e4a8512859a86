//! Tells values that look like secrets, so that they are written as references and shown nowhere.

/// Words in a variable's, header's or option's name that announce a secret.
const NAMES: [&str; 9] =
    ["KEY", "TOKEN", "SECRET", "PASS", "PWD", "CREDENTIAL", "AUTH", "DSN", "DATABASE_URL"];

/// How the keys and tokens of well-known services begin.
const BEGINNINGS: [&str; 12] = [
    "sk-",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "AIza",
    "eyJ",
    "Bearer ",
];

/// Shorter values are modes and switches.
const SHORTEST: usize = 6;

/// Tells whether a variable of that name usually holds a secret.
pub(super) fn is_named(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    NAMES.iter().any(|word| name.contains(word))
}

/// Tells whether a value written under a name is a secret in plain text rather than a reference to one.
pub(super) fn is_plain(name: &str, value: &str) -> bool {
    let value = value.trim();
    if value.contains("${") || value.len() < SHORTEST {
        return false;
    }
    let known = BEGINNINGS.iter().any(|start| value.starts_with(start));
    let shaped = !value.contains(char::is_whitespace)
        && !value.starts_with(['/', '.', '~'])
        && !value.chars().all(|digit| digit.is_ascii_digit() || digit == '.');
    let in_address = has_password(value);
    known || in_address || (is_named(name) && shaped && !value.contains("://"))
}

/// Tells whether a value is an address with a password in it.
pub(super) fn has_password(value: &str) -> bool {
    let Some((_, rest)) = value.split_once("://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let user = authority.rsplit_once('@').map(|(user, _)| user);
    user.and_then(|user| user.split_once(':'))
        .is_some_and(|(_, password)| !password.is_empty() && !password.contains("${"))
}

/// Returns the places of the arguments that hold a secret in plain text, each with the option's name.
///
/// Both `--api-key=VALUE` and `--api-key VALUE` are seen.
pub(super) fn in_args(args: &[String]) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (index, arg) in args.iter().enumerate() {
        let option = |arg: &str| arg.trim_start_matches('-').to_owned();
        if let Some((name, value)) = arg.split_once('=').filter(|_| arg.starts_with('-')) {
            if is_plain(name, value) {
                found.push((index, option(name)));
            }
            continue;
        }
        let before = index.checked_sub(1).and_then(|before| args.get(before));
        let before = before.filter(|before| before.starts_with('-') && !before.contains('='));
        let name = before.map_or("", String::as_str);
        if !arg.starts_with('-') && is_plain(name, arg) {
            found.push((index, if name.is_empty() { "secret".into() } else { option(name) }));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_told_from_references_switches_and_paths() {
        for (name, value) in [
            ("API_KEY", "abc123def456"),
            ("ANYTHING", "ghp_0123456789"),
            ("authorization", "Bearer abcdef"),
            ("DATABASE_URL", "postgres://ann:hunter2@db/x"),
        ] {
            assert!(is_plain(name, value), "{name}={value}");
        }
        for (name, value) in [
            ("API_KEY", "${API_KEY}"),
            ("AUTH_MODE", "none"),
            ("TOKEN_LIMIT", "4000000"),
            ("PASSWORD_FILE", "/run/secrets/password"),
            ("DATABASE_URL", "postgres://db/x"),
            ("DATABASE_URL", "postgres://ann:${PW}@db/x"),
            ("REGION", "eu-central-1"),
        ] {
            assert!(!is_plain(name, value), "{name}={value}");
        }
        let args = ["--token", "abc123def", "--api-key=abc123def", "--root", "./documents"];
        let places = in_args(&args.map(str::to_owned));
        assert_eq!(places, [(1, "token".to_owned()), (2, "api-key".to_owned())]);
    }
}
