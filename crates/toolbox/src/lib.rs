//! A server with tools only, like every bundled one and the service's own.
//!
//! Enter at [`Serving`]. Invariant: a feature that is not offered is an unknown method. The library would answer lists
//! of prompts and resources with empty ones, as if they were supported.

use std::sync::Arc;

use async_trait::async_trait;
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::tool::ToolCallContext;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestMethod,
    CompleteRequestParams, CompleteResult, ContentBlock, Implementation, ListPromptsRequestMethod,
    ListPromptsResult, ListResourceTemplatesRequestMethod, ListResourceTemplatesResult,
    ListResourcesRequestMethod, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde::Serialize;

/// The names of the MCP library that every file of tools uses.
pub mod prelude {
    pub use rmcp::handler::server::tool::schema_for_output;
    pub use rmcp::handler::server::wrapper::Parameters;
    pub use rmcp::model::{CallToolResult, RequestMetaObject};
    pub use rmcp::{tool, tool_router};
}

/// For how long a list of tools is fresh: they change with the program alone, so a day is as good as any.
const TOOLS_TTL_MS: u64 = 86_400_000;

#[async_trait]
pub trait Toolbox: Send + Sync + 'static {
    fn about(&self) -> ServerConfig;

    /// Lists the tools, with how long the list is fresh.
    async fn list(&self) -> Result<ListToolsResult, ErrorData>;

    fn find(&self, name: &str) -> Option<Tool>;

    async fn call(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData>;
}

/// A bundled server, whose tools never change while it runs.
struct Fixed<S> {
    server: S,
    router: ToolRouter<S>,
    about: ServerConfig,
}

#[async_trait]
impl<S: Send + Sync + 'static> Toolbox for Fixed<S> {
    fn about(&self) -> ServerConfig {
        self.about.clone()
    }

    async fn list(&self) -> Result<ListToolsResult, ErrorData> {
        let tools = self.router.list_all();
        Ok(ListToolsResult::with_all_items(tools).with_ttl_ms(TOOLS_TTL_MS))
    }

    fn find(&self, name: &str) -> Option<Tool> {
        self.router.get(name).cloned()
    }

    async fn call(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.router.call(ToolCallContext::new(&self.server, request, context)).await
    }
}

/// Serves a toolbox. Behind a pointer, so that the library's session is compiled once, not once per server.
#[derive(Clone)]
pub struct Serving(Arc<dyn Toolbox>);

impl Serving {
    pub fn new(tools: impl Toolbox) -> Self {
        Self(Arc::new(tools))
    }

    pub fn fixed<S: Send + Sync + 'static>(
        server: S,
        router: ToolRouter<S>,
        about: ServerConfig,
    ) -> Self {
        Self::new(Fixed { server, router, about })
    }
}

/// Refuses methods of features that no bundled server has.
macro_rules! not_offered {
    ($($name:ident: $params:ty, $answer:ty, $method:ty;)+) => {$(
        async fn $name(&self, _: $params, _: RequestContext<RoleServer>) -> Result<$answer, ErrorData> {
            Err(ErrorData::method_not_found::<$method>())
        }
    )+};
}

impl ServerHandler for Serving {
    fn get_info(&self) -> ServerConfig {
        self.0.about()
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.0.list().await
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.0.find(name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.0.call(request, context).await
    }

    not_offered! {
        list_prompts: Option<PaginatedRequestParams>, ListPromptsResult, ListPromptsRequestMethod;
        list_resources: Option<PaginatedRequestParams>, ListResourcesResult, ListResourcesRequestMethod;
        list_resource_templates: Option<PaginatedRequestParams>, ListResourceTemplatesResult,
            ListResourceTemplatesRequestMethod;
        complete: CompleteRequestParams, CompleteResult, CompleteRequestMethod;
    }
}

/// Answers with structured data and the text that says the same to a model.
pub fn answer<T: Serialize>(data: &T, text: String) -> CallToolResult {
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    // Our own types always fit into JSON; without data the text still answers.
    result.structured_content = serde_json::to_value(data).ok();
    result
}

pub fn respond<T: Serialize>(
    done: Result<T, impl std::fmt::Display>,
    text: impl FnOnce(&T) -> String,
) -> CallToolResult {
    match done {
        Ok(data) => answer(&data, text(&data)),
        Err(error) => failure(&error),
    }
}

/// Writes lines, or a note for an empty list.
pub fn lines(lines: impl Iterator<Item = String>, between: &str, none: &str) -> String {
    let lines: Vec<String> = lines.collect();
    if lines.is_empty() { none.to_owned() } else { lines.join(between) }
}

pub fn failure(error: &impl std::fmt::Display) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(error.to_string())])
}

/// Describes a bundled server: its tools never change while it runs.
pub fn config(name: &str, title: &str, instructions: String) -> ServerConfig {
    let mut about = Implementation::new(format!("perihelion-{name}"), env!("CARGO_PKG_VERSION"));
    about.title = Some(title.to_owned());
    ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
        .with_server_info(about)
        .with_instructions(instructions)
}
