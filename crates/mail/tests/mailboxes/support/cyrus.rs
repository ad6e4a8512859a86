//! A Cyrus of a test's own, with IMAP and JMAP, and an OpenSMTPD that delivers into it.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::{answers, free_port};

const MASTER: &str = "/usr/lib/cyrus/bin/master";
/// Where `imapd` lies: Debian's package of it cannot be installed beside Dovecot's, so that it is unpacked beside it.
const PLACES: [&str; 2] = ["/usr/lib/cyrus/bin", "/opt/cyrus-imapd/usr/lib/cyrus/bin"];

pub struct Cyrus {
    master: Child,
    smtpd: Child,
    home: PathBuf,
    bin: &'static str,
    pub imap: u16,
    pub http: u16,
    /// Takes mail from this machine without a login, and delivers it to the users of the Cyrus.
    pub smtp: u16,
}

impl Drop for Cyrus {
    fn drop(&mut self) {
        for child in [&mut self.smtpd, &mut self.master] {
            let _ = Command::new("kill").arg(child.id().to_string()).status();
            let _ = child.wait();
        }
        let _ = std::fs::remove_dir_all(&self.home);
    }
}

/// Says why nothing is tested, unless the servers must be there.
fn missing(what: &str) {
    assert!(std::env::var_os("MAIL_SERVERS").is_none(), "{what}");
    eprintln!("{what}: nothing was tested");
}

/// Starts both for the users `bo` and `ann`, whose password is `secret-pass`.
pub fn cyrus(name: &str) -> Option<Cyrus> {
    let Some(bin) = PLACES.into_iter().find(|bin| Path::new(bin).join("imapd").exists()) else {
        missing("no imapd of Cyrus here");
        return None;
    };
    let parts = [MASTER, "/usr/lib/cyrus/bin/httpd", "/usr/sbin/smtpd", "/usr/sbin/saslpasswd2"];
    if let Some(part) = parts.into_iter().find(|part| !Path::new(part).exists()) {
        missing(&format!("no {part} here"));
        return None;
    }
    // Its queue and its socket have fixed places: in a mount namespace they are this one's own.
    let may = Command::new("unshare").args(["-m", "true"]).stderr(Stdio::null()).status().unwrap();
    if !may.success() {
        missing("no right to a mount namespace");
        return None;
    }
    let home = std::env::temp_dir().join(format!("perihelion-cyrus-{name}-{}", std::process::id()));
    let folders =
        ["conf/db", "conf/socket", "conf/log", "conf/msg", "conf/proc", "conf/lock", "spool"];
    for folder in
        folders.into_iter().chain(["search", "run/socket", "run/proc", "run/lock", "sasl"])
    {
        std::fs::create_dir_all(home.join(folder)).unwrap();
    }
    let [imap, http, lmtp, smtp] = [(); 4].map(|()| free_port());
    configure(&home, bin, [imap, http, lmtp, smtp]);
    for user in ["bo", "ann"] {
        password(&home, user);
    }
    assert!(
        Command::new("chown").args(["-R", "cyrus:mail"]).arg(&home).status().unwrap().success()
    );
    std::fs::write(home.join("virtuals"), "@ nobody\n").unwrap();
    let master = Command::new(MASTER)
        .arg("-C")
        .arg(home.join("imapd.conf"))
        .arg("-M")
        .arg(home.join("cyrus.conf"))
        .arg("-p")
        .arg(home.join("run/master.pid"))
        .arg("-L")
        .arg(home.join("log"))
        .arg("-D")
        // Its end ends its whole process group.
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let own = "mkdir -p /var/spool/smtpd && mount -t tmpfs tmpfs /run && mount -t tmpfs -o mode=711 tmpfs /var/spool/smtpd && \
               exec /usr/sbin/smtpd -d -f \"$0\"";
    let smtpd = Command::new("unshare")
        .args(["-m", "sh", "-c", own])
        .arg(home.join("smtpd.conf"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(home.join("smtpd.log")).unwrap())
        .spawn()
        .unwrap();
    let started = Cyrus { master, smtpd, home, bin, imap, http, smtp };
    for port in [imap, http, lmtp, smtp] {
        assert!(answers(port), "Cyrus or OpenSMTPD does not answer: {}", started.log());
    }
    for user in ["bo", "ann"] {
        // The first login makes the folders.
        started.ask(user, &[]);
    }
    Some(started)
}

fn configure(home: &Path, bin: &str, [imap, http, lmtp, smtp]: [u16; 4]) {
    let dir = home.display();
    let imapd = format!(
        "configdirectory: {dir}/conf\nproc_path: {dir}/run/proc\nmboxname_lockpath: {dir}/run/lock\ndefaultpartition: default\n\
         partition-default: {dir}/spool\nadmins: admin\naltnamespace: no\nunixhierarchysep: yes\nallowplaintext: yes\n\
         sasl_pwcheck_method: auxprop\nsasl_auxprop_plugin: sasldb\nsasl_sasldb_path: {dir}/sasl/db\nsasl_mech_list: PLAIN LOGIN\n\
         servername: localhost\nhttpmodules: jmap\nconversations: yes\nconversations_db: twoskip\nduplicatesuppression: no\n\
         search_engine: xapian\ndefaultsearchtier: t1\nt1searchpartition-default: {dir}/search\n\
         autocreate_quota: 0\nautocreate_post: yes\nautocreate_inbox_folders: Drafts|Sent\nautocreate_subscribe_folders: Drafts|Sent\n\
         xlist-drafts: Drafts\nxlist-sent: Sent\nlmtpsocket: {dir}/run/socket/lmtp\nidlesocket: {dir}/run/socket/idle\n\
         notifysocket: {dir}/run/socket/notify\nsmtp_backend: host\nsmtp_host: 127.0.0.1:{smtp}/noauth\nsyslog_prefix: cyrus\n"
    );
    std::fs::write(home.join("imapd.conf"), imapd).unwrap();
    let service = |name: &str, command: &str, port: u16| {
        let bin = if name == "imap" { bin } else { "/usr/lib/cyrus/bin" };
        format!(
            " {name} cmd=\"{bin}/{command} -C {dir}/imapd.conf\" listen=\"127.0.0.1:{port}\" prefork=0\n"
        )
    };
    let services = [
        service("imap", "imapd", imap),
        service("http", "httpd", http),
        // -a: everybody who connects may deliver.
        service("lmtp", "lmtpd -a", lmtp),
    ];
    let text = format!(
        "START {{\n recover cmd=\"/usr/lib/cyrus/bin/ctl_cyrusdb -C {dir}/imapd.conf -r\"\n}}\nSERVICES {{\n{}}}\nEVENTS {{\n}}\n",
        services.concat()
    );
    std::fs::write(home.join("cyrus.conf"), text).unwrap();
    let smtpd = format!(
        "listen on 127.0.0.1 port {smtp} hostname b.test\ntable virtuals file:{dir}/virtuals\n\
         table known {{ a.test, b.test, c.test, h.test }}\n\
         action \"in\" lmtp \"127.0.0.1:{lmtp}\" rcpt-to virtual <virtuals>\nmatch from any for domain <known> action \"in\"\n"
    );
    std::fs::write(home.join("smtpd.conf"), smtpd).unwrap();
}

fn password(home: &Path, user: &str) {
    let mut child = Command::new("/usr/sbin/saslpasswd2")
        .args(["-p", "-c", "-u", "localhost", "-f"])
        .arg(home.join("sasl/db"))
        .arg(user)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"secret-pass").unwrap();
    assert!(child.wait().unwrap().success());
}

