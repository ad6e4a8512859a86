//! The Python demo: a ReAct agent of LangGraph with two tools, in a process that is killed during each of them.
//!
//! The graph, and the client that asks it and kills it, are in the Python package (`perihelion.demo`).

use std::path::{Path, PathBuf};

use serde_json::json;

use super::Error;
use perihelion_llm::scripted::{Reply, Rule, Script, ScriptedModel, ScriptedServer};

/// The files and the model of the demo, which answers while this is there.
pub struct PythonDemo {
    pub langgraph_json: PathBuf,
    /// Receives a file for each tool during which the process was killed.
    pub kills: PathBuf,
    _model: ScriptedServer,
}

/// Starts the scripted model, and writes the `langgraph.json` of the demo.
///
/// # Errors
/// [`Error::Data`] if it cannot be written.
pub async fn python(home: &Path, name: &str) -> Result<PythonDemo, Error> {
    let kills = home.join("python").join(name);
    let failed = |source| Error::Data { path: kills.clone(), source };
    std::fs::create_dir_all(&kills).map_err(failed)?;
    let model = ScriptedModel::start(script()).await.map_err(perihelion_runtime::Error::from)?;
    let langgraph_json = kills.join("langgraph.json");
    let settings = json!({
        "graphs": { "refunds": { "path": "perihelion.demo:graph", "description": "Refunds orders" } },
        "env": { "OPENAI_BASE_URL": model.url(), "DEMO_BOOK": kills.join("book") },
    });
    std::fs::write(&langgraph_json, settings.to_string()).map_err(failed)?;
    Ok(PythonDemo { langgraph_json, kills, _model: model })
}

fn script() -> Script {
    let order = json!({ "order": "1042" });
    let refund = json!({ "order": "1042", "cents": 1999 });
    let answer = "Your order 1042, a teapot, is refunded: 19.99 are on their way to your card.";
    Script::new()
        .rule(Rule::new(Reply::call("find_order", order)).after_tool_results(0))
        .rule(Rule::new(Reply::call("refund", refund)).after_tool_results(1))
        .rule(Rule::new(Reply::text(answer)))
}
