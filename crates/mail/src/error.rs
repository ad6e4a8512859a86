/// Why mail was not read, kept or sent.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("an unprotected connection is made to this machine only, not to: {0}")]
    Unprotected(String),
    #[error("cannot reach the mail server {server}: {reason}")]
    Unreachable { server: String, reason: String },
    #[error("the mail server refused the name or the password")]
    Login,
    #[error("there is no mail by JMAP here: {0}")]
    NoJmap(String),
    #[error("the mail server answered: {0}")]
    Server(String),
    #[error("the connection to the mail server broke: {0}")]
    Broken(#[source] std::io::Error),
    #[error("the mail server gave no answer within {0} s")]
    Timeout(u64),
    #[error("there is no such folder; there are {known}: {name}")]
    NoFolder { name: String, known: String },
    #[error("there is no message with this id: {0}")]
    NoMessage(String),
    #[error("there is no draft with this id, and it was not sent either: {0}")]
    NoDraft(String),
    /// Somebody edited it after it was shown.
    #[error("the draft is not the one that was shown, its {part} differs; show it again: {id}")]
    Changed { id: String, part: &'static str },
    #[error("not an id of a message, as search_mail lists it: {0}")]
    BadId(String),
    #[error("not an address: {0}")]
    BadAddress(String),
    #[error("the message has no recipient")]
    NoRecipient,
    #[error("the search cannot be understood: {0}")]
    BadQuery(String),
    #[error("{what} must not hold line breaks or control characters")]
    Control { what: &'static str },
    /// A crash between handing over and noting it.
    #[error(
        "whether this draft was sent is not known: sending began and did not end. Ask its recipient or look at the outgoing server; \
         then send it again with `resend`, or leave it: {0}"
    )]
    OutcomeUnknown(String),
    #[error("the mail server refused the request, and did nothing: {0}")]
    Rejected(String),
    #[error("the outgoing server refused the message: {0}")]
    Refused(String),
    #[error("the message cannot be written: {0}")]
    Unwritable(#[from] std::io::Error),
}

impl From<reqwest::Error> for Error {
    fn from(error: reqwest::Error) -> Self {
        if error.is_timeout() {
            return Self::Timeout(crate::account::LIMIT.as_secs());
        }
        let server = error
            .url()
            .map_or_else(String::new, |url| url.host_str().unwrap_or_default().to_owned());
        let mut reason: &dyn std::error::Error = &error;
        while let Some(source) = reason.source() {
            reason = source;
        }
        Self::Unreachable { server, reason: reason.to_string() }
    }
}
