//! A client of a bundled server, and the checks that every answer goes through.

use rmcp::RoleClient;
use rmcp::model::{CallToolRequestParams, CallToolResult, ProtocolVersion, RequestMetaObject};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, RunningService};
use rmcp::transport::TokioChildProcess;
use serde_json::{Map, Value};

pub struct Client(RunningService<RoleClient, ()>);

/// Starts a bundled server with further environment variables.
pub async fn start(arguments: &[&str], environment: &[(&str, &str)]) -> Client {
    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_perihelion"));
    command.arg("mcp").args(arguments).envs(environment.iter().copied());
    let mode = ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: Some(ProtocolVersion::V_2025_11_25),
    };
    Client(().serve_with_lifecycle(TokioChildProcess::new(command).unwrap(), mode).await.unwrap())
}

impl Client {
    pub async fn call(&self, tool: &str, arguments: Value) -> CallToolResult {
        self.call_with(tool, arguments, Map::new()).await
    }

    pub async fn call_with(
        &self,
        tool: &str,
        arguments: Value,
        meta: Map<String, Value>,
    ) -> CallToolResult {
        let arguments = arguments.as_object().unwrap().clone();
        let mut request = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        if !meta.is_empty() {
            let mut own = RequestMetaObject::default();
            for (name, value) in meta {
                own.insert(name, value);
            }
            request.meta = Some(own);
        }
        self.0.call_tool(request).await.unwrap()
    }

    /// Calls a tool that must succeed and returns its data, checked against the schema it promises.
    pub async fn data(&self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments).await;
        assert_ne!(result.is_error, Some(true), "{}", text(&result));
        self.checked(tool, result).await
    }

    /// Returns a result's data, checked against the schema that its tool promises.
    pub async fn checked(&self, tool: &str, result: CallToolResult) -> Value {
        let data = result.structured_content.unwrap();
        let tools = self.0.list_all_tools().await.unwrap();
        let tool = tools.iter().find(|known| known.name == tool).unwrap();
        let schema = Value::Object(tool.output_schema.as_deref().unwrap().clone());
        assert!(jsonschema::is_valid(&schema, &data), "{data} is not: {schema}");
        data
    }

    /// Calls a tool that must fail and returns what it says.
    pub async fn failure(&self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments).await;
        assert_eq!(result.is_error, Some(true), "{}", text(&result));
        text(&result)
    }

    pub async fn stop(self) {
        self.0.cancel().await.unwrap();
    }
}

pub fn text(result: &CallToolResult) -> String {
    result.content[0].as_text().unwrap().text.clone()
}
