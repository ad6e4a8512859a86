//! The library, its parser and its embeddings endpoint as the settings have them.

use std::ffi::OsString;
use std::time::Duration;

use perihelion_database::Database;
use perihelion_documents::{
    Docling, External, Library, Limits, Parser, Quotas, Reader, Scope, Tesseract, Weights,
};
use perihelion_embeddings::Endpoint;
use perihelion_http::reach::client;
use perihelion_settings::config::{OtherParser, Settings};

pub const OWNER: &str = "local";

pub const TENANT: &str = "default";

const PARSE_COMMAND: &str = "parse-document";

/// How long a document may take to be parsed.
const PARSING: Duration = Duration::from_secs(300);

/// How long a connection to an external parser can take.
const CONNECTING: Duration = Duration::from_secs(10);

/// Returns the parser: this program again, as a process that bounds itself; pictures stay unread.
pub fn parser() -> Parser {
    parser_with(None)
}

fn parser_with(tesseract: Option<Tesseract>) -> Parser {
    let mut arguments = vec![OsString::from(PARSE_COMMAND)];
    let mut timeout = PARSING;
    if let Some(Tesseract { languages, seconds }) = &tesseract {
        timeout += Duration::from_secs(*seconds);
        arguments.push(format!("--languages={languages}").into());
        arguments.push(format!("--scan-timeout={seconds}").into());
    }
    arguments.push("--".into());
    match std::env::current_exe() {
        Ok(program) => Parser::Process { program, arguments, limits: Limits::default(), timeout },
        // The program cannot start itself without the path of its executable.
        Err(_) => Parser::Here(Limits { tesseract, ..Limits::default() }),
    }
}

/// Returns the parser of the settings: with an external one if they name one, which then reads the scans.
fn parser_of(settings: &Settings) -> Result<Parser, reqwest::Error> {
    let own = &settings.documents;
    let reader = match &own.parser {
        None => return Ok(parser_with(tesseract(settings))),
        Some(OtherParser::Program(program)) => Reader::Program(program.clone()),
        Some(OtherParser::Docling(url)) => {
            perihelion_settings::config::tls::install();
            let http = client(CONNECTING, url)?;
            Reader::Docling(Docling::new(http, url, settings.documents_parser_key.clone()))
        }
    };
    let by = External {
        reader,
        endings: own.parser_for.0.clone(),
        timeout: Duration::try_from_secs_f64(own.parser_timeout_sec).unwrap_or(PARSING),
    };
    Ok(Parser::Helped { own: Box::new(parser()), by })
}

/// Returns what Tesseract may do for a document; `None` if the settings name no language.
fn tesseract(settings: &Settings) -> Option<Tesseract> {
    let own = &settings.documents;
    let languages = own.scan_languages.0.join("+");
    let seconds = own.scan_timeout_sec.ceil() as u64;
    (!languages.is_empty() && is_installed()).then_some(Tesseract { languages, seconds })
}

/// Returns whether there is a Tesseract, so that documents have its time only where it may be taken.
fn is_installed() -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|path| path.join("tesseract").is_file())
}

pub fn embeddings(settings: &Settings) -> Result<Option<Endpoint>, reqwest::Error> {
    settings.embeddings.as_ref().map(Endpoint::new).transpose()
}

fn quotas(settings: &Settings) -> Quotas {
    let own = &settings.documents;
    Quotas {
        documents: Some(own.max_documents),
        text_bytes: own.max_text_bytes,
        chunks: own.max_chunks,
    }
}

pub fn library_of(
    settings: &Settings,
    database: Database,
    scope: Scope,
) -> Result<Library, reqwest::Error> {
    let own = &settings.documents;
    let weights = Weights { words: own.weight_of_words, meaning: own.weight_of_meaning };
    let library = Library::new(database, parser_of(settings)?, scope);
    Ok(library.with_quotas(quotas(settings)).with_weights(weights))
}
