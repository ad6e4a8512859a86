use perihelion_http::reach::cause;

/// Why mail was not read, kept or sent.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("unencrypted connections are allowed to this machine only: {0}")]
    Unprotected(String),
    #[error("cannot reach the mail server {server}: {reason}")]
    Unreachable {
        server: String,
        #[source]
        reason: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("the mail server refused the name or the password")]
    Login,
    #[error("the server offers no mail over JMAP: {0}")]
    NoJmap(String),
    #[error("the mail server answered: {0}")]
    Server(String),
    #[error("the mail server answered: invalid JMAP: {0}")]
    Json(#[from] serde_json::Error),
    #[error("the connection to the mail server broke: {0}")]
    Broken(#[source] std::io::Error),
    #[error("the mail server did not answer within {0} s")]
    Timeout(u64),
    #[error("unknown mail folder (folders: {known}): {name}")]
    NoFolder { name: String, known: String },
    #[error("no message has this ID: {0}")]
    NoMessage(String),
    #[error("no draft and no sent message has this ID: {0}")]
    NoDraft(String),
    #[error(
        "the text has {characters} characters, more than the {most} that are shown before a message is sent. \
         Shorten it, or attach it as a file"
    )]
    TooLong { characters: usize, most: usize },
    /// It was edited after it was shown.
    #[error("the draft changed after it was shown ({part}); show it again: {id}")]
    Changed { id: String, part: &'static str },
    #[error("not a message ID from search_mail: {0}")]
    BadId(String),
    #[error("not a mail address: {0}")]
    BadAddress(String),
    #[error("the message has no recipient")]
    NoRecipient,
    #[error("cannot parse the search: {0}")]
    BadQuery(String),
    #[error("{what} must not contain line breaks or control characters")]
    Control { what: &'static str },
    /// A crash or a failure between handing over and noting it.
    #[error(
        "the outcome of sending this draft is unknown{}. Ask its recipient, or check the outgoing server. \
         Then pass `resend` to send it again, or leave it: {id}",
        .reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default()
    )]
    OutcomeUnknown {
        id: String,
        /// None if an earlier attempt ended without a trace.
        #[source]
        reason: Option<Box<Error>>,
    },
    /// The folder of drafts keeps no keywords, so an earlier attempt leaves no trace.
    #[error(
        "this mail server stores no keywords on drafts, so an earlier attempt to send this one cannot be excluded. \
         Pass `resend` if it was never sent, or use JMAP: {0}"
    )]
    NoMark(String),
    #[error("the mail server rejected the request and did nothing: {0}")]
    Rejected(String),
    #[error("the outgoing server refused the message: {0}")]
    Refused(String),
    #[error("cannot write the message: {0}")]
    Unwritable(#[from] std::io::Error),
}

impl Error {
    /// Says that a draft may have been sent, because of a failure at that time if there was one.
    pub(crate) fn outcome_unknown(id: &str, reason: Option<Self>) -> Self {
        Self::OutcomeUnknown { id: id.to_owned(), reason: reason.map(Box::new) }
    }
}

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

impl From<reqwest::Error> for Error {
    fn from(error: reqwest::Error) -> Self {
        if error.is_timeout() {
            return Self::Timeout(crate::account::LIMIT.as_secs());
        }
        let server = error
            .url()
            .map_or_else(String::new, |url| url.host_str().unwrap_or_default().to_owned());
        Self::Unreachable { server, reason: cause(&error).into() }
    }
}
