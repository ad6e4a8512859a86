//! The three tools: list, read, search.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Error, Excerpt, Listing, Options, Search, Tree};
use perihelion_toolbox::prelude::*;
use perihelion_toolbox::{Serving, config, respond};

/// Lines returned by `read` unless the call says otherwise.
const DEFAULT_LINES: usize = 200;
/// Default for the number of hits of `search`, and its maximum.
const DEFAULT_HITS: usize = 50;
const MAX_HITS: usize = 500;

pub struct Server {
    tree: Arc<Tree>,
}

impl Server {
    pub fn open(options: &Options) -> Result<Serving, Error> {
        let server = Self { tree: Arc::new(Tree::open(options)?) };
        let text = "Text documents of one folder, read-only. Search for lines, read around them, cite them as \
                    path:line, and quote them exactly.";
        let about = config("files", "Text documents", text.to_owned());
        Ok(Serving::fixed(server, Self::tool_router(), about))
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
    /// Directory
    path: Option<String>,
    recursive: Option<bool>,
}

/// What to read.
#[derive(Deserialize, JsonSchema)]
struct Read {
    path: String,
    /// From 1
    start_line: Option<u32>,
    /// 200 by default
    max_lines: Option<u32>,
}

/// What to look for.
#[derive(Deserialize, JsonSchema)]
struct Find {
    /// One or two words
    query: String,
    regex: Option<bool>,
    /// File or directory
    path: Option<String>,
    /// 50 by default
    max_results: Option<u32>,
}

#[tool_router]
impl Server {
    #[tool(
        description = "Lists files and directories with their sizes.",
        output_schema = schema_for_output::<Listing>(),
        annotations(title = "List files", read_only_hint = true, idempotent_hint = true, open_world_hint = false)
    )]
    async fn list(&self, Parameters(input): Parameters<List>) -> CallToolResult {
        let path = input.path.unwrap_or_default();
        let recursive = input.recursive.unwrap_or(false);
        respond(self.with_tree(move |tree| tree.list(&path, recursive)).await, listing_text)
    }

    #[tool(
        description = "Reads numbered lines of a text file. Search in long files first.",
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
        description = "Finds lines that contain a text, in any case, as path:line: text.",
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
    if end_line < total_lines {
        text.push_str(&format!("(truncated: continue with start_line = {})", end_line + 1));
    } else if excerpt.truncated {
        text.push_str(
            "(truncated: a line is longer than can be shown; search finds words in the rest of it)",
        );
    }
    text
}

fn search_text(found: &Search, query: &str) -> String {
    let lines = found.hits.iter().map(|hit| format!("{}:{}: {}", hit.path, hit.line, hit.text));
    let mut text = lines.collect::<Vec<_>>().join("\n");
    if found.hits.is_empty() {
        text = format!(
            "No line contains: {query} (files searched: {})\nTry one distinctive word, or a regular expression.",
            found.files_searched
        );
    }
    if found.truncated {
        text.push_str(
            "\n(truncated: there are more hits, files or long lines; narrow the query or the path, or search for plain text)",
        );
    }
    if found.files_skipped > 0 {
        text.push_str(&format!(
            "\n(files not searched, because they are not text, are too large or cannot be read: {})",
            found.files_skipped
        ));
    }
    text
}
