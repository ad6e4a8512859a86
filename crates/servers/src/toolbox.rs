//! A server that offers tools and nothing else, as every bundled one does, and the service's own.
//!
//! Enter at [`Serving`]. Invariant: what is not offered is an unknown method. The library would answer the
//! lists of prompts and resources with empty ones, as though they were offered and there were none yet.

use std::pin::Pin;
use std::sync::Arc;

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

/// For how long a list of tools is fresh: they change with the program alone, so a day is as good as any.
const TOOLS_TTL_MS: u64 = 86_400_000;

/// The tools of a server; those of a bundled one never change while it runs.
pub trait Toolbox: Clone + Send + Sync + 'static {
    fn router(&self) -> &ToolRouter<Self>;

    fn about(&self) -> ServerConfig;

    /// Lists the tools, with how long the list is fresh.
    fn list(&self) -> impl Future<Output = Result<ListToolsResult, ErrorData>> + Send {
        let tools = self.router().list_all();
        std::future::ready(Ok(ListToolsResult::with_all_items(tools).with_ttl_ms(TOOLS_TTL_MS)))
    }

    fn find(&self, name: &str) -> Option<Tool> {
        self.router().get(name).cloned()
    }

    fn call(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<CallToolResponse, ErrorData>> + Send {
        self.router().call(ToolCallContext::new(self, request, context))
    }
}

type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, ErrorData>> + Send + 'a>>;

/// [`Toolbox`] behind a pointer: the library's session is compiled once, not once per server.
trait Offered: Send + Sync {
    fn about(&self) -> ServerConfig;
    fn list(&self) -> Answer<'_, ListToolsResult>;
    fn find(&self, name: &str) -> Option<Tool>;
    fn call(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Answer<'_, CallToolResponse>;
}

impl<T: Toolbox> Offered for T {
    fn about(&self) -> ServerConfig {
        Toolbox::about(self)
    }

    fn list(&self) -> Answer<'_, ListToolsResult> {
        Box::pin(Toolbox::list(self))
    }

    fn find(&self, name: &str) -> Option<Tool> {
        Toolbox::find(self, name)
    }

    fn call(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Answer<'_, CallToolResponse> {
        Box::pin(Toolbox::call(self, request, context))
    }
}

/// Serves a toolbox.
#[derive(Clone)]
pub struct Serving(Arc<dyn Offered>);

impl Serving {
    pub fn new(tools: impl Toolbox) -> Self {
        Self(Arc::new(tools))
    }
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

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListPromptsRequestMethod>())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourcesRequestMethod>())
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourceTemplatesRequestMethod>())
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(ErrorData::method_not_found::<CompleteRequestMethod>())
    }
}

/// Answers with structured data and the text that says the same to a model.
pub fn answer<T: Serialize>(data: &T, text: String) -> CallToolResult {
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    // Our own types hold nothing that JSON cannot carry; without data the text still answers.
    result.structured_content = serde_json::to_value(data).ok();
    result
}

/// Answers with what a tool made of its input, or with why it made nothing of it.
pub fn respond<T: Serialize>(
    done: Result<T, impl std::fmt::Display>,
    text: impl FnOnce(&T) -> String,
) -> CallToolResult {
    match done {
        Ok(data) => answer(&data, text(&data)),
        Err(error) => failure(&error),
    }
}

/// Writes lines one after another, or says that there is none.
pub fn lines(lines: impl Iterator<Item = String>, between: &str, none: &str) -> String {
    let lines: Vec<String> = lines.collect();
    if lines.is_empty() { none.to_owned() } else { lines.join(between) }
}

/// Answers with a failure that the model can read and repair.
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
