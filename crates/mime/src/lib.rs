//! Texts in any character set, and mails whose writers break the rules.
//!
//! Enter at [`decoded`] for bytes, at [`decoded_page`] for a web page, and at [`repaired`] before a mail is parsed. Invariant: what is right
//! is left alone, and a broken byte or part costs itself and no other. Deliberately absent: reading a mailbox, and documents that are not texts.

mod charset;
mod message;
mod seven_bits;
mod words;

pub use charset::{decoded, decoded_page, named_in_page};
pub use message::{addresses, part_text, readable_text, repaired};
pub use seven_bits::unshifted;
