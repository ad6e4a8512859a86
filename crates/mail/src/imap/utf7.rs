//! Names of folders beyond ASCII, as servers write them: modified UTF-7 (RFC 3501, section 5.1.3).

use base64::Engine as _;
use base64::alphabet::IMAP_MUTF7;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};

const CODE: GeneralPurpose = GeneralPurpose::new(&IMAP_MUTF7, NO_PAD);

/// Reads a name; an unencoded name stays as it is.
pub fn decoded(name: &str) -> String {
    decode(name).unwrap_or_else(|| name.to_owned())
}

fn decode(name: &str) -> Option<String> {
    let mut text = String::new();
    let mut rest = name;
    while let Some((before, coded)) = rest.split_once('&') {
        let (coded, after) = coded.split_once('-')?;
        let bytes = CODE.decode(coded).ok()?;
        let units: Vec<u16> = bytes
            .chunks(2)
            .map(|unit| u16::from_be_bytes([unit[0], *unit.get(1).unwrap_or(&0)]))
            .collect();
        text.push_str(before);
        match coded {
            "" => text.push('&'),
            _ => text.push_str(&String::from_utf16(&units).ok()?),
        }
        rest = after;
    }
    text.push_str(rest);
    Some(text)
}

pub fn encoded(name: &str) -> String {
    let mut text = String::new();
    let is_plain = |c: &char| matches!(c, ' '..='~');
    let chars: Vec<char> = name.chars().collect();
    for run in chars.chunk_by(|a, b| is_plain(a) == is_plain(b)) {
        let run: String = run.iter().collect();
        if run.starts_with(|c| is_plain(&c)) {
            text.push_str(&run.replace('&', "&-"));
        } else {
            let bytes: Vec<u8> = run.encode_utf16().flat_map(u16::to_be_bytes).collect();
            text.push_str(&format!("&{}-", CODE.encode(bytes)));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_a_folder_is_read_and_written_as_the_server_does() {
        for (name, wire) in [
            ("INBOX", "INBOX"),
            ("Entwürfe", "Entw&APw-rfe"),
            ("R&D", "R&-D"),
            ("~peter/mail/台北/日本語", "~peter/mail/&U,BTFw-/&ZeVnLIqe-"),
            ("ä😀", "&AOTYPd4A-"),
            ("", ""),
        ] {
            assert_eq!((encoded(name).as_str(), decoded(wire).as_str()), (wire, name));
        }
        for odd in ["a&b", "&AP!-", "&2D0-"] {
            assert_eq!(decoded(odd), odd);
        }
    }
}
