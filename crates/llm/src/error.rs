//! Why a model call failed, with the way out, and as a journal keeps it.

use perihelion_http::reach;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "no model endpoint is configured: set OPENAI_BASE_URL (and OPENAI_API_KEY), or try `perihelion demo`"
    )]
    NotConfigured,
    /// The endpoint could not be reached.
    #[error("cannot reach the model endpoint {endpoint}: {reason}; {}", way_there(reason))]
    Unreachable { endpoint: String, reason: String },
    #[error(
        "the model endpoint {endpoint} did not answer within {seconds} s; raise models.timeout_sec or check the endpoint"
    )]
    Timeout { endpoint: String, seconds: f64 },
    #[error("the model endpoint {endpoint} refused the request with status {status}: {message}")]
    Refused { endpoint: String, status: u16, message: String },
    /// The endpoint's answer could not be understood.
    #[error("the model endpoint {endpoint} sent an answer that cannot be read: {reason}")]
    Malformed { endpoint: String, reason: String },
    /// The answer is only a part.
    #[error("the model's answer was cut off: {reason}")]
    Truncated { reason: &'static str },
    /// There is no answer, also after the adapter's retries.
    #[error("the model gave an empty answer")]
    Empty,
    /// A JSON answer broke its schema, also after the repairs.
    #[error(
        "the {role} model did not answer with valid `{schema}` JSON in {attempts} attempts: {problems}"
    )]
    Invalid { role: &'static str, schema: String, attempts: u32, problems: String },
    /// A prompt template is missing, broken, or wants a variable that it was not given.
    #[error("the prompt template {name} cannot be used: {reason}")]
    Prompt { name: String, reason: String },
    /// The scripted model could not be started or its script could not be read.
    #[error("the scripted model cannot be used: {0}")]
    Script(String),
    /// The run's time was up before the answer was there.
    #[error("the time limit of {seconds} s was reached before the model had answered")]
    Late { seconds: u64 },
    /// The call failed when it was recorded.
    #[error("{0}")]
    Recorded(String),
    /// The call was cut off by the caller's own machinery (journal, cancellation).
    #[error("the model call was not made: {0}")]
    Interrupted(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl From<reqwest::Error> for Error {
    fn from(error: reqwest::Error) -> Self {
        let reason = format!("no HTTP client could be made: {}", reach::cause(&error));
        Self::Unreachable { endpoint: "(any)".to_owned(), reason }
    }
}

fn way_there(reason: &str) -> &'static str {
    let reason = reason.to_lowercase();
    if reason.contains("connection refused") {
        "no server listens there: start the model server, or set another address with --model-url or OPENAI_BASE_URL"
    } else if reason.contains("lookup") || reason.contains("dns") {
        "no such host is known: check the name in --model-url or OPENAI_BASE_URL"
    } else if reason.contains("certificate") {
        "its certificate is not trusted here: check the address in --model-url or OPENAI_BASE_URL, and SSL_CERT_FILE"
    } else {
        "check --model-url or OPENAI_BASE_URL"
    }
}

impl Error {
    /// Reads the text of a call that failed when it was recorded: a replay decides as the run did.
    pub fn recorded(text: String) -> Self {
        let late = || {
            let rest = text.strip_prefix("the time limit of ")?;
            Some(Self::Late { seconds: rest.split_once(" s ")?.0.parse().ok()? })
        };
        let timeout = || {
            let rest = text.strip_prefix("the model endpoint ")?;
            let (endpoint, rest) = rest.split_once(" did not answer within ")?;
            let seconds = rest.split_once(" s;")?.0.parse().ok()?;
            Some(Self::Timeout { endpoint: endpoint.to_owned(), seconds })
        };
        let none = || (text == Self::NotConfigured.to_string()).then_some(Self::NotConfigured);
        late().or_else(timeout).or_else(none).unwrap_or(Self::Recorded(text))
    }

    /// Says in a few words why a call is made once more.
    pub fn brief(&self) -> String {
        match self {
            Self::Unreachable { endpoint, reason } => {
                format!("no answer from {endpoint} ({reason})")
            }
            Self::Timeout { endpoint, seconds } => {
                format!("no answer from {endpoint} within {seconds} s")
            }
            Self::Refused { endpoint, status, .. } => {
                format!("{endpoint} answered with status {status}")
            }
            Self::Malformed { endpoint, .. } => {
                format!("{endpoint} sent an answer that cannot be read")
            }
            other => other.to_string(),
        }
    }

    pub fn class(&self) -> &'static str {
        match self {
            Self::NotConfigured => "not_configured",
            Self::Unreachable { .. } => "unreachable",
            Self::Timeout { .. } => "timeout",
            Self::Refused { status: 429, .. } => "rate_limited",
            Self::Refused { status: 500.., .. } => "server_error",
            Self::Refused { .. } => "refused",
            Self::Malformed { .. } => "malformed",
            Self::Truncated { .. } => "truncated",
            Self::Empty => "empty",
            Self::Invalid { .. } => "invalid",
            Self::Prompt { .. } => "prompt",
            Self::Script(_) => "script",
            Self::Late { .. } => "late",
            Self::Recorded(_) => "recorded",
            Self::Interrupted(_) => "interrupted",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// X3
    #[test]
    fn a_recorded_failure_is_read_back_as_what_it_was() {
        let endpoint = "http://127.0.0.1:1/v1".to_owned();
        for error in [
            Error::Late { seconds: 40 },
            Error::Timeout { endpoint: endpoint.clone(), seconds: 0.5 },
            Error::NotConfigured,
        ] {
            let read = Error::recorded(error.to_string());
            assert_eq!((read.class(), read.to_string()), (error.class(), error.to_string()));
        }
        let other = Error::Refused { endpoint, status: 400, message: "no".to_owned() };
        assert_eq!(Error::recorded(other.to_string()).class(), "recorded");
    }
}
