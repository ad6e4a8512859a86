//! Parts of the system that the program uses if they are there.

use std::path::{Path, PathBuf};

use perihelion_sandbox::find_program;
use perihelion_servers::Finding;
use perihelion_settings::config::{OtherParser, Settings};
use serde::Serialize;

use super::{environment, system};

/// The places where distributions store the CA certificates in one file.
const CERTIFICATES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

#[derive(Debug, Serialize)]
pub(super) struct Part {
    name: &'static str,
    purpose: &'static str,
    /// Its path; `None` if it is missing.
    path: Option<PathBuf>,
    install: &'static str,
}

impl Part {
    pub(super) fn finding(&self) -> Finding {
        let Self { name, purpose, path, install } = self;
        match path {
            Some(path) => Finding::Good(format!("{name}: {}; {purpose}", path.display())),
            None => Finding::Odd(format!("{name}: not found; {purpose}; {install}")),
        }
    }
}

/// Looks for the parts that this build and these settings can use.
pub(super) fn of_system(settings: &Settings) -> Vec<Part> {
    let pager = environment("PAGER").unwrap_or_else(|| "less".to_owned());
    let mut parts = vec![
        Part {
            name: "bubblewrap",
            purpose: "confines MCP servers and Python programs",
            path: program("bwrap"),
            install: "install the package bubblewrap",
        },
        Part {
            name: "certificates",
            purpose: "verify HTTPS endpoints, servers and web pages",
            path: certificates(),
            install: "install the package ca-certificates, or set SSL_CERT_FILE",
        },
        Part {
            name: "pager",
            purpose: "shows long answers on a terminal page by page",
            path: pager.split_whitespace().next().and_then(program),
            install: "install the package less, or set PAGER",
        },
    ];
    if !cfg!(feature = "python-wasm") {
        parts.push(Part {
            name: "Python",
            purpose: "runs the programs of the bundled python server",
            path: program("python3"),
            install: "install the package python3",
        });
    }
    if let Some(opener) = system::opener() {
        parts.push(Part {
            name: "browser",
            purpose: "opens traces and login pages",
            path: program(opener),
            install: "install the package xdg-utils",
        });
    }
    match &settings.documents.parser {
        Some(OtherParser::Program(parser)) => parts.push(Part {
            name: "document parser",
            purpose: "reads scans and unknown formats",
            path: program(parser),
            install: "correct documents.parser",
        }),
        None if !settings.documents.scan_languages.0.is_empty() => parts.push(Part {
            name: "Tesseract",
            purpose: "reads scans and pictures",
            path: program("tesseract"),
            install: "install the package tesseract-ocr",
        }),
        _ => {}
    }
    parts
}

fn program(name: impl AsRef<Path>) -> Option<PathBuf> {
    find_program(name.as_ref(), &std::env::var_os("PATH").unwrap_or_default(), "".as_ref())
}

fn certificates() -> Option<PathBuf> {
    let chosen = environment("SSL_CERT_FILE").or_else(|| environment("SSL_CERT_DIR"));
    let places = chosen.iter().map(String::as_str).chain(CERTIFICATES);
    places.map(PathBuf::from).find(|path| path.exists())
}
