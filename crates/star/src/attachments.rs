//! A user's attachments to a message: checked, stored as artifacts, and restored for model calls.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::artifacts::{MAX_BYTES, content_of};
use crate::{Artifact, GraphState, Result, Sources};
use perihelion_engine::graph::{Blob, TaskContext};
use perihelion_llm::{Attached, ChatRequest, MessageRole, Role, data_url, is_text};

pub(super) const ATTACHED: &str = "attached";

const MAX_FILES: usize = 16;
/// Bytes of one file at most.
const MAX_FILE: usize = 10 * 1024 * 1024;
/// Bytes of the files of one message at most.
const MAX_ALL: usize = 20 * 1024 * 1024;
/// Characters of a name at most.
const MAX_NAME: usize = 100;
/// Characters of a text that are shown at once.
const SHOWN_CHARS: usize = 8_000;
/// Newest messages whose attachments models are shown.
const LOOKED_AT: usize = 20;

/// An image or a file as a client sends it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Attachment {
    /// Name of the file; by default one made of its type.
    #[serde(default)]
    pub name: String,
    /// Such as `image/png`; by default that of the name.
    #[serde(default)]
    pub media_type: String,
    /// The bytes in base64.
    pub data: String,
}

impl Attachment {
    /// Makes one of a file's bytes; its type is that of its name.
    pub fn of_file(name: &str, bytes: &[u8]) -> Self {
        Self { name: name.to_owned(), media_type: String::new(), data: STANDARD.encode(bytes) }
    }

    /// Reads `data:<type>;base64,<data>`; `None` for another form.
    pub fn of_data_url(name: &str, url: &str) -> Option<Self> {
        let (media_type, data) = data_url(url)?;
        let name = name.to_owned();
        let media_type = media_type.to_owned();
        Some(Self { name, media_type, data: data.to_owned() })
    }
}

#[derive(Default)]
pub(super) struct Taken {
    pub artifacts: BTreeMap<String, Artifact>,
    pub attached: Vec<Attached>,
}

pub(super) fn take(given: Vec<Attachment>) -> Result<Taken, String> {
    if given.len() > MAX_FILES {
        return Err(format!("{} files with one message, at most: {MAX_FILES}", given.len()));
    }
    let mut taken = Taken::default();
    let mut all = 0;
    for one in given {
        let media_type = media_type(&one)?;
        let name = name(&one.name, &media_type);
        // Line breaks are common in base64, and mean nothing.
        let data: String = one.data.split_whitespace().collect();
        let bytes = STANDARD.decode(&data).map_err(|_| format!("{name}: it is not base64"))?;
        all += bytes.len();
        if bytes.is_empty() {
            return Err(format!("{name}: it is empty"));
        }
        if bytes.len() > MAX_FILE || all > MAX_ALL {
            return Err(format!(
                "{name}: a file may have {MAX_FILE} bytes, and all of a message {MAX_ALL}; it has {}",
                bytes.len()
            ));
        }
        let digest = blake3::hash(&bytes).to_hex();
        let key = format!("attached/{}/{name}", &digest[..12]);
        let length = bytes.len();
        let text = if is_text(&media_type) { String::from_utf8(bytes).ok() } else { None };
        let media_type = match text {
            None if is_text(&media_type) => "application/octet-stream".to_owned(),
            _ => media_type,
        };
        let preview = format!("{name}, {media_type}, attached by the user");
        let artifact = Artifact {
            source: ATTACHED.to_owned(),
            preview,
            bytes: length,
            media_type: text.is_none().then(|| media_type.clone()),
            content: text.unwrap_or(data).into(),
            // Anybody may have written what a user passes on.
            tainted_by: Sources::from([format!("attached.{name}")]),
        };
        taken.artifacts.insert(key.clone(), artifact);
        let bytes = length;
        taken.attached.push(Attached { artifact: key, name, media_type, bytes, data: None });
    }
    Ok(taken)
}

/// Reports that a thread stores too much to accept the attachments.
pub(super) fn refused(state: &GraphState) -> Option<String> {
    let kept: usize = state.global_state.iter().map(|(_, kept)| kept.content.bytes()).sum();
    let is_too_much = !state.preferences.attached.is_empty() && kept > MAX_BYTES;
    is_too_much.then(|| {
        format!(
            "the artifacts of this thread have {kept} bytes with what is attached, at most: {MAX_BYTES}; begin another thread"
        )
    })
}

/// Returns the type of a file: as it was given, or by its name.
fn media_type(given: &Attachment) -> Result<String, String> {
    let words = given.media_type.trim().to_ascii_lowercase();
    let words = words.split(';').next().unwrap_or_default();
    if !words.is_empty() {
        let plain = |part: &str| {
            !part.is_empty()
                && part.chars().all(|c| c.is_ascii_alphanumeric() || "+-._".contains(c))
        };
        return match words.split_once('/') {
            Some((kind, of)) if plain(kind) && plain(of) && words.len() < MAX_NAME => {
                Ok(words.to_owned())
            }
            _ => Err(format!("{}: not a media type: {words}", given.name)),
        };
    }
    let ending = given.name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    Ok(match ending.as_deref().unwrap_or_default() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "pdf" => "application/pdf",
        "json" => "application/json",
        "yaml" | "yml" => "application/yaml",
        "toml" => "application/toml",
        "xml" => "application/xml",
        "csv" => "text/csv",
        "md" => "text/markdown",
        "html" | "htm" => "text/html",
        "txt" | "log" | "" => "text/plain",
        _ => "application/octet-stream",
    }
    .to_owned())
}

