//! Mailboxes of real servers, started here on ports of their own: Debian's Dovecot, and Cyrus with OpenSMTPD.
#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]
#![expect(clippy::panic, reason = "a test ends at what it did not expect")]
#![expect(clippy::print_stderr, reason = "says why nothing was tested")]

mod cyrus;
mod dovecot;
mod support;

use perihelion_mail::{Endpoint, Security, Servers};

/// Names servers of this machine.
fn servers(imap: u16, smtp: u16) -> Servers {
    let endpoint = |port| Endpoint { host: "127.0.0.1".into(), port, security: Security::Plain };
    Servers { imap: endpoint(imap), smtp: endpoint(smtp) }
}
