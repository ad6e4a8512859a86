//! Reads objects of third-party servers' results.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Reads an object whose fields all have defaults: a field of the wrong type is dropped without losing the others. A
/// number is read as a text, and one value as a list, where those are wanted.
pub(super) fn read<T: DeserializeOwned>(given: &Value) -> Option<T> {
    let fields = given.as_object()?;
    if let Ok(whole) = T::deserialize(given) {
        return Some(whole);
    }
    let field = |(name, value): (&String, &Value)| {
        let text = value.is_number().then(|| Value::from(value.to_string()));
        let mut forms = [Some(value.clone()), text, Some(json!([value]))].into_iter().flatten();
        let fits = |form: &Value| T::deserialize(json!({ name: form })).is_ok();
        forms.find(fits).map(|form| (name.clone(), form))
    };
    let fields = fields.iter().filter_map(field).collect();
    T::deserialize(Value::Object(fields)).ok()
}

#[cfg(test)]
mod tests {
    use crate::cited::Passage;
    use crate::mail::Mail;
    use crate::pipeline::ToolReply;

    use super::*;

    #[test]
    fn a_field_of_another_form_leaves_the_rest_of_its_object() {
        let data = json!({ "messages": [
            { "id": 7, "to": "a@b.test", "cc": null, "subject": null, "from": ["x"], "text": "Hi" },
            "no object",
        ] });
        let reply = |data: Value| {
            let mut reply = ToolReply::default();
            reply.structured = Some(data);
            reply
        };
        let read = Mail::all_of(&reply(data)).unwrap();
        let to = vec!["a@b.test".to_owned()];
        let mail = Mail { id: "7".into(), to, text: "Hi".into(), ..Mail::default() };
        assert_eq!(read, [mail]);
        assert!(Mail::all_of(&reply(json!({ "messages": ["no object"] }))).is_err());
        assert_eq!(Mail::all_of(&reply(json!({ "messages": [] }))), Ok(Vec::new()));
        let hit =
            json!({ "document": 12, "title": null, "page": "iv", "quote": "a", "parent": "b" });
        let passage = Passage { document: "12".into(), quote: "a".into(), ..Passage::default() };
        assert_eq!(Passage::of_hit(&hit), Some(passage));
    }
}
