//! Renders a call of an operation into a request.
//!
//! Enter at [`render`]. Invariant: the address keeps the origin and prefix of its base, and every value of a path is one segment.

mod body;
mod form;
mod multipart;
mod path;
mod value;
mod xml;

use perihelion_settings::config::strict::suggestion;
use serde_json::{Map, Value};
use url::Url;

use crate::catalogue::Location;
use crate::{Base, Catalogue, Error, Operation, Parameter, Result};

pub use body::{Payload, preferred};

/// Headers that describe the connection, carry credentials, or have the server take the request for another one: with
/// another method, address or sender. A call cannot set them.
const FORBIDDEN: &str = "host content-length transfer-encoding connection te upgrade trailer keep-alive expect \
     authorization cookie cookie2 via x-method x-host x-url x-proxy-url \
     remote-user remote-groups request-uri base-url http-url";
/// The beginnings of the names of others.
const FORBIDDEN_STARTS: &str = "proxy- forwarded x-forward x-original- x-rewrite- x-remote- x-accel- \
     cf-connecting- x-auth-request- x-authenticated- x-webauth- x-ms-client-principal \
     x-goog-authenticated- x-amzn-oidc- x-envoy- impersonate- tailscale-user- x-ssl- ssl- x-client-cert";
/// Parts of the names of others.
const FORBIDDEN_PARTS: &str = "http-method method-override request-method real-ip client-ip clientip remote-ip \
     originating-ip cluster-ip proxyuser-ip forwarded-for";

/// Returns whether a call may not set a header; some servers read an underscore as a hyphen.
fn is_forbidden(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('_', "-");
    FORBIDDEN.split_whitespace().any(|header| name == header)
        || FORBIDDEN_STARTS.split_whitespace().any(|start| name.starts_with(start))
        || FORBIDDEN_PARTS.split_whitespace().any(|part| name.contains(part))
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arguments {
    pub path: Map<String, Value>,
    pub query: Map<String, Value>,
    /// Header parameters, and cookies if the operation declares them.
    pub headers: Map<String, Value>,
    pub body: Option<Value>,
}

impl Arguments {
    fn get(&self, Parameter { name, location, .. }: &Parameter) -> Option<&Value> {
        let given = match location {
            Location::Path => self.path.get(name),
            Location::Query => self.query.get(name),
            Location::Header => {
                let mut headers = self.headers.iter();
                headers.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
            }
            Location::Cookie => self.headers.get(name),
        };
        given.filter(|given| !given.is_null())
    }
}

/// A request that may be sent, without credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub method: String,
    pub url: Url,
    /// In lower case, each once.
    pub headers: Vec<(String, String)>,
    pub body: Option<Payload>,
}

/// Renders a call.
///
/// # Errors
/// [`Error::Missing`] with every name that is missing, before anything else; [`Error::UnknownParameter`], [`Error::PathValue`],
/// [`Error::Value`], [`Error::ForbiddenHeader`], [`Error::Body`] for values that do not fit; [`Error::Outside`] for an address that
/// would leave the base.
pub fn render(
    catalogue: &Catalogue,
    operation: &Operation,
    arguments: &Arguments,
    base: &Base,
) -> Result<Request> {
    check_names(catalogue, operation, arguments)?;
    check_missing(catalogue, operation, arguments)?;
    let (path, fixed_query) = path::render(catalogue, operation, &arguments.path)?;
    let mut query = fixed_query;
    let mut headers = vec![("accept".to_owned(), "application/json, */*;q=0.5".to_owned())];
    let mut cookies = Vec::new();
    for parameter in &operation.parameters {
        let Some(given) = arguments.get(parameter) else { continue };
        let given = value::fitted(catalogue, parameter, given);
        match parameter.location {
            Location::Path => {}
            Location::Query => form::query(parameter, &given, &mut query)?,
            Location::Header => {
                put_header(&mut headers, &parameter.name, &value::simple(parameter, &given)?)?
            }
            Location::Cookie => form::query(parameter, &given, &mut cookies)?,
        }
    }
    for (name, given) in &arguments.headers {
        let is_declared = operation.parameters.iter().any(|parameter| match parameter.location {
            Location::Header => parameter.name.eq_ignore_ascii_case(name),
            Location::Cookie => parameter.name == *name,
            _ => false,
        });
        if !is_declared && !given.is_null() {
            put_header(&mut headers, name, &value::written(given))?;
        }
    }
    if catalogue.is_loose {
        let known: Vec<&str> = operation.names(Location::Query).collect();
        for (name, given) in arguments.query.iter().filter(|(_, given)| !given.is_null()) {
            if !known.contains(&name.as_str()) {
                form::query(&form::loose(name), given, &mut query)?;
            }
        }
    }
    if !cookies.is_empty() {
        headers.push(("cookie".to_owned(), form::joined(&cookies, "; ")));
    }
    let wanted =
        headers.iter().find(|(name, _)| name == "content-type").map(|(_, value)| value.clone());
    let body = body::render(catalogue, operation, arguments.body.as_ref(), wanted.as_deref())?;
    if let Some(body) = &body {
        headers.retain(|(name, _)| name != "content-type");
        headers.push(("content-type".to_owned(), body.content_type()));
    }
    let url = address(base, &path, &query)?;
    Ok(Request { method: operation.method.clone(), url, headers, body })
}

