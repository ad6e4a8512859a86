//! Which operation stands first for a question.
#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use perihelion_openapi::{Catalogue, Finder};
use serde_json::{Map, Value, json};

/// What an API has of each kind of thing, with what belongs to one of them.
const THINGS: [(&str, &[&str]); 5] = [
    (
        "customers",
        &["sources", "tax_ids", "balance_transactions", "subscriptions", "payment_methods"],
    ),
    ("payments", &["refunds", "attempts"]),
    ("refunds", &["events"]),
    ("invoices", &["lines"]),
    ("projects", &["merge_requests", "issues", "branches", "hooks", "milestones"]),
];

fn singular(name: &str) -> String {
    name.strip_suffix("es")
        .filter(|rest| rest.ends_with("ch"))
        .unwrap_or(name.trim_end_matches('s'))
        .replace('_', " ")
}

/// An API as large ones are: everything is listed, shown, made, changed and deleted, on two levels, with many fields in its answers.
fn shop(has_summaries: bool) -> Catalogue {
    let mut paths = Map::new();
    let fields: Map<String, Value> = (0..40)
        .map(|n| (format!("customer_payment_field_{n}"), json!({"type": "string"})))
        .collect();
    let answer = json!({"200": {"content": {"application/json": {"schema": {"type": "object", "properties": fields}}}}});
    let mut add = |method: &str, path: String, summary: String| {
        let summary = if has_summaries { summary } else { String::new() };
        let entry = paths.entry(path).or_insert_with(|| json!({}));
        entry[method] = json!({"summary": summary, "responses": answer});
    };
    for (name, parts) in THINGS {
        let one = singular(name);
        let item = format!("/v1/{name}/{{id}}");
        add("get", format!("/v1/{name}"), format!("List all {name}"));
        add("post", format!("/v1/{name}"), format!("Create a {one}"));
        add("get", item.clone(), format!("Retrieve a {one}"));
        add("post", item.clone(), format!("Update a {one}"));
        add("delete", item.clone(), format!("Delete a {one}"));
        for part in parts {
            let words = part.replace('_', " ");
            let single = singular(part);
            add("get", format!("{item}/{part}"), format!("List {words} of a {one}"));
            add("post", format!("{item}/{part}"), format!("Create a {single} of a {one}"));
            add("get", format!("{item}/{part}/{{part}}"), format!("Retrieve a {single}"));
            add("delete", format!("{item}/{part}/{{part}}"), format!("Delete a {single}"));
        }
    }
    add("post", "/v1/invoices/{id}/send".into(), "Send an invoice".into());
    add("post", "/v1/projects/{id}/star".into(), "Star a project".into());
    add("delete", "/v1/projects/{id}/star".into(), "Unstar a project".into());
    add("post", "/v1/customers/purge".into(), "Purge all customers".into());
    add("get", "/v1/customers/search".into(), "Search customers".into());
    let document =
        json!({"openapi": "3.0.0", "servers": [{"url": "https://a.test"}], "paths": paths});
    Catalogue::read(&document.to_string()).unwrap()
}

#[test]
fn the_plain_operation_comes_first() {
    for has_summaries in [true, false] {
        let catalogue = shop(has_summaries);
        let finder = Finder::new(&catalogue);
        for (question, first) in [
            ("list customers", "GET /v1/customers"),
            ("show me all customers", "GET /v1/customers"),
            ("which customers do we have?", "GET /v1/customers"),
            ("how many customers are there", "GET /v1/customers"),
            ("can you list the customers please", "GET /v1/customers"),
            ("get a customer", "GET /v1/customers/{id}"),
            ("create a customer", "POST /v1/customers"),
            ("delete a customer", "DELETE /v1/customers/{id}"),
            ("update a customer", "POST /v1/customers/{id}"),
            ("search customers", "GET /v1/customers/search"),
            ("list payment methods of a customer", "GET /v1/customers/{id}/payment_methods"),
            ("list refunds", "GET /v1/refunds"),
            ("create a refund", "POST /v1/refunds"),
            ("send an invoice", "POST /v1/invoices/{id}/send"),
            ("open merge requests of a project", "GET /v1/projects/{id}/merge_requests"),
            ("closed merge requests in a project", "GET /v1/projects/{id}/merge_requests"),
            ("issues of a project", "GET /v1/projects/{id}/issues"),
            ("open an issue in a project", "POST /v1/projects/{id}/issues"),
            ("star a project", "POST /v1/projects/{id}/star"),
            ("remove a branch of a project", "DELETE /v1/projects/{id}/branches/{part}"),
        ] {
            let found = finder.find(&catalogue, question, 12);
            let place = format!("{} {}", found[0].operation.method, found[0].operation.path);
            assert_eq!(place, first, "{question} (summaries: {has_summaries})");
        }
        // Either makes the refund of a payment.
        let found = finder.find(&catalogue, "refund a payment", 12);
        let place = format!("{} {}", found[0].operation.method, found[0].operation.path);
        assert!(
            ["POST /v1/refunds", "POST /v1/payments/{id}/refunds"].contains(&place.as_str()),
            "{place}"
        );
    }
}

#[test]
fn a_reading_question_never_ranks_a_destructive_operation_first() {
    let catalogue = shop(true);
    let finder = Finder::new(&catalogue);
    let names = THINGS.iter().flat_map(|(name, parts)| parts.iter().chain([name]));
    for name in names.map(|name| name.replace('_', " ")) {
        for question in [
            format!("list {name}"),
            format!("which {name} were deleted"),
            format!("deleted {name}"),
            format!("who can delete {name}?"),
            format!("show {name} to purge or remove"),
            name.clone(),
            format!("when was the last of the {name} deleted"),
            format!("how many {name} did we delete"),
            format!("is it possible to remove {name}"),
        ] {
            for limit in [1, 3, 12] {
                let found = finder.find(&catalogue, &question, limit);
                let first = found[0].operation;
                let is_destructive = first.method == "DELETE" || first.path.ends_with("purge");
                assert!(!is_destructive, "{question}: {} {}", first.method, first.path);
            }
        }
    }
}

#[test]
fn an_operation_that_yields_an_id_is_listed_once_and_keeps_its_place() {
    let catalogue = shop(true);
    let finder = Finder::new(&catalogue);
    for (name, _) in THINGS {
        let found = finder.find(&catalogue, &format!("list {name}"), 12);
        let mut ids: Vec<&str> = found.iter().map(|found| found.operation.id.as_str()).collect();
        assert_eq!((ids[0], found.len()), (format!("GET /v1/{name}").as_str(), 12), "{ids:?}");
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 12);
    }
}
