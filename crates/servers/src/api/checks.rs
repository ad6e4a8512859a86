//! What a call must not do although a model asks for it: turn a read into a write, or reach the addresses at which
//! clouds give out secrets.

use std::net::IpAddr;
use std::time::Duration;

use perihelion_openapi::{Base, Operation, Request};
use serde_json::{Map, Value};
use tokio::time::timeout;
use url::{Host, Url, form_urlencoded};

use super::{Error, Result};

/// Names by which frameworks change the method of a request, without underscores, in addition to the headers that no
/// call can set.
const OVERRIDES: [&str; 4] =
    ["xhttpmethod", "xhttpmethodoverride", "xmethodoverride", "httpmethodoverride"];
/// Names that do so only with an underscore at their beginning.
const MARKED_OVERRIDES: [&str; 3] = ["method", "httpmethod", "methodoverride"];
/// Names of the services that give out a machine's secrets.
const SECRET_NAMES: [&str; 3] = ["metadata", "metadata.google.internal", "metadata.goog"];
/// Longest wait for the addresses of a name.
const LOOKUP: Duration = Duration::from_secs(10);

/// Refuses a query or a field that would turn a request that reads into another one, unless the operation declares it.
pub fn check_override(operation: &Operation, request: &Request) -> Result<()> {
    let query = request.url.query_pairs().map(|(name, _)| name.into_owned());
    let body = request.body.as_ref().map(|body| fields(&body.bytes)).unwrap_or_default();
    let is_declared = |name: &str| operation.parameters.iter().any(|known| known.name == name);
    let mut names = query.chain(body);
    let found = names.find(|name| is_override(name) && !is_declared(name));
    found.map_or(Ok(()), |name| Err(Error::MethodOverride(name)))
}

fn is_override(name: &str) -> bool {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let plain = plain.to_ascii_lowercase();
    // PHP reads any other character as an underscore.
    let is_marked = name.trim_start().starts_with(|c: char| !c.is_alphanumeric());
    OVERRIDES.contains(&plain.as_str()) || is_marked && MARKED_OVERRIDES.contains(&plain.as_str())
}

/// Returns the names of the fields of a body: JSON, a form, or a form of parts.
fn fields(body: &[u8]) -> Vec<String> {
    if let Ok(fields) = serde_json::from_slice::<Map<String, Value>>(body) {
        return fields.into_iter().map(|(name, _)| name).collect();
    }
    let text = String::from_utf8_lossy(body);
    let parts = text.split("form-data; name=\"").skip(1);
    let parts = parts.filter_map(|part| Some(part.split_once('"')?.0.to_owned()));
    let pairs = form_urlencoded::parse(body).map(|(name, _)| name.into_owned());
    pairs.chain(parts).collect()
}

pub async fn leads_to_secrets(base: &Base) -> bool {
    let Ok(url) = Url::parse(base.as_str()) else { return true };
    match url.host() {
        Some(Host::Ipv4(ip)) => gives_out_secrets(ip.into()),
        Some(Host::Ipv6(ip)) => gives_out_secrets(ip.into()),
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            if SECRET_NAMES.contains(&name) {
                return true;
            }
            // A name without an address here can have one for a proxy.
            let Ok(Ok(mut found)) = timeout(LOOKUP, tokio::net::lookup_host((name, 0))).await
            else {
                return false;
            };
            found.any(|address| gives_out_secrets(address.ip()))
        }
        None => true,
    }
}

fn gives_out_secrets(ip: IpAddr) -> bool {
    match ip {
        // Alibaba's, Azure's and Oracle's are not link-local.
        IpAddr::V4(ip) => {
            ip.is_link_local()
                || [[100, 100, 100, 200], [168, 63, 129, 16], [192, 0, 0, 192]]
                    .contains(&ip.octets())
        }
        IpAddr::V6(ip) => {
            let [first, second, ..] = ip.segments();
            // Amazon's and Google's.
            let is_fixed = matches!((first, second), (0xfd00, 0x0ec2) | (0xfd20, 0x00ce));
            let inner = perihelion_web::embedded(ip);
            is_fixed
                || ip.is_unicast_link_local()
                || inner.is_some_and(|inner| gives_out_secrets(inner.into()))
        }
    }
}

