//! What a bundled server needs, tried without serving: `perihelion mcp --check NAME`.

use super::{Bundled, Error, api, mail, python, web};

/// How something that a server needs stands.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(tag = "status", content = "message")]
pub enum Finding {
    #[serde(rename = "ok")]
    Good(String),
    /// It works, but not all of it.
    #[serde(rename = "warning")]
    Odd(String),
    /// What to fix.
    #[serde(rename = "error")]
    Bad(String),
}

impl Finding {
    /// Writes it as a line, which [`Finding::read`] reads.
    #[must_use]
    pub fn line(&self) -> String {
        let (mark, text) = match self {
            Self::Good(text) => ('✓', text),
            Self::Odd(text) => ('!', text),
            Self::Bad(text) => ('✗', text),
        };
        format!("{mark} {}", text.replace(['\n', '\r'], " "))
    }

    /// Reads a line.
    #[must_use]
    pub fn read(line: &str) -> Option<Self> {
        let (mark, text) = line.split_once(' ')?;
        match mark {
            "✓" => Some(Self::Good(text.to_owned())),
            "!" => Some(Self::Odd(text.to_owned())),
            "✗" => Some(Self::Bad(text.to_owned())),
            _ => None,
        }
    }

    pub(super) fn bad(error: &dyn std::fmt::Display) -> Self {
        Self::Bad(error.to_string())
    }
}

impl Bundled {
    /// Names of the servers that need more than to be started.
    pub const CHECKED: [&str; 4] = ["python", "api", "web", "mail"];

    /// Tries what the server needs; servers that need nothing but to be started find nothing.
    pub async fn check(self) -> Vec<Finding> {
        let found = match self {
            Self::Python(options) => python::check(&options).await.map_err(Error::from),
            Self::Api(options) => api::check(&options).await.map_err(Error::from),
            Self::Web(options) => web::check(&options).await.map_err(Error::from),
            Self::Mail(options) => mail::check(&options).await.map_err(Error::from),
            Self::Sql(_)
            | Self::SqlWorker
            | Self::Files(_)
            | Self::Documents(_)
            | Self::Notes(_) => Ok(Vec::new()),
        };
        found.unwrap_or_else(|error| vec![Finding::bad(&error)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_read_back_from_its_line() {
        for finding in
            [Finding::Good("a b".into()), Finding::Odd("c".into()), Finding::Bad("d: e".into())]
        {
            assert_eq!(Finding::read(&finding.line()), Some(finding));
        }
        assert_eq!(Finding::read("else"), None);
    }
}