/// Returns the last part of a name, without what would not stay within its line or tag.
fn name(given: &str, media_type: &str) -> String {
    let last = given.rsplit(['/', '\\']).next().unwrap_or_default();
    let kept = last.chars().filter(|c| c.is_alphanumeric() || " ._-+()".contains(*c));
    let name: String = kept.take(MAX_NAME).collect();
    let name = name.trim();
    if !name.is_empty() && name.chars().any(char::is_alphanumeric) {
        return name.to_owned();
    }
    let (kind, of) = media_type.split_once('/').unwrap_or(("file", "bin"));
    let kind = if kind == "image" { "image" } else { "file" };
    format!("{kind}.{}", of.trim_start_matches("x-"))
}

fn newest(state: &GraphState) -> impl Iterator<Item = &Attached> {
    let count = state.messages.len();
    let newest = count.saturating_sub(LOOKED_AT)..count;
    newest.filter_map(|at| state.messages.get(at)).flat_map(|words| &words.attached)
}

pub(super) fn sources(state: &GraphState) -> impl Iterator<Item = &Sources> {
    newest(state)
        .filter_map(|one| state.global_state.get(&one.artifact))
        .map(|artifact| &artifact.tainted_by)
}

/// Something that the newest messages of a thread carry, and where its content is.
#[derive(Clone, Debug)]
pub(super) struct Carried {
    attached: Attached,
    /// `None` if the thread no longer stores it.
    content: Option<Blob>,
    is_text: bool,
}

pub(super) fn of_state(state: &GraphState) -> Vec<Carried> {
    let mut found: Vec<Carried> = Vec::new();
    for one in newest(state) {
        if found.iter().any(|known| known.attached.artifact == one.artifact) {
            continue;
        }
        let kept = state.global_state.get(&one.artifact);
        let content = kept.map(|kept| kept.content.clone());
        let is_text = kept.is_some_and(|kept| kept.media_type.is_none());
        found.push(Carried { attached: one.clone(), content, is_text });
    }
    found
}

pub(super) async fn loaded(
    ctx: &TaskContext,
    request: &ChatRequest,
    carried: &[Carried],
) -> Result<ChatRequest> {
    let mut request = request.clone();
    for one in request.messages.iter_mut().flat_map(|message| &mut message.attached) {
        let known = carried.iter().find(|known| known.attached.artifact == one.artifact);
        let Some(Carried { content: Some(content), is_text, .. }) = known else { continue };
        let whole = content_of(ctx, &one.artifact, content).await?;
        one.data = Some(if *is_text {
            Arc::from(super::window::clip(&whole, SHOWN_CHARS))
        } else {
            whole
        });
    }
    Ok(request)
}

/// Adds the attachments to the request of a role that works on the user's words; only references are recorded.
pub(super) fn added(request: &ChatRequest, carried: &[Carried]) -> Option<ChatRequest> {
    let works = matches!(request.role, Role::Supervisor | Role::Agent | Role::Qa);
    if carried.is_empty() || !works {
        return None;
    }
    let mut request = request.clone();
    let words = request.messages.iter_mut().find(|message| message.role == MessageRole::User)?;
    words.attached = carried.iter().map(|one| one.attached.clone()).collect();
    Some(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(name: &str, media_type: &str, bytes: &[u8]) -> Attachment {
        Attachment { media_type: media_type.into(), ..Attachment::of_file(name, bytes) }
    }

    /// S2.01
    #[test]
    fn files_become_artifacts_under_names_that_stay_in_their_place() {
        let taken = take(vec![
            given("../../<b>plan\n.PDF", "", b"%PDF"),
            given("notes.txt", "", "grün".as_bytes()),
            given("broken.txt", "", b"\xff\xfe"),
            given("", "image/png", b"png"),
        ])
        .unwrap();
        let shown: Vec<(&str, &str)> =
            taken.attached.iter().map(|one| (one.name.as_str(), one.media_type.as_str())).collect();
        let expected = [
            ("bplan.PDF", "application/pdf"),
            ("notes.txt", "text/plain"),
            ("broken.txt", "application/octet-stream"),
            ("image.png", "image/png"),
        ];
        assert_eq!(shown, expected);
        let text = &taken.artifacts[&taken.attached[1].artifact];
        assert_eq!((&text.content, &text.media_type), (&"grün".into(), &None));
        let image = &taken.artifacts[&taken.attached[3].artifact];
        assert_eq!((&image.content, image.bytes), (&"cG5n".into(), 3));
        assert!(image.tainted_by.contains("attached.image.png"));
    }

    #[test]
    fn too_many_attachments_and_invalid_files_are_refused_by_name() {
        let refused = |given| take(given).err().unwrap();
        let many = vec![given("a.png", "", b"x"); MAX_FILES + 1];
        assert!(refused(many).contains("17 files"));
        let large = vec![given("a.png", "", &vec![0; MAX_FILE + 1])];
        assert!(refused(large).starts_with("a.png: a file may have"));
        assert!(refused(vec![given("a.png", "image", b"x")]).contains("not a media type"));
        let odd = Attachment { name: "a.png".into(), data: "§".into(), ..Attachment::default() };
        assert_eq!(refused(vec![odd]), "a.png: it is not base64");
    }
}
