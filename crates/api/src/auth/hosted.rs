//! The decisions of hosted graphs about requests, by `auth` and `http` of their `langgraph.json`.
//!
//! An auth handler decides about requests without a credential of this service; it leads to the routes of the Agent
//! Server API alone.

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{StatusCode, Uri, header};
use perihelion_people::{Principal, ProvedBy};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::gate::REGISTERED;
use crate::http::{Refusal, is_json, json as read_json};
use perihelion_engine::clock;
use perihelion_engine::ids::ThreadId;
use perihelion_runtime::{Screens, Served};
use perihelion_service::Service;

#[derive(Deserialize)]
#[serde(untagged)]
enum Verdict {
    Refused {
        status: u16,
        detail: String,
    },
    Admitted {
        user: Option<Map<String, Value>>,
        /// The body and the query of the request to perform.
        body: Value,
        query: Option<String>,
        checks: Vec<Check>,
    },
}

/// A filter that the metadata of a thread, an assistant or a cron must match.
#[derive(Deserialize)]
struct Check {
    kind: String,
    id: String,
    filter: Map<String, Value>,
}

/// Asks the process of a graph about a request, and returns its user, if a handler knows one, with the request to perform.
pub(super) async fn judged(
    service: &Service,
    graph: &dyn Served,
    request: Request,
    is_known: bool,
    most: usize,
) -> Result<(Option<Principal>, Request), Refusal> {
    let (mut parts, body) = request.into_parts();
    let too_long = |error: axum::Error| Refusal(StatusCode::PAYLOAD_TOO_LARGE, error.to_string());
    // Only a handler decides about the program's own routes, some of which take long documents.
    let is_decided = graph.about().screens == Screens::Users && !is_known;
    if parts.uri.path().starts_with("/v1/") && !is_decided {
        return Ok((None, Request::from_parts(parts, body)));
    }
    let sent = to_bytes(body, most).await.map_err(too_long)?;
    let is_read = !sent.is_empty() && is_json(&parts.headers);
    let read = if is_read { read_json(&sent).map_err(Refusal::invalid)? } else { Value::Null };
    let text = |value: &header::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let headers = parts.headers.iter().map(|(name, value)| json!([name.as_str(), text(value)]));
    let order = json!({
        "method": parts.method.as_str(),
        "path": parts.uri.path(),
        "query": parts.uri.query(),
        "headers": headers.collect::<Vec<_>>(),
        "body": read,
        "is_known": is_known,
    });
    let unread =
        || Refusal(StatusCode::INTERNAL_SERVER_ERROR, "the auth handler failed".to_owned());
    let answer = graph.ask("authorize", order).await.map_err(|error| {
        tracing::error!(%error, "the auth handler failed");
        unread()
    })?;
    let verdict = Verdict::deserialize(answer.unwrap_or_default()).map_err(|_| unread())?;
    let (user, mut new, query, checks) = match verdict {
        Verdict::Refused { status, detail } => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::FORBIDDEN);
            return Err(Refusal(status, detail));
        }
        Verdict::Admitted { user, body, query, checks } => (user, body, query, checks),
    };
    for check in &checks {
        if !fits(service, check).await? {
            return Err(Refusal::missing(format!("{} not found", check.id)));
        }
    }
    without_forged_users(&mut new, &json!(user));
    if sent.is_empty() && new != read {
        let json = header::HeaderValue::from_static("application/json");
        parts.headers.insert(header::CONTENT_TYPE, json);
    }
    let body = if new == read { sent } else { new.to_string().into() };
    if query.as_deref() != parts.uri.query() {
        let target = format!("{}?{}", parts.uri.path(), query.unwrap_or_default());
        parts.uri = target.parse::<Uri>().map_err(|_| unread())?;
    }
    parts.headers.remove(header::CONTENT_LENGTH);
    let who = match user {
        None => None,
        Some(user) => {
            let identity = user.get("identity").and_then(Value::as_str).unwrap_or_default();
            if identity.is_empty() {
                return Err(unread());
            }
            let named = Principal {
                tenant: service.tenant().to_owned(),
                user: identity.to_owned(),
                scopes: REGISTERED.to_vec(),
                proved_by: ProvedBy::Token,
            };
            Some(service.people().still(named, clock::now()).await?)
        }
    };
    Ok((who, Request::from_parts(parts, Body::from(body))))
}

