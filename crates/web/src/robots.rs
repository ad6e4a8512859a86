//! A site's robots.txt, by RFC 9309: which of its pages robots may fetch, and how fast.

use std::time::Duration;

use url::Url;

pub const AGENT: &str = "perihelion";

#[derive(Debug, Default)]
pub struct Robots {
    rules: Vec<Rule>,
    delay: Duration,
}

#[derive(Debug)]
struct Rule {
    allows: bool,
    /// The beginning of a path, with `*` for anything and `$` for the end.
    pattern: String,
}

impl Robots {
    /// Reads the groups for [`AGENT`], otherwise those for all crawlers.
    pub fn read(text: &str) -> Self {
        let mut own = None;
        let mut general = Self::default();
        let mut agents: Vec<String> = Vec::new();
        let mut is_naming = false;
        for line in text.trim_start_matches('\u{feff}').lines() {
            let line = line.split('#').next().unwrap_or_default();
            let Some((field, value)) = line.split_once(':') else { continue };
            let field = field.trim().to_ascii_lowercase();
            let value = value.trim();
            if field == "user-agent" {
                if !is_naming {
                    agents.clear();
                }
                is_naming = true;
                agents.push(value.to_ascii_lowercase());
                continue;
            }
            is_naming &= !matches!(&*field, "allow" | "disallow" | "crawl-delay");
            if agents.iter().any(|agent| agent.split('/').next() == Some(AGENT)) {
                own.get_or_insert_with(Self::default).add(&field, value);
            }
            if agents.iter().any(|agent| agent == "*") {
                general.add(&field, value);
            }
        }
        own.unwrap_or(general)
    }

    fn add(&mut self, field: &str, value: &str) {
        match field {
            "allow" | "disallow" if !value.is_empty() => {
                self.rules.push(Rule { allows: field == "allow", pattern: escaped(value) });
            }
            "crawl-delay" => {
                let seconds = value.parse().ok();
                let delay = seconds.and_then(|seconds| Duration::try_from_secs_f32(seconds).ok());
                self.delay = delay.unwrap_or(self.delay);
            }
            _ => {}
        }
    }

    /// Returns whether a page can be fetched: the longest matching rule decides, and of equal ones the permitting one.
    pub fn allow(&self, url: &Url) -> bool {
        let path = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        let path = escaped(&path);
        let fitting = self.rules.iter().filter(|rule| rule.fits(&path));
        fitting.max_by_key(|rule| (rule.pattern.len(), rule.allows)).is_none_or(|rule| rule.allows)
    }

    /// Returns the pause that the site asks for between two requests.
    pub fn delay(&self) -> Duration {
        self.delay
    }
}

impl Rule {
    fn fits(&self, path: &str) -> bool {
        let pattern = self.pattern.strip_suffix('$').unwrap_or(&self.pattern);
        let mut parts = pattern.split('*');
        let Some(mut rest) = path.strip_prefix(parts.next().unwrap_or_default()) else {
            return false;
        };
        let parts: Vec<&str> = parts.collect();
        let is_whole = pattern.len() < self.pattern.len();
        for (at, part) in parts.iter().enumerate() {
            if is_whole && at + 1 == parts.len() {
                return rest.ends_with(part);
            }
            let Some(found) = rest.find(part) else { return false };
            rest = &rest[found + part.len()..];
        }
        !is_whole || rest.is_empty()
    }
}

/// Writes a path in the one form in which paths are compared (RFC 9309, 2.2.2): letters, digits and `-._~` as they are,
/// other encoded bytes with capital digits, and letters of other alphabets encoded.
fn escaped(path: &str) -> String {
    let mut escaped = String::new();
    let mut rest = path.as_bytes();
    while let [byte, after @ ..] = rest {
        let code = after.get(..2).filter(|_| *byte == b'%');
        let code = code.filter(|code| code.iter().all(u8::is_ascii_hexdigit));
        let code =
            code.and_then(|code| u8::from_str_radix(std::str::from_utf8(code).ok()?, 16).ok());
        rest = if code.is_some() { &after[2..] } else { after };
        let is_plain = code.unwrap_or(*byte).is_ascii_alphanumeric()
            || b"-._~".contains(&code.unwrap_or(*byte));
        match code {
            Some(code) if !is_plain => escaped.push_str(&format!("%{code:02X}")),
            None if !byte.is_ascii() => escaped.push_str(&format!("%{byte:02X}")),
            code => escaped.push(char::from(code.unwrap_or(*byte))),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(rules: &str, path: &str) -> bool {
        Robots::read(rules).allow(&Url::parse(&format!("http://a.example{path}")).unwrap())
    }

    #[test]
    fn the_longest_rule_that_fits_decides() {
        let rules = "User-agent: *\nDisallow: /shop # all\nAllow: /shop/open\nDisallow: /*.pdf$\nDisallow: /ü\n";
        for (path, is_allowed) in [
            ("/", true),
            ("/shop/a", false),
            ("/shop/open/a", true),
            ("/a/b.pdf", false),
            ("/a/b.pdf?page=1", true),
            ("/b.pdf/c.pdf", false),
            ("/ü/a", false),
        ] {
            assert_eq!(allowed(rules, path), is_allowed, "{path}");
        }
        assert!(allowed("User-agent: *\nDisallow:\n", "/"));
    }

    #[test]
    fn a_path_is_the_same_however_its_bytes_are_encoded() {
        for (rule, path, is_allowed) in [
            ("/%7Ejoe", "/~joe/a", false),
            ("/~joe", "/%7ejoe", false),
            ("/a%3cd", "/a%3Cd", false),
            ("/a%2Fb", "/a/b", true),
            ("/a/b", "/a%2fb", true),
            ("/%c3%bc", "/ü", false),
            ("/100%", "/100%", false),
            ("/100%zz", "/100%zz", false),
        ] {
            let rules = format!("User-agent: *\nDisallow: {rule}\n");
            assert_eq!(allowed(&rules, path), is_allowed, "{rule} {path}");
        }
    }

    #[test]
    fn a_group_for_this_program_replaces_the_general_group() {
        let rules = "\u{feff}user-agent: other\nUser-Agent: Perihelion/1.0\nSitemap: x\nDisallow: /own\nCrawl-delay: 2.5\n\
            \nUser-agent: *\nDisallow: /\n";
        assert!(allowed(rules, "/a") && !allowed(rules, "/own/a"));
        assert_eq!(Robots::read(rules).delay(), Duration::from_millis(2_500));
        assert_eq!(Robots::read("User-agent: *\nCrawl-delay: soon").delay(), Duration::ZERO);
    }
}
