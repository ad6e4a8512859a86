//! Texts for clients, without the addresses of the models: those are the operator's business.

use std::collections::BTreeSet;

use serde_json::Value;

use perihelion_service::Service;
use perihelion_settings::config::{Models, Roles};

/// What stands in the place of an address.
const HIDDEN: &str = "(address hidden)";

/// Removes the addresses of model endpoints from a text that names one of them as such.
pub(crate) fn without_endpoints(service: &Service, text: String) -> String {
    hide(text, &endpoints(&service.runtime().settings().models))
}

/// Does the same in all texts of a value.
pub(crate) fn in_json(service: &Service, mut value: Value) -> Value {
    let endpoints = endpoints(&service.runtime().settings().models);
    hide_within(&mut value, &endpoints);
    value
}

fn hide_within(value: &mut Value, endpoints: &[String]) {
    match value {
        Value::String(text) => *text = hide(std::mem::take(text), endpoints),
        Value::Array(items) => items.iter_mut().for_each(|item| hide_within(item, endpoints)),
        Value::Object(fields) => {
            fields.values_mut().for_each(|field| hide_within(field, endpoints));
        }
        _ => {}
    }
}

/// Returns the addresses of all endpoints, longer ones first.
fn endpoints(models: &Models) -> Vec<String> {
    let of_roles = Roles::NAMES.iter().map(|role| models.for_role(role));
    let of_agents = models.agents.keys().map(|agent| models.for_agent(agent));
    let urls = of_roles.chain(of_agents).filter_map(|one| one.url);
    let urls: BTreeSet<String> = urls.map(|url| url.trim_end_matches('/').to_owned()).collect();
    urls.into_iter().rev().collect()
}

fn hide(mut text: String, endpoints: &[String]) -> String {
    for url in endpoints {
        if text.contains(&format!("model endpoint {url}")) {
            text = text.replace(url, HIDDEN);
            if let Some(host) = url.split('/').nth(2) {
                text = text.replace(host, HIDDEN);
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_hidden_where_it_is_named_as_a_model_s() {
        let endpoints = ["http://10.0.0.7:8000/v1".to_owned()];
        let failure =
            "cannot reach the model endpoint http://10.0.0.7:8000/v1: 10.0.0.7:8000 refused";
        let shown = hide(failure.to_owned(), &endpoints);
        let wanted = "cannot reach the model endpoint (address hidden): (address hidden) refused";
        assert_eq!(shown, wanted);
        let answer = "The model runs at http://10.0.0.7:8000/v1.";
        assert_eq!(hide(answer.to_owned(), &endpoints), answer, "an answer of the agents'");
    }
}