/// Removes the fields of users that a client wrote itself, at any depth; `user` is the true one, null without one.
pub(crate) fn without_forged_users(value: &mut Value, user: &Value) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(|one| without_forged_users(one, user)),
        Value::Object(fields) => {
            if let Some(Value::Object(given)) = fields.get_mut("configurable") {
                given.retain(|name, found| name != "langgraph_auth_user" || found == user);
            }
            fields.values_mut().for_each(|one| without_forged_users(one, user));
        }
        _ => {}
    }
}

/// Returns whether what a request names matches its filter; the graphs themselves are everybody's.
async fn fits(service: &Service, check: &Check) -> Result<bool, Refusal> {
    let Ok(id) = Uuid::parse_str(&check.id) else { return Ok(check.kind == "assistants") };
    let kept = service.kept();
    let metadata = match check.kind.as_str() {
        // Anyone may create a thread that does not exist.
        "new_threads" if service.known(ThreadId(id)).await?.is_none() => return Ok(true),
        "new_threads" | "threads" => Some(kept.thread_meta(id).await?.metadata),
        "assistants" => kept.assistant(id).await?.map(|found| found.metadata),
        _ => kept.cron(id).await?.map(|found| found.metadata),
    };
    let is_graph = metadata.is_none() && check.kind == "assistants";
    Ok(is_graph || metadata.is_some_and(|metadata| matches(&metadata, &check.filter)))
}

/// Returns whether metadata matches a filter with the operators `$eq`, `$contains`, `$and` and `$or`.
fn matches(metadata: &Value, filter: &Map<String, Value>) -> bool {
    let one_of = |group: &Value| group.as_object().is_some_and(|group| matches(metadata, group));
    let groups = |list: &Value| list.as_array().cloned().unwrap_or_default();
    filter.iter().all(|(name, wanted)| match (name.as_str(), wanted.as_object()) {
        ("$or", _) => groups(wanted).iter().any(one_of),
        ("$and", _) => groups(wanted).iter().all(one_of),
        (_, Some(operators)) if operators.keys().all(|name| name.starts_with('$')) => {
            operators.iter().all(|(operator, wanted)| compared(&metadata[name], operator, wanted))
        }
        _ => metadata[name] == *wanted,
    })
}

fn compared(found: &Value, operator: &str, wanted: &Value) -> bool {
    let has = |wanted: &Value| found.as_array().is_some_and(|list| list.contains(wanted));
    match operator {
        "$eq" => found == wanted,
        "$contains" => wanted.as_array().map_or_else(|| has(wanted), |all| all.iter().all(has)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_users_that_clients_wrote_are_removed_at_any_depth() {
        let user = json!({ "identity": "ann", "role": "reader" });
        let forged = json!({ "identity": "ann", "role": "root" });
        let body = |user: &Value| {
            let config = json!({ "configurable": { "langgraph_auth_user": user, "a": 1 } });
            json!({ "params": { "config": config }, "runs": [{ "config": config }] })
        };
        let kept = json!({ "configurable": { "a": 1 } });
        let without = json!({ "params": { "config": kept }, "runs": [{ "config": kept }] });
        for (mut given, true_user, wanted) in [
            (body(&forged), &user, without.clone()),
            (body(&user), &user, body(&user)),
            (body(&user), &Value::Null, without),
        ] {
            without_forged_users(&mut given, true_user);
            assert_eq!(given, wanted);
        }
    }

    #[test]
    fn filters_select_by_equality_membership_and_groups() {
        let metadata = json!({ "owner": "ann", "teams": ["a", "b"] });
        for (filter, is_match) in [
            (json!({}), true),
            (json!({ "owner": "ann" }), true),
            (json!({ "owner": "bob" }), false),
            (json!({ "absent": null }), true),
            (json!({ "owner": { "$eq": "ann" } }), true),
            (json!({ "teams": { "$contains": "a" } }), true),
            (json!({ "teams": { "$contains": ["a", "c"] } }), false),
            (json!({ "owner": { "$like": "ann" } }), false),
            (json!({ "$or": [{ "owner": "bob" }, { "teams": { "$contains": "b" } }] }), true),
            (json!({ "$and": [{ "owner": "ann" }, { "owner": "bob" }] }), false),
        ] {
            assert_eq!(matches(&metadata, filter.as_object().unwrap()), is_match, "{filter}");
        }
    }
}
