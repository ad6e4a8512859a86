//! Mail servers of a test's own: Dovecot, Cyrus with OpenSMTPD, and an outgoing server that can fail.

pub mod cyrus;

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

pub struct Dovecot {
    child: Child,
    pub port: u16,
    pub home: std::path::PathBuf,
}

impl Drop for Dovecot {
    fn drop(&mut self) {
        let _ = Command::new("doveadm")
            .args(["-c"])
            .arg(self.home.join("dovecot.conf"))
            .arg("stop")
            .output();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.home);
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Starts a Dovecot that takes everybody with the password `secret-pass`.
pub fn dovecot(name: &str) -> Option<Dovecot> {
    if !Path::new("/usr/sbin/dovecot").exists() {
        assert!(std::env::var_os("CI").is_none(), "install dovecot-imapd: there is no Dovecot");
        eprintln!("no Dovecot here: nothing was tested");
        return None;
    }
    let home = std::env::temp_dir().join(format!("perihelion-mail-{name}-{}", std::process::id()));
    std::fs::create_dir_all(home.join("mail")).unwrap();
    let owned =
        Command::new("chown").args(["-R", "nobody"]).arg(home.join("mail")).status().unwrap();
    if !owned.success() {
        assert!(std::env::var_os("CI").is_none(), "Dovecot is started as root: run as root");
        eprintln!("not root: nothing was tested");
        return None;
    }
    let port = free_port();
    let dir = home.display();
    let text = format!(
        "protocols = imap\nbase_dir = {dir}/run\nlisten = 127.0.0.1\nlog_path = {dir}/log\nssl = no\ndisable_plaintext_auth = no\n\
         mail_location = maildir:{dir}/mail/%u\nfirst_valid_uid = 1\nlast_valid_gid = 0\nfirst_valid_gid = 0\n\
         passdb {{\n driver = static\n args = password=secret-pass\n}}\n\
         userdb {{\n driver = static\n args = uid=nobody gid=nogroup home={dir}/mail/%u\n}}\n\
         service imap-login {{\n inet_listener imap {{\n port = {port}\n }}\n inet_listener imaps {{\n port = 0\n }}\n}}\n\
         namespace inbox {{\n inbox = yes\n mailbox Drafts {{\n auto = subscribe\n special_use = \\Drafts\n }}\n\
         mailbox Outbox {{\n auto = subscribe\n special_use = \\Sent\n }}\n}}\n"
    );
    std::fs::write(home.join("dovecot.conf"), text).unwrap();
    let child = Command::new("/usr/sbin/dovecot")
        .args(["-F", "-c"])
        .arg(home.join("dovecot.conf"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let started = Dovecot { child, port, home };
    if answers(port) {
        return Some(started);
    }
    panic!(
        "Dovecot does not answer: {}",
        std::fs::read_to_string(started.home.join("log")).unwrap_or_default()
    );
}

/// Waits until a server of this machine takes connections.
fn answers(port: u16) -> bool {
    for _ in 0..2_000 {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return true;
        }
        std::thread::yield_now();
        let _ = Command::new("true").status();
    }
    false
}

/// How the outgoing server takes a message.
#[derive(Clone, Copy, PartialEq)]
pub enum Mood {
    Takes,
    Refuses,
    /// Takes it and hangs up without a word.
    FallsSilent,
}

pub struct Outgoing {
    pub port: u16,
    pub mood: Arc<Mutex<Mood>>,
    pub taken: Taken,
}

/// Recipients and text of each message that was taken.
pub type Taken = Arc<Mutex<Vec<(Vec<String>, String)>>>;

pub fn outgoing() -> Outgoing {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let mood = Arc::new(Mutex::new(Mood::Takes));
    let taken = Arc::new(Mutex::new(Vec::new()));
    let server = Outgoing { port, mood: Arc::clone(&mood), taken: Arc::clone(&taken) };
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let _ = converse(stream.unwrap(), &mood, &taken);
        }
    });
    server
}

fn converse(
    mut stream: TcpStream,
    mood: &Mutex<Mood>,
    taken: &Mutex<Vec<(Vec<String>, String)>>,
) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let mut to = Vec::new();
    stream.write_all(b"220 test\r\n")?;
    while let Some(line) = lines.next() {
        let line = line?;
        let upper = line.to_ascii_uppercase();
        let answer: &[u8] = if upper.starts_with("EHLO") {
            b"250-test\r\n250 AUTH PLAIN\r\n"
        } else if upper.starts_with("AUTH") {
            b"235 ok\r\n"
        } else if upper.starts_with("RCPT") {
            if *mood.lock().unwrap() == Mood::Refuses {
                b"550 nobody of that name\r\n"
            } else {
                to.push(line.get(8..).unwrap_or_default().trim().to_owned());
                b"250 ok\r\n"
            }
        } else if upper == "DATA" {
            stream.write_all(b"354 go\r\n")?;
            let mut text = String::new();
            for line in lines.by_ref() {
                let line = line?;
                if line == "." {
                    break;
                }
                text.push_str(&line);
                text.push('\n');
            }
            taken.lock().unwrap().push((std::mem::take(&mut to), text));
            if *mood.lock().unwrap() == Mood::FallsSilent {
                return Ok(());
            }
            b"250 taken\r\n"
        } else if upper == "QUIT" {
            stream.write_all(b"221 bye\r\n")?;
            return Ok(());
        } else {
            b"250 ok\r\n"
        };
        stream.write_all(answer)?;
    }
    Ok(())
}