fn address(base: &Base, path: &str, query: &[(String, String)]) -> Result<Url> {
    let outside =
        |url: &str| Error::Outside { base: base.as_str().to_owned(), url: url.to_owned() };
    let full = format!("{}{path}", base.prefix());
    let text = format!("{}{path}", base.as_str());
    let mut url = Url::parse(&text).map_err(|_| outside(&text))?;
    // A parser that changed the path understood it otherwise than it was rendered: as a step upwards, for one.
    if url.path() != full || !base.contains(&url) {
        return Err(outside(url.as_str()));
    }
    if !query.is_empty() {
        url.set_query(Some(&form::joined(query, "&")));
    }
    Ok(url)
}

fn put_header(headers: &mut Vec<(String, String)>, name: &str, value: &str) -> Result<()> {
    let lower = name.to_ascii_lowercase();
    if is_forbidden(name) {
        return Err(Error::ForbiddenHeader(name.to_owned()));
    }
    let refused = |reason: &str| Error::Value {
        location: "header",
        name: name.to_owned(),
        reason: reason.to_owned(),
    };
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    if lower.is_empty() || !lower.chars().all(is_token) {
        return Err(refused("it is no name of a header"));
    }
    if value.chars().any(|c| c.is_control() && c != '\t') {
        return Err(refused("it contains line breaks or control characters"));
    }
    headers.retain(|(known, _)| *known != lower);
    headers.push((lower, value.to_owned()));
    Ok(())
}

fn check_names(catalogue: &Catalogue, operation: &Operation, arguments: &Arguments) -> Result<()> {
    for (location, given) in
        [(Location::Path, &arguments.path), (Location::Query, &arguments.query)]
    {
        let known: Vec<&str> = operation.names(location).collect();
        for name in given.keys() {
            if known.contains(&name.as_str()) || (catalogue.is_loose && location == Location::Query)
            {
                continue;
            }
            let hint = match suggestion(name, known.iter().copied()) {
                Some(alike) => alike,
                None if known.is_empty() => "; it takes none".to_owned(),
                None => format!("; it takes {}", known.join(", ")),
            };
            return Err(Error::UnknownParameter {
                operation: operation.id.clone(),
                location: location.name(),
                name: name.clone(),
                hint,
            });
        }
    }
    Ok(())
}

/// Names everything that is missing at once, so that one repair is enough.
fn check_missing(
    catalogue: &Catalogue,
    operation: &Operation,
    arguments: &Arguments,
) -> Result<()> {
    let mut names = Vec::new();
    for parameter in operation.parameters.iter().filter(|parameter| parameter.is_required) {
        let is_set = parameter.location == Location::Header && is_set_elsewhere(&parameter.name);
        if !is_set && arguments.get(parameter).is_none() {
            names.push(format!("{} ({})", parameter.name, parameter.location.name()));
        }
    }
    names.extend(body::missing(catalogue, operation, arguments.body.as_ref()));
    if names.is_empty() {
        return Ok(());
    }
    Err(Error::Missing { operation: operation.id.clone(), names })
}

/// Returns whether the connection or the credentials set a header parameter.
fn is_set_elsewhere(name: &str) -> bool {
    is_forbidden(name)
        || ["accept", "content-type"].iter().any(|own| name.eq_ignore_ascii_case(own))
}
