//! The wire form of server-sent events.

use bytes::Bytes;

/// A comment that keeps a connection alive.
pub const HEARTBEAT: Bytes = Bytes::from_static(b": heartbeat\n\n");

/// Writes one event; `data` is JSON on one line.
///
/// Characters that would break the framing, line ends in a name or an ID, are removed.
pub fn event(name: &str, data: &str, id: Option<&str>) -> Bytes {
    let mut text = String::with_capacity(name.len() + data.len() + 48);
    field(&mut text, "event", name);
    for line in data.split('\n') {
        field(&mut text, "data", line);
    }
    if let Some(id) = id {
        field(&mut text, "id", id);
    }
    text.push('\n');
    Bytes::from(text)
}

/// Writes one event without a name, as some protocols want it.
pub fn data(data: &str) -> Bytes {
    Bytes::from(format!("data: {}\n\n", data.replace(['\r', '\n'], " ")))
}

fn field(text: &mut String, name: &str, value: &str) {
    text.push_str(name);
    text.push_str(": ");
    text.extend(value.chars().filter(|letter| !matches!(letter, '\r' | '\n' | '\0')));
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_exactly_a_name_data_and_an_id() {
        let text = event("updates|a\nb", "{\"x\":1}", Some("4-0"));
        assert_eq!(&text[..], b"event: updates|ab\ndata: {\"x\":1}\nid: 4-0\n\n");
    }
}
