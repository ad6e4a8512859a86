//! The facts about an API: its operations and their inputs.

use std::collections::HashMap;

use perihelion_settings::config::strict::suggestion;
use serde::Deserialize;
use serde_json::Value;

use crate::{Error, Result};

#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    pub title: String,
    pub servers: Vec<Server>,
    pub operations: Vec<Operation>,
    pub schemes: Vec<Scheme>,
    /// Passages of documentation that belong to no single operation.
    pub snippets: Vec<Snippet>,
    /// Operations take whatever they are given, since the document lists no parameters.
    pub is_loose: bool,
    pub(crate) document: Value,
    pub(crate) by_name: HashMap<String, usize>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snippet {
    pub title: String,
    pub text: String,
}

/// A base address, perhaps with variables or relative to the document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Server {
    pub url: String,
    /// Defaults by variable.
    pub variables: Vec<(String, String)>,
}

#[derive(Clone, Debug, Default)]
pub struct Operation {
    /// Unique: the document's `operationId`, or method and path.
    pub id: String,
    /// In upper case.
    pub method: String,
    /// Template with `{name}` placeholders.
    pub path: String,
    pub summary: String,
    pub description: String,
    pub tags: Vec<String>,
    pub is_deprecated: bool,
    pub parameters: Vec<Parameter>,
    pub body: Option<Body>,
    /// Its own servers, or those of its path; empty if the API's apply.
    pub servers: Vec<Server>,
    /// Alternatives, each a set of scheme names that are needed together; `None` if the document has none.
    pub security: Option<Vec<Vec<String>>>,
    /// The first successful answer's schema.
    pub(crate) answer: Option<Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Location {
    Path,
    Query,
    Header,
    Cookie,
}

impl Location {
    pub fn name(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Query => "query",
            Self::Header => "header",
            Self::Cookie => "cookie",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Style {
    Simple,
    Label,
    Matrix,
    Form,
    SpaceDelimited,
    PipeDelimited,
    /// Of OpenAPI 2 alone, which calls it otherwise.
    #[serde(skip)]
    TabDelimited,
    DeepObject,
}

#[derive(Clone, Debug)]
pub struct Parameter {
    pub name: String,
    pub location: Location,
    pub is_required: bool,
    pub style: Style,
    pub explode: bool,
    pub allow_reserved: bool,
    /// The value is one document of this media type.
    pub media: Option<String>,
    pub description: String,
    pub schema: Value,
}

#[derive(Clone, Debug, Default)]
pub struct Body {
    pub is_required: bool,
    pub description: String,
    /// In the order of the document.
    pub contents: Vec<Content>,
}

#[derive(Clone, Debug, Default)]
pub struct Content {
    pub media: String,
    pub schema: Value,
    /// How single fields of a form are written, by name.
    pub encoding: Value,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scheme {
    pub name: String,
    pub kind: SchemeKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemeKind {
    KeyInHeader(String),
    KeyInQuery(String),
    KeyInCookie(String),
    Basic,
    Bearer,
    /// With the address of tokens for clients, if there is one.
    OAuth {
        token_url: Option<String>,
    },
    Other(String),
}

/// An operation, and the values that its name has for the parameters of its path.
type Matched<'a> = (&'a Operation, Vec<(String, String)>);

impl Catalogue {
    /// Finds an operation by its id, or by method and path.
    ///
    /// # Errors
    /// [`Error::UnknownOperation`] with the nearest name.
    pub fn operation(&self, name: &str) -> Result<&Operation> {
        let name = name.trim();
        let exact = self.by_name.get(name).or_else(|| self.by_name.get(&place_name(name)));
        if let Some(operation) = exact.and_then(|index| self.operations.get(*index)) {
            return Ok(operation);
        }
        let hint = suggestion(name, self.operations.iter().map(|one| one.id.as_str()))
            .unwrap_or_else(|| "; find_operations lists those that fit a question".to_owned());
        Err(Error::UnknownOperation { name: name.to_owned(), hint })
    }

    /// Finds an operation as [`Catalogue::operation`] does, or by method and a path with its values filled in, which are returned.
    pub fn matched(&self, name: &str) -> Result<Matched<'_>> {
        let refused = match self.operation(&braced(name)) {
            Ok(operation) => return Ok((operation, Vec::new())),
            Err(refused) => refused,
        };
        let Some((method, path)) = name.trim().split_once(char::is_whitespace) else {
            return Err(refused);
        };
        let path = path.trim().split(['?', '#']).next().unwrap_or_default();
        let same_method =
            self.operations.iter().filter(|one| one.method.eq_ignore_ascii_case(method));
        let fitting = same_method.filter_map(|one| Some((one, values_of(&one.path, path)?)));
        // The template with the fewest placeholders says most of the path itself.
        fitting.min_by_key(|(_, values)| values.len()).ok_or(refused)
    }

    pub fn required_of(&self, schema: &Value) -> Vec<String> {
        crate::schema::required(self, schema)
    }

    /// Follows references within the document to their target.
    pub fn resolved<'a>(&'a self, value: &'a Value) -> &'a Value {
        crate::pointer::resolved(&self.document, value)
    }

    /// Gives every operation a unique name and indexes it.
    pub(crate) fn index(&mut self) {
        let mut by_name = HashMap::with_capacity(self.operations.len() * 2);
        for (index, operation) in self.operations.iter_mut().enumerate() {
            let place = format!("{} {}", operation.method, operation.path);
            if operation.id.is_empty() || by_name.contains_key(&operation.id) {
                operation.id.clone_from(&place);
            }
            by_name.entry(operation.id.clone()).or_insert(index);
            by_name.entry(place).or_insert(index);
        }
        self.by_name = by_name;
    }
}

impl Operation {
    pub fn is_read(&self) -> bool {
        matches!(self.method.as_str(), "GET" | "HEAD" | "OPTIONS" | "TRACE")
    }

    pub(crate) fn names(&self, location: Location) -> impl Iterator<Item = &str> {
        let here = self.parameters.iter().filter(move |parameter| parameter.location == location);
        here.map(|parameter| parameter.name.as_str())
    }

    /// Returns the names of the path's placeholders, in order.
    pub fn placeholders(&self) -> Vec<&str> {
        placeholders(&self.path).map(|(_, name)| name).collect()
    }
}

/// Yields the placeholders of a path with their text: `{name}`.
pub fn placeholders(path: &str) -> impl Iterator<Item = (&str, &str)> {
    path.match_indices('{').filter_map(|(start, _)| {
        let rest = path.get(start..)?;
        let end = rest.find('}')?;
        let text = rest.get(..=end)?;
        let name = text.get(1..end)?.trim_start_matches('+').trim_end_matches('*');
        (!name.is_empty() && !name.contains('{')).then_some((text, name))
    })
}

/// Writes `:name` as `{name}`, if a segment begins with the colon.
pub fn braced(name: &str) -> String {
    let segments = name.split('/').map(|segment| match segment.strip_prefix(':') {
        Some(placeholder) if !placeholder.is_empty() => format!("{{{placeholder}}}"),
        _ => segment.to_owned(),
    });
    segments.collect::<Vec<_>>().join("/")
}

/// Reads the values out of a path that a template fits, segment by segment.
fn values_of(template: &str, path: &str) -> Option<Vec<(String, String)>> {
    let template: Vec<&str> = template.split('/').collect();
    let path: Vec<&str> = path.split('/').collect();
    if template.len() != path.len() {
        return None;
    }
    let mut values = Vec::new();
    for (wanted, given) in template.iter().zip(path) {
        match placeholders(wanted).next() {
            Some((text, name)) if text == *wanted && !given.is_empty() && !given.contains('{') => {
                let value = percent_encoding::percent_decode_str(given).decode_utf8().ok()?;
                values.push((name.to_owned(), value.into_owned()));
            }
            _ if *wanted == given => {}
            _ => return None,
        }
    }
    Some(values)
}

fn place_name(name: &str) -> String {
    match name.split_once(char::is_whitespace) {
        Some((method, path)) => format!("{} {}", method.to_ascii_uppercase(), path.trim()),
        None => name.to_owned(),
    }
}
