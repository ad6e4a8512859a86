//! Texts in any character set, compressed or not, and mails whose writers break the rules.
//!
//! Enter at [`decoded`] for bytes, at [`unpacked`] and [`decoded_page`] for a web page, and at [`repaired`] before a
//! mail is parsed.
//! Invariant: correct input stays unchanged, and a broken byte or part affects only itself. Deliberately absent:
//! reading a mailbox, and documents that are not texts.

mod charset;
mod dates;
mod johab;
mod message;
mod packed;
mod seven_bits;
mod wide;
mod words;

pub use charset::{EBCDIC, decoded, decoded_page, joined, named_in_page, named_or_guessed};
pub use message::{
    addresses, body_parts, part_text, readable_text, repaired, text_of_part, unescaped, unfolded,
};
pub use packed::unpacked;
pub use seven_bits::unshifted;
pub use wide::wide;
