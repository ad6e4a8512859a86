//! Gets tokens for HTTP servers: by a person's login, or by itself with client credentials.
//!
//! Enter at [`Access`], which every request to such a server passes, and at [`Login`]. Invariant: a token goes to
//! the address it was got for and to no other, and is kept in one file that processes change one after the other.
//! Deliberately absent: a browser. What runs unattended only says that a login is wanted.

mod access;
mod authority;
mod callback;
mod login;
mod logins;
mod renewal;

pub(crate) use access::{Access, Refusal};
pub use login::{LoggedIn, LoggedOut, Login};
pub use logins::Logins;
