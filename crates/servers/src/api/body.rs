//! The body of an answer: decoded, and parsed without changing a number.

use std::borrow::Cow;

use encoding_rs::Encoding;
use perihelion_mime::decoded_page;
use serde_json::Value;

/// Reads a body by its media type: JSON as it is, anything else as text.
pub fn body(bytes: &[u8], media: &str) -> Value {
    if bytes.is_empty() {
        return Value::Null;
    }
    let media = media.to_ascii_lowercase();
    let Some(text) = text(bytes, &media) else {
        let kind = if media.is_empty() { "binary data" } else { &media };
        return Value::from(format!("{} bytes of {kind}", bytes.len()));
    };
    let may_parse = media.contains("json") || media.is_empty();
    match serde_json::from_str(&exact(&text)) {
        Ok(parsed) if may_parse => parsed,
        _ => Value::from(text),
    }
}

/// Decodes by the mark at the beginning, the media type or the document's own declaration; `None` for other content
/// than text.
fn text(bytes: &[u8], media: &str) -> Option<String> {
    let parameter = |name: &str| {
        let value = media.split(';').skip(1).find_map(|pair| pair.trim().strip_prefix(name))?;
        Some(value.trim_start_matches('=').trim_matches(['"', '\'', ' ']).to_owned())
    };
    let declared = parameter("charset");
    let is_text =
        ["text/", "json", "xml", "javascript", "csv"].iter().any(|part| media.contains(part));
    match std::str::from_utf8(bytes) {
        // What is read may end within a character.
        Err(error) if error.error_len().is_none() && declared.is_none() => {
            Some(String::from_utf8_lossy(bytes).into_owned())
        }
        Err(_) if !is_text && declared.is_none() && Encoding::for_bom(bytes).is_none() => None,
        _ => Some(decoded_page(bytes, declared.as_deref())),
    }
}

/// Writes whole numbers beyond 64 bits as texts, since as numbers they would lose their last digits.
fn exact(json: &str) -> Cow<'_, str> {
    let bytes = json.as_bytes();
    let mut written = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let start = at;
        match byte {
            b'"' => at += string_length(bytes.get(at..).unwrap_or_default()),
            b'-' | b'0'..=b'9' => {
                let is_part =
                    |byte: &&u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
                at += bytes.iter().skip(at).take_while(is_part).count();
                let number = json.get(start..at).unwrap_or_default();
                let digits = number.strip_prefix('-').unwrap_or(number);
                let is_whole = digits.bytes().all(|digit| digit.is_ascii_digit());
                if is_whole && number.parse::<i64>().is_err() && number.parse::<u64>().is_err() {
                    written.push_str(json.get(copied..start).unwrap_or_default());
                    written.push('"');
                    written.push_str(number);
                    written.push('"');
                    copied = at;
                }
            }
            _ => at += 1,
        }
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    written.push_str(json.get(copied..).unwrap_or_default());
    Cow::Owned(written)
}

/// Returns how many bytes a text in quotes has.
fn string_length(text: &[u8]) -> usize {
    let mut is_escaped = false;
    let end = text.iter().skip(1).position(|byte| {
        let is_end = *byte == b'"' && !is_escaped;
        is_escaped = *byte == b'\\' && !is_escaped;
        is_end
    });
    end.map_or(text.len(), |end| end + 2)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_body_is_decoded_by_its_declared_encoding() {
        let latin = b"{\"name\": \"Gr\xfc\xdfe\"}";
        let sjis = encoding_rs::SHIFT_JIS.encode("{\"name\": \"東京\"}").0;
        let wide: Vec<u8> =
            "\u{feff}{\"a\": \"ü\"}".encode_utf16().flat_map(u16::to_le_bytes).collect();
        for (bytes, media, expected) in [
            (latin.to_vec(), "application/json; charset=ISO-8859-1", json!({"name": "Grüße"})),
            (latin.to_vec(), "application/json", json!({"name": "Grüße"})),
            (sjis.to_vec(), "Application/JSON;charset=\"Shift_JIS\"", json!({"name": "東京"})),
            (
                b"{\"a\": \"~{31O+~}\"}".to_vec(),
                "application/json; charset=HZ-GB-2312",
                json!({"a": "潮汐"}),
            ),
            (b"\x1b$)C\x0eA6<v\x0f".to_vec(), "text/plain; charset=iso-2022-kr", json!("조수")),
            (
                b"<meta charset=windows-1251>\xcf\xf0\xe8\xe2\xe5\xf2".to_vec(),
                "text/html",
                json!("<meta charset=windows-1251>Привет"),
            ),
            (wide, "application/json", json!({"a": "ü"})),
            (b"\xef\xbb\xbf[1]".to_vec(), "application/json", json!([1])),
            (b"Gr\xfc\xdfe".to_vec(), "text/plain", json!("Grüße")),
            (
                b"<?xml version=\"1.0\" encoding='ISO-8859-1'?><a>\xfc</a>".to_vec(),
                "application/xml",
                json!("<?xml version=\"1.0\" encoding='ISO-8859-1'?><a>ü</a>"),
            ),
            (b"\x89PNG\xff\xff".to_vec(), "image/png", json!("6 bytes of image/png")),
            (b"no json".to_vec(), "application/json", json!("no json")),
            (b"7".to_vec(), "text/plain", json!("7")),
            (Vec::new(), "application/json", Value::Null),
        ] {
            assert_eq!(body(&bytes, media), expected, "{media}");
        }
    }

    #[test]
    fn no_whole_number_loses_a_digit() {
        for number in [
            "9007199254740993",
            "-9223372036854775808",
            "18446744073709551615",
            "18446744073709551616",
            "-9223372036854775809",
            "123456789012345678901234567890",
        ] {
            let text = format!("{{\"a\": [{number}], \"b {number}\": \"\\\" {number}\"}}");
            let parsed = body(text.as_bytes(), "application/json");
            let first = &parsed["a"][0];
            assert_eq!(first.as_str().map_or(first.to_string(), str::to_owned), number);
            assert_eq!(parsed[format!("b {number}")], format!("\" {number}"));
        }
        let parsed = body(b"[1.5, 1e3, -0.1, 12345678901234567890.5, 0]", "application/json");
        assert!(parsed.as_array().unwrap().iter().all(Value::is_number), "{parsed}");
    }
}
