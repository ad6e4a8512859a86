//! One call: its base address, its request, its answer with the pages that follow.

use perihelion_http::reach::is_loopback;
use perihelion_openapi::{
    Arguments, Base, BaseChoice, Catalogue, Finder, Operation, Request, render,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::adjust::Context;
use super::checks::{check_override, leads_to_secrets};
use super::client::{Answer, Client, Sending};
use super::{Error, Options, Result, pages};

const BASE_URL: &str = "PERIHELION_API_BASE_URL";

/// What call_operation is given.
#[derive(Deserialize, JsonSchema)]
pub struct Call {
    /// Name of an operation as find_operations lists it, or its method and path: `GET /users/{id}`.
    pub operation: String,
    /// Values by name for the placeholders of the path.
    pub path_params: Option<Values>,
    /// Values by name for the query; lists and objects as JSON.
    pub query_params: Option<Values>,
    /// Values by name for headers and cookies that the operation declares.
    pub headers: Option<Values>,
    /// The body: an object for JSON and forms, a text for anything else; a file of a form is {"filename", "text" or "base64"}.
    pub body: Option<Value>,
    /// Key-values of the request, from a caller that cannot use `_meta`; no part of what models are offered.
    #[schemars(skip)]
    pub context: Option<Map<String, Value>>,
}

/// Values by name, as an object or as a list of names and values.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Values {
    ByName(Map<String, Value>),
    Listed(Vec<Named>),
}

/// A value with its name.
#[derive(Deserialize, JsonSchema)]
pub struct Named {
    pub name: String,
    pub value: Value,
}

/// What it returns.
#[derive(Serialize, JsonSchema)]
pub struct Called {
    /// The answer's HTTP status.
    pub status: u16,
    /// The answer's headers, by lower-case name.
    pub headers: Map<String, Value>,
    /// The answer's body: JSON as it is, anything else as text.
    pub body: Value,
    /// The body, or the list of pages, was longer than is read.
    pub truncated: bool,
    /// Pages that were read.
    pub pages: u32,
    /// Query parameters from the context, added after the API refused the request without them.
    pub adjusted: Vec<String>,
}

pub struct Api {
    pub catalogue: Catalogue,
    pub finder: Finder,
    pub client: Client,
    pub options: Options,
}

impl Api {
    /// Renders and sends one call.
    ///
    /// # Errors
    /// When it cannot be rendered or sent; a refusal by the API is a result.
    pub async fn call(&self, input: Call, context: &Context, may_write: bool) -> Result<Called> {
        let (operation, in_path) = self.catalogue.matched(&input.operation)?;
        self.check_writes(operation, may_write)?;
        let mut path = values(input.path_params);
        for (name, value) in in_path {
            path.entry(name).or_insert(Value::String(value));
        }
        let mut arguments = Arguments {
            path,
            query: values(input.query_params),
            headers: values(input.headers),
            body: input.body,
        };
        context.add_headers(&mut arguments);
        let base = self.base(operation, context).await?;
        let rendered = |arguments: &Arguments| -> Result<Request> {
            let request = render(&self.catalogue, operation, arguments, &base)?;
            if !may_write || self.options.read_only {
                check_override(operation, &request)?;
            }
            Ok(request)
        };
        let mut adjusted = Vec::new();
        let request = rendered(&arguments)?;
        let filled;
        let schemes = &self.catalogue.schemes;
        let mut sending = Sending { request: &request, base: &base, operation, schemes };
        let mut answer = self.client.send(&sending).await?;
        if answer.status == 400 && operation.is_read() {
            adjusted = context.fill(operation, &mut arguments);
            if !adjusted.is_empty() {
                filled = rendered(&arguments)?;
                sending.request = &filled;
                answer = self.client.send(&sending).await?;
            }
        }
        let pages = self.follow(&mut answer, sending).await;
        let Answer { status, headers, body, is_cut, .. } = answer;
        Ok(Called { status, headers, body, truncated: is_cut, pages, adjusted })
    }

    /// Reads further pages into an answer, while there is space; a failure keeps the earlier pages.
    async fn follow(&self, answer: &mut Answer, first: Sending<'_>) -> u32 {
        let mut read = 1;
        if first.operation.method != "GET" {
            return read;
        }
        let mut request = first.request.clone();
        let most = (self.options.max_body_kb as usize) << 10;
        while let Some(next) = pages::next(answer, &request.url, first.base) {
            if read >= self.options.max_pages || answer.size >= most {
                answer.is_cut = true;
                break;
            }
            request.url = next;
            let sending = Sending { request: &request, ..first };
            let Ok(page) = self.client.send(&sending).await else {
                answer.is_cut = true;
                break;
            };
            answer.size += page.size;
            let joined =
                (page.status < 400).then(|| pages::join(&mut answer.body, page.body)).flatten();
            answer.is_cut |= page.is_cut || joined.is_none();
            let Some(has_more) = joined else { break };
            read += 1;
            answer.headers = page.headers;
            if !has_more {
                break;
            }
        }
        read
    }

    fn check_writes(&self, operation: &Operation, may_write: bool) -> Result<()> {
        let place = format!("{} {}", operation.method, operation.path);
        let is_listed =
            self.options.reads.iter().any(|name| *name == operation.id || *name == place);
        if (may_write && !self.options.read_only) || operation.is_read() || is_listed {
            return Ok(());
        }
        Err(Error::ReadOnly { operation: operation.id.clone(), method: operation.method.clone() })
    }

    /// Chooses the base address that the operator named, or the description.
    pub fn own_base(&self, operation: &Operation) -> Result<Base, perihelion_openapi::Error> {
        let environment = std::env::var(BASE_URL).ok();
        let own = BaseChoice {
            context: None,
            environment: environment.as_deref(),
            configured: self.options.base_url.as_deref(),
            variables: &self.options.variable,
            document: self.options.spec_url.as_deref(),
        };
        Base::choose(&self.catalogue, operation, &own)
    }

    /// Chooses the base address. Every request to it has the operator's headers and credentials.
    async fn base(&self, operation: &Operation, context: &Context) -> Result<Base> {
        let configured = self.own_base(operation);
        let Some(named) = context.base() else { return Ok(configured?) };
        let named = Base::parse(named)?;
        let allowed = self.options.allow_base.iter().filter_map(|base| Base::parse(base).ok());
        let is_known = configured.iter().cloned().chain(allowed).any(|known| known == named);
        if is_known {
            return Ok(named);
        }
        // A model can write an argument.
        let may_be_foreign = if context.is_argument {
            !self.client.has_secrets() && !leads_to_secrets(&named).await
        } else {
            !self.client.has_secrets() || is_loopback(named.as_str())
        };
        if may_be_foreign {
            return Ok(named);
        }
        Err(Error::ForeignBase(named.as_str().to_owned()))
    }
}

fn values(given: Option<Values>) -> Map<String, Value> {
    match given {
        None => Map::new(),
        Some(Values::ByName(values)) => values,
        Some(Values::Listed(list)) => {
            list.into_iter().map(|named| (named.name, named.value)).collect()
        }
    }
}
