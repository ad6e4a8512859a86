//! A Prism that mocks one description, and what it says of requests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use perihelion_openapi::Request;
use serde_json::Value;

pub struct Prism {
    pub port: u16,
    process: Child,
}

pub enum Verdict {
    Accepted,
    /// With what was wrong.
    Rejected(String),
}

impl Prism {
    /// Starts it on a description; none where it cannot read that.
    pub fn start(program: &Path, description: &Path) -> Option<Self> {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut process = Command::new(program)
            .args(["mock", "--host", "127.0.0.1", "--port", &port.to_string()])
            .arg(description)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        // It ends by itself where it fails.
        while lines.read_line(&mut line).unwrap_or_default() > 0 {
            if line.contains("is listening on") {
                std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
                return Some(Self { port, process });
            }
            line.clear();
        }
        let _ = process.kill();
        let _ = process.wait();
        None
    }

    /// Sends a request as it stands.
    pub fn judge(&self, request: &Request) -> Verdict {
        let answer = self.send(request);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).unwrap_or("no answer").to_owned();
        let header = |name: &str| {
            head.lines().find_map(|line| {
                let (known, value) = line.split_once(':')?;
                known.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
            })
        };
        // Where the description has an answer for bad requests, that is what comes, with what was wrong in a header.
        let violations = header("sl-violations").unwrap_or_default();
        let violations: Vec<Value> = serde_json::from_str(&violations).unwrap_or_default();
        let of_request = violations.iter().find(|violation| {
            violation.pointer("/location/0").and_then(Value::as_str) == Some("request")
        });
        if let Some(violation) = of_request {
            return Verdict::Rejected(violation.to_string());
        }
        let body: Value = serde_json::from_str(body).unwrap_or_default();
        let kind = body.get("type").and_then(Value::as_str).unwrap_or_default();
        match kind.split_once("prism/errors#") {
            // What it has to say of its own answers, and of what it may answer with.
            Some((_, "UNPROCESSABLE_ENTITY" | "UNAUTHORIZED" | "INVALID_CONTENT_TYPE")) => {
                Verdict::Rejected(format!("{status} {}", body.get("validation").unwrap_or(&body)))
            }
            Some((_, kind)) if kind.starts_with("NO_") && kind.contains("MATCHED") => {
                Verdict::Rejected(format!("{status} {kind}"))
            }
            None if !head.starts_with("HTTP/1.1 ") || status == "431" => Verdict::Rejected(status),
            _ => Verdict::Accepted,
        }
    }

    fn send(&self, request: &Request) -> String {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) else {
            return String::new();
        };
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let url = &request.url;
        let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
        let mut head = format!(
            "{} {}{query} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\n",
            request.method,
            url.path(),
            self.port
        );
        for (name, value) in &request.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let bytes = request.body.as_ref().map_or(&[][..], |body| body.bytes.as_slice());
        if let Some(body) = &request.body {
            head.push_str(&format!("Content-Type: {}\r\n", body.content_type()));
        }
        head.push_str(&format!("Content-Length: {}\r\n\r\n", bytes.len()));
        let sent = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(bytes));
        let mut answer = Vec::new();
        // A server that closes early has answered all the same.
        let _ = sent;
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }
}

impl Drop for Prism {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
