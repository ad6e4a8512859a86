//! The three tools: list, read, search.

use std::sync::Arc;

use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::tool::schema_for_output;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolResult, ServerConfig};
use rmcp::{tool, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Error, Excerpt, Listing, Options, Search, Tree};
use crate::toolbox::{Toolbox, config, respond};

/// Lines returned by `read` unless the call says otherwise.
const DEFAULT_LINES: usize = 200;
/// Hits returned by `search` unless the call says otherwise, and the most it may ask for.
const DEFAULT_HITS: usize = 50;
const MAX_HITS: usize = 500;

/// The server's session handler.
#[derive(Clone)]
pub struct Server {
    tree: Arc<Tree>,
    tool_router: ToolRouter<Self>,
}

impl Server {
    /// Opens the directory and makes the tools.
    ///
    /// # Errors
    /// As [`Tree::open`].
    pub fn open(options: &Options) -> Result<Self, Error> {
        Ok(Self { tree: Arc::new(Tree::open(options)?), tool_router: Self::tool_router() })
    }

    async fn with_tree<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Tree) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let tree = Arc::clone(&self.tree);
        tokio::task::spawn_blocking(move || work(&tree)).await?
    }
}

/// What to list.
#[derive(Deserialize, JsonSchema)]
struct List {
    /// Directory, relative to the served one; the served directory itself if left out.
    #[serde(default)]
    path: Option<String>,
    /// Also list everything below it.
    #[serde(default)]
    recursive: Option<bool>,
}

/// What to read.
#[derive(Deserialize, JsonSchema)]
struct Read {
    /// File, relative to the served directory.
    path: String,
    /// First line to return, from 1.
    #[serde(default)]
    start_line: Option<u32>,
    /// Most lines to return; 200 if left out.
    #[serde(default)]
    max_lines: Option<u32>,
}

/// What to look for.
#[derive(Deserialize, JsonSchema)]
struct Find {
    /// Text that a line must contain, in any case; one or two words find more than a sentence. Or a regular expression.
    query: String,
    /// Read the query as a regular expression (case matters unless it begins with (?i)).
    #[serde(default)]
    regex: Option<bool>,
    /// Look only in this file or below this directory.
    #[serde(default)]
    path: Option<String>,
    /// Most lines to return; 50 if left out.
    #[serde(default)]
    max_results: Option<u32>,
}

#[tool_router]
impl Server {
    #[tool(
        description = "Lists the files and directories of the served folder, sorted by path, with sizes in bytes.",
        output_schema = schema_for_output::<Listing>(),
        annotations(title = "List files", read_only_hint = true, idempotent_hint = true, open_world_hint = false)
    )]
    async fn list(&self, Parameters(input): Parameters<List>) -> CallToolResult {
        let path = input.path.unwrap_or_default();
        let recursive = input.recursive.unwrap_or(false);
        respond(self.with_tree(move |tree| tree.list(&path, recursive)).await, listing_text)
    }

    #[tool(
        description = "Reads lines of a text file, each with its number, so that they can be cited as path:line. For a long file, search first and read around the hit with start_line.",
        output_schema = schema_for_output::<Excerpt>(),
        annotations(title = "Read a file", read_only_hint = true, idempotent_hint = true, open_world_hint = false)
    )]
    async fn read(&self, Parameters(input): Parameters<Read>) -> CallToolResult {
        let start = input.start_line.map_or(1, |line| line as usize);
        let lines = input.max_lines.map_or(DEFAULT_LINES, |lines| lines as usize);
        respond(
            self.with_tree(move |tree| tree.read(&input.path, start, lines)).await,
            excerpt_text,
        )
    }

    #[tool(
        description = "Finds the lines that contain a text (in any case) or match a regular expression, in all text files or below a path. Each hit is given as path:line: text, sorted by path and line.",
        output_schema = schema_for_output::<Search>(),
        annotations(title = "Search files", read_only_hint = true, idempotent_hint = true, open_world_hint = false)
    )]
    async fn search(&self, Parameters(input): Parameters<Find>) -> CallToolResult {
        let most =
            input.max_results.map_or(DEFAULT_HITS, |most| (most as usize).clamp(1, MAX_HITS));
        let path = input.path.unwrap_or_default();
        let regex = input.regex.unwrap_or(false);
        let query = input.query.clone();
        let found = self.with_tree(move |tree| tree.search(&query, regex, &path, most)).await;
        respond(found, |found| search_text(found, &input.query))
    }
}

fn listing_text(listing: &Listing) -> String {
    let lines = listing.entries.iter().map(|entry| match (entry.kind.as_str(), entry.bytes) {
        ("directory", _) => format!("{}/", entry.path),
        (_, Some(bytes)) => format!("{} ({bytes} bytes)", entry.path),
        _ => format!("{} (link)", entry.path),
    });
    let mut text = lines.collect::<Vec<_>>().join("\n");
    if text.is_empty() {
        text.push_str("The directory is empty.");
    }
    if listing.truncated {
        text.push_str("\n(truncated: there is more; list a subdirectory)");
    }
    text
}

fn excerpt_text(excerpt: &Excerpt) -> String {
    let Excerpt { path, start_line, end_line, total_lines, .. } = excerpt;
    let mut text = format!("{path}, lines {start_line}–{end_line} of {total_lines}\n");
    for (number, line) in (*start_line..).zip(excerpt.text.lines()) {
        text.push_str(&format!("{number:>5}  {line}\n"));
    }
    if excerpt.truncated {
        text.push_str(&format!("(truncated: continue with start_line = {})", end_line + 1));
    }
    text
}

fn search_text(found: &Search, query: &str) -> String {
    if found.hits.is_empty() {
        let files = found.files_searched;
        return format!(
            "No line in {files} files contains: {query}\nTry one distinctive word, or a regular expression."
        );
    }
    let lines = found.hits.iter().map(|hit| format!("{}:{}: {}", hit.path, hit.line, hit.text));
    let mut text = lines.collect::<Vec<_>>().join("\n");
    if found.truncated {
        text.push_str("\n(truncated: there are more hits; narrow the query or the path)");
    }
    text
}

impl Toolbox for Server {
    fn router(&self) -> &ToolRouter<Self> {
        &self.tool_router
    }

    fn about(&self) -> ServerConfig {
        let text = "Gives access to the text documents of one folder, read-only. Use search to find the lines that \
                    matter, read to see them in context, list to learn what there is. Cite what you report as \
                    path:line, and quote the words as they stand.";
        config("files", "Text documents", text.to_owned())
    }
}