#[cfg(test)]
mod tests {
    use perihelion_openapi::{Arguments, Catalogue, render};
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn addresses_that_give_out_secrets_are_recognized_in_every_form() {
        for (text, expected) in [
            ("http://169.254.169.254/latest", true),
            ("http://[::ffff:169.254.169.254]/", true),
            ("http://[::169.254.169.254]/", true),
            ("http://[fe80::1]/", true),
            ("http://2852039166/", true),
            ("http://metadata.google.internal/", true),
            ("http://METADATA.google.internal./computeMetadata/v1", true),
            ("http://[fd00:ec2::254]/", true),
            ("http://[fd20:ce::254]/", true),
            ("http://[64:ff9b::a9fe:a9fe]/", true),
            ("http://[64:ff9b::6464:64c8]/", true),
            ("http://[2002:a9fe:a9fe::]/", true),
            ("http://100.100.100.200/", true),
            ("http://168.63.129.16/", true),
            ("http://192.0.0.192/opc/v1", true),
            ("http://127.0.0.1:8080/", false),
            ("http://[::1]/", false),
            ("http://[fd00::1]/", false),
            ("http://100.100.100.201/", false),
            ("https://localhost/v1", false),
        ] {
            let base = Base::parse(text).unwrap();
            assert_eq!(leads_to_secrets(&base).await, expected, "{text}");
        }
    }

    #[test]
    fn a_read_with_a_part_that_changes_its_method_is_refused_however_it_is_written() {
        let content = |media: &str| json!({"content": {media: {"schema": {"type": "object"}}}});
        let operation = |media: &str| {
            let filter = json!({"name": "filter", "in": "query", "style": "form", "explode": true, "schema": {"type": "object"}});
            let open = json!({"name": "open", "in": "query", "allowReserved": true, "schema": {"type": "string"}});
            json!({"post": {"parameters": [filter, open], "requestBody": content(media)}})
        };
        let text = json!({
            "openapi": "3.0.0", "info": {"title": "x", "version": "1"},
            "paths": {
                "/json": operation("application/json"), "/form": operation("application/x-www-form-urlencoded"),
                "/parts": operation("multipart/form-data"), "/text": operation("text/plain"),
            },
        });
        let catalogue = Catalogue::read(&text.to_string()).unwrap();
        let base = Base::parse("http://api.test/").unwrap();
        let delete = json!({"_method": "DELETE"});
        for (path, query, body, is_refused) in [
            ("/json", json!({}), delete.clone(), true),
            ("/json", json!({}), json!(delete.to_string()), true),
            ("/json", json!({}), json!({"x_http_method_override": "DELETE"}), true),
            ("/json", json!({}), json!({"X-HTTP-Method": "DELETE"}), true),
            ("/json", json!({}), json!({".method": "DELETE"}), true),
            ("/json", json!({"filter": delete}), json!(null), true),
            ("/json", json!({"filter": {"X_Http-Method": "x"}}), json!(null), true),
            ("/json", json!({"open": "a;_method=DELETE"}), json!(null), false),
            ("/form", json!({}), json!(delete.to_string()), true),
            ("/form", json!({}), json!({".method": "DELETE"}), true),
            ("/parts", json!({}), json!(delete.to_string()), true),
            ("/parts", json!({}), json!({"a": "b", "_Method": "DELETE"}), true),
            ("/text", json!({}), json!(delete.to_string()), true),
            (
                "/json",
                json!({}),
                json!({"method": "card", "http_method": "GET", "a": delete}),
                false,
            ),
            ("/json", json!({"filter": {"method": "card"}}), json!(null), false),
            ("/form", json!({}), json!({"method": "a;_method=b"}), false),
        ] {
            let (operation, _) = catalogue.matched(&format!("POST {path}")).unwrap();
            let mut arguments = Arguments { body: Some(body.clone()), ..Arguments::default() };
            arguments.query = query.as_object().cloned().unwrap();
            let request = render(&catalogue, operation, &arguments, &base).unwrap();
            let refused = check_override(operation, &request);
            assert_eq!(refused.is_err(), is_refused, "{path} {query} {body}: {request:?}");
        }
    }
}
