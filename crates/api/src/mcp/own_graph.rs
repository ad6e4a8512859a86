//! The tools of the program's own graphs: one with messages is asked a question, any other is given its input.

use rmcp::model::{CallToolRequestParams, CallToolResponse, Tool};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Map, Value, json};

use super::{Star, asked_like, call_metadata, status_after};
use crate::conversation::{self, Begin};
use crate::http::Refusal;
use perihelion_runtime::{AboutGraph, Served};
use perihelion_service::Asked;
use perihelion_toolbox::{answer, failure};

/// The argument with a thread, and the one with the answer to its question.
const THREAD: &str = "thread_id";
const ANSWER: &str = "answer";

/// Makes the tool of a graph; `whole` is that of the supervisor graph, whose arguments a graph with messages takes.
pub(super) fn tool(whole: Option<&Tool>, about: &AboutGraph) -> Tool {
    let description = about.description.clone();
    let description = description.unwrap_or_else(|| format!("Runs the graph {}", about.name));
    let name = about.name.clone();
    if let Some(whole) = whole.filter(|_| about.messages.is_some()) {
        return asked_like(whole, name, None, description);
    }
    let mut schema = about.input_schema.as_object().cloned().unwrap_or_default();
    schema.entry("type").or_insert(json!("object"));
    // A call that answers a question has no input.
    schema.remove("required");
    let properties = schema.entry("properties").or_insert(json!({}));
    if let Some(properties) = properties.as_object_mut() {
        let thread = "The thread to continue with, from an earlier result; a new one by default";
        let thread = json!({ "type": "string", "description": thread });
        properties.insert(argument(about, THREAD), thread);
        let answer = "The answer to what the thread asked, in place of an input";
        properties.insert(argument(about, ANSWER), json!({ "description": answer }));
    }
    Tool::new(name, description, schema)
}

/// Returns the name of an argument beside the input; it has an underscore before it if the input has such a field.
fn argument(about: &AboutGraph, name: &str) -> String {
    let mut name = name.to_owned();
    while about.input_schema["properties"].get(&name).is_some() {
        name.insert(0, '_');
    }
    name
}

/// Runs a graph on its input, or answers what its thread asks.
pub(super) async fn call(
    star: &Star,
    graph: &dyn Served,
    request: CallToolRequestParams,
    context: RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let arguments = request.arguments.unwrap_or_default();
    Ok(match ran(star, graph, arguments, context).await {
        Ok((result, text)) => answer(&result, text).into(),
        Err(Refusal(_, why)) => failure(&why).into(),
    })
}

async fn ran(
    star: &Star,
    graph: &dyn Served,
    mut arguments: Map<String, Value>,
    context: RequestContext<RoleServer>,
) -> Result<(Value, String), Refusal> {
    let service = &star.service;
    let about = graph.about();
    let thread_argument = argument(about, THREAD);
    let named = arguments.remove(&thread_argument);
    let asked = match arguments.remove(&argument(about, ANSWER)) {
        Some(answer) => Asked::Resume(answer),
        None => {
            let input = Value::Object(arguments);
            graph.check_input(&input)?;
            Asked::Input { graph: about.name.clone(), input }
        }
    };
    let on = match named {
        Some(id) => {
            let id = id.as_str().and_then(|id| id.parse().ok());
            let why = || Refusal::invalid(format!("{thread_argument} must be a UUID"));
            (id.ok_or_else(why)?, false)
        }
        None => service.thread_for_turn(None, &json!({ "graph_id": about.name })).await?,
    };
    let begin = Begin::on(on, call_metadata(service, &context));
    let (thread, is_new) = on;
    let view = service.thread(thread).await?;
    let accepted = conversation::accept(service, &view, &about.name, begin, asked).await;
    let run = service.unless_refused(is_new.then_some(thread), accepted).await?;
    let outcome = star.followed(&run, context).await?;
    let status = status_after(outcome.ending)?;
    let state = service.state_after(&run).await?.0.map(|state| state.json());
    let text = match status {
        "done" => state.as_ref().map(Value::to_string).unwrap_or_default(),
        _ => format!("{}\n\n({thread_argument}: {thread})", outcome.text),
    };
    Ok((json!({ "thread_id": thread, "status": status, "values": state }), text))
}

#[cfg(test)]
mod tests {
    use perihelion_runtime::Screens;

    use super::*;

    fn about(fields: Value) -> AboutGraph {
        AboutGraph {
            name: "survey".to_owned(),
            description: None,
            input_schema: json!({ "properties": fields }),
            state_schema: Value::Null,
            output_schema: Value::Null,
            config_schema: Value::Null,
            context_schema: Value::Null,
            messages: None,
            is_hosted: false,
            screens: Screens::Nothing,
        }
    }

    #[test]
    fn a_field_of_the_input_keeps_its_name_beside_the_thread_and_the_answer() {
        let names = |fields: Value| {
            let tool = tool(None, &about(fields));
            let properties = tool.input_schema["properties"].as_object().unwrap().clone();
            properties.into_iter().map(|(name, about)| format!("{name}: {about}")).collect()
        };
        let starts = |all: &[String], name: &str| all.iter().any(|one| one.starts_with(name));
        let plain: Vec<String> = names(json!({ "item": true }));
        assert!(starts(&plain, "answer: {") && starts(&plain, "thread_id: {"), "{plain:?}");
        let taken: Vec<String> =
            names(json!({ "answer": true, "_answer": true, "thread_id": true }));
        for name in
            ["answer: true", "_answer: true", "__answer: {", "thread_id: true", "_thread_id: {"]
        {
            assert!(starts(&taken, name), "{name}: {taken:?}");
        }
    }
}
