//! Reads an environment file as python-dotenv does, with which LangGraph's own server reads it.

use std::collections::BTreeMap;

/// Parses the lines `NAME=VALUE` of an environment file. A quoted value can have several lines, and escapes.
///
/// # Errors
/// The number of the line with a quote that is not closed.
pub(crate) fn variables(text: &str) -> Result<BTreeMap<String, String>, usize> {
    let mut found = BTreeMap::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (line, mut next) = rest.split_once('\n').unwrap_or((rest, ""));
        let line = line.trim();
        let named = line.strip_prefix("export ").unwrap_or(line).split_once('=');
        if let Some((name, plain)) = named.filter(|_| !line.starts_with('#')) {
            // Read from the whole text, because a quoted value can continue after this line.
            let value = rest.split_once('=').map_or("", |(_, value)| value);
            let value = value.trim_start_matches([' ', '\t']);
            let quote = ['"', '\''].into_iter().find(|quote| value.starts_with(*quote));
            let value = if let Some(quote) = quote {
                let unclosed = || text.lines().count() - rest.lines().count() + 1;
                let inside = value.strip_prefix(quote).unwrap_or(value);
                let (value, after) = quoted(inside, quote).ok_or_else(unclosed)?;
                next = after.split_once('\n').map_or("", |(_, next)| next);
                value
            } else {
                let plain = plain.trim();
                let mut marks = plain.match_indices('#').map(|(at, _)| at);
                let end = marks.find(|at| plain[..*at].ends_with([' ', '\t']));
                plain[..end.unwrap_or(plain.len())].trim().to_owned()
            };
            found.insert(name.trim().to_owned(), filled(&value, &found));
        }
        rest = next;
    }
    Ok(found)
}

/// Reads up to the closing quote, and returns the value and the text after it.
fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut letters = text.chars();
    loop {
        let letter = letters.next()?;
        if letter == quote {
            return Some((value, letters.as_str()));
        }
        if letter != '\\' {
            value.push(letter);
            continue;
        }
        match (letters.next()?, quote) {
            (escaped @ ('\\' | '\''), _) | (escaped @ '"', '"') => value.push(escaped),
            ('n', '"') => value.push('\n'),
            ('r', '"') => value.push('\r'),
            ('t', '"') => value.push('\t'),
            (other, _) => value.extend(['\\', other]),
        }
    }
}

/// Replaces `${NAME}` and `${NAME:-DEFAULT}` by earlier variables of the file, or by those of the environment.
fn filled(value: &str, earlier: &BTreeMap<String, String>) -> String {
    let mut filled = String::new();
    let mut rest = value;
    while let Some((before, after)) = rest.split_once("${")
        && let Some((inside, after)) = after.split_once('}')
    {
        let (name, default) = inside.split_once(":-").unwrap_or((inside, ""));
        let known = earlier.get(name).cloned().or_else(|| std::env::var(name).ok());
        filled.push_str(before);
        filled.push_str(known.as_deref().unwrap_or(default));
        rest = after;
    }
    filled + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_python_dotenv_reads_them() {
        for (text, value) in [
            ("A=1 # one\n", "1"),
            ("A=1\t# one", "1"),
            ("A=1#2", "1#2"),
            ("# a key\n\nexport A=\"a b\" # mine", "a b"),
            ("A = 'it' # mine", "it"),
            (r#"A="-----BEGIN\nabc\n""#, "-----BEGIN\nabc\n"),
            (r#"A="a\"b\\c\d""#, r#"a"b\c\d"#),
            (r"A='a\'b\n'", r"a'b\n"),
            ("A=\"one\ntwo=2\" # both\nB=3", "one\ntwo=2"),
            ("B=x\nA=${B}-${NO_SUCH_VARIABLE:-y}${NO_SUCH_VARIABLE}", "x-y"),
            ("A=don't $B ${", "don't $B ${"),
            ("A=", ""),
        ] {
            assert_eq!(variables(text).unwrap()["A"], value, "{text}");
        }
        let several = variables("A=\"1\n2\"\r\nB=3\nnothing\n").unwrap();
        assert_eq!((several["A"].as_str(), several["B"].as_str(), several.len()), ("1\n2", "3", 2));
        assert_eq!(variables("A=1\nB='2\nC=3\n"), Err(2));
    }
}