impl Cyrus {
    fn log(&self) -> String {
        ["log", "smtpd.log"]
            .map(|name| std::fs::read_to_string(self.home.join(name)).unwrap_or_default())
            .join("\n")
    }

    /// Gives IMAP commands as a user, and returns what the server said to the last one.
    fn ask(&self, user: &str, commands: &[String]) -> Vec<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.imap)).unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map(Result::unwrap);
        lines.next().unwrap();
        let login = format!("LOGIN {user} secret-pass");
        let mut words = Vec::new();
        for command in std::iter::once(&login).chain(commands) {
            stream.write_all(format!("a {command}\r\n").as_bytes()).unwrap();
            words = lines.by_ref().take_while(|line| !line.starts_with("a ")).collect();
        }
        stream.write_all(b"z LOGOUT\r\n").unwrap();
        words
    }

    /// Counts the messages in a user's inbox with that subject, once everything that was handed over is delivered.
    pub fn arrived(&self, user: &str, subject: &str) -> usize {
        self.deliver();
        let commands = ["SELECT INBOX".to_owned(), format!("SEARCH SUBJECT \"{subject}\"")];
        let words = self.ask(user, &commands);
        let found = words.iter().find_map(|line| line.strip_prefix("* SEARCH"));
        found.unwrap_or_default().split_whitespace().count()
    }

    /// Waits until the queue of the outgoing server is empty.
    pub fn deliver(&self) {
        let process = self.smtpd.id().to_string();
        for _ in 0..5_000 {
            let queue = Command::new("nsenter")
                .args(["-t", &process, "-m", "smtpctl", "show", "queue"])
                .output()
                .unwrap();
            if queue.status.success() && queue.stdout.is_empty() {
                return;
            }
        }
        panic!("mail stays in the queue: {}", self.log());
    }

    /// Makes what a user has findable by its words.
    pub fn index(&self, user: &str) {
        let config = self.home.join("imapd.conf");
        let command = format!("{}/squatter -C {} -u {user}", self.bin, config.display());
        let output = Command::new("su").args(["-s", "/bin/sh", "cyrus", "-c", &command]).output();
        assert!(output.unwrap().status.success(), "{}", self.log());
    }
}
