//! Gets tokens for HTTP servers: by a person's login, or with client credentials.
//!
//! Enter at [`Access`], which every request to such a server passes, and at [`Login`]. Invariant: a token is sent only
//! to the address that it was issued for, and is stored in one file that processes change in sequence. Deliberately
//! absent: a browser. An unattended process only reports that a login is required.

mod access;
mod authority;
mod callback;
mod login;
mod logins;
mod renewal;

pub(crate) use access::Access;
pub use login::{LoggedIn, LoggedOut, Login};
pub use logins::Logins;
