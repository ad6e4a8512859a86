//! The five tools: add, list, search, read, delete.

use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::Arc;

use perihelion_database::Database;
use perihelion_documents::{
    COLLECTION, EmbeddingModel, Library, Limits, Query, Read, Scope, Source,
};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use super::answers::{
    AddDocument, AddedDocument, DeleteDocument, DeletedDocument, Documents, Hit, Hits, Listed,
    ReadDocument, SearchDocuments,
};
use super::{Error, Options, Result, TENANT_META};
use crate::Cause;
use crate::root::Root;
use perihelion_engine::checkpoint::{self, Archive, Keyring};
use perihelion_ingest::{DocumentThreads, NewDocument, TENANT, embeddings, library_of, summarizer};
use perihelion_settings::config::{Overrides, Settings};
use perihelion_toolbox::prelude::*;
use perihelion_toolbox::{Serving, config, lines, respond};

/// Default for the number of hits, and its maximum.
const DEFAULT_HITS: usize = 8;
const MAX_HITS: usize = 1_000;

/// Characters of one reading unless the call says otherwise, and the most of any.
const DEFAULT_READ: usize = 12_000;
const MAX_READ: usize = 200_000;

/// The note for a document without a description.
const NO_MODEL: &str = "this server has no model for descriptions; set models.url, or OPENAI_BASE_URL in its environment";
const NO_ANSWER: &str = "the model did not describe the document; see the log of this server";

pub struct Server {
    library: Library,
    embeddings: Option<Arc<dyn EmbeddingModel>>,
    settings: Settings,
    /// Whether documents are added without descriptions.
    undescribed: bool,
    /// Opened for an addition or a deletion: searches need neither threads nor their keys.
    threads: OnceCell<DocumentThreads>,
    /// Whether calls can name their tenant: only if the caller started this process.
    believes_callers: bool,
    collection: Option<String>,
    root: Option<Arc<Root>>,
    read_only: bool,
}

impl Server {
    /// Opens the database and the directory, and makes the tools; with `believes_callers`, each call can name its tenant.
    pub async fn open(options: &Options, believes_callers: bool) -> Result<Serving> {
        let open = |path: &PathBuf| {
            let opened = Root::open(path).map(Arc::new);
            opened.map_err(|source| Error::Root { path: path.clone(), source })
        };
        let env = |name: &str| std::env::var(name).ok();
        let overrides = Overrides { database: options.database.clone(), ..Overrides::default() };
        let file = Settings::file(None, &env);
        let settings = Settings::load(overrides, file.as_deref(), &env)?;
        let database = Database::open(settings.store.database.expose()).await?;
        let scope = Scope::new(TENANT, &options.owner)?;
        let embeddings = if options.words_only { Ok(None) } else { embeddings(&settings) };
        let embeddings = embeddings.map_err(Error::Client)?;
        let server = Self {
            library: library_of(&settings, database, scope).map_err(Error::Client)?,
            embeddings: embeddings.map(|endpoint| Arc::new(endpoint) as Arc<dyn EmbeddingModel>),
            settings,
            undescribed: options.undescribed,
            threads: OnceCell::new(),
            believes_callers,
            collection: options.collection.clone(),
            root: options.root.as_ref().map(open).transpose()?,
            read_only: options.read_only,
        };
        let mut tool_router = Self::tool_router();
        if options.read_only {
            for tool in ["add_document", "delete_document"] {
                tool_router.map.remove(tool);
            }
        }
        let text = "Finds what answers a question in the user's documents. Search with search_documents, read on around a hit \
             with read_document, see what there is with list_documents. Answer from what the documents say alone, \
             cite title and page, and say so when they do not say it.";
        let about = config("documents", "Documents", text.to_owned());
        Ok(Serving::fixed(server, tool_router, about))
    }
}

#[tool_router]
impl Server {
    #[tool(
        description = "Adds a document: a file (path), or a text. The same path, or the same title of a text, again replaces the former version; unchanged bytes cost nothing. Where a call is broken off, the same one continues it, and no model is asked twice. A file without text (a scan, a password) is refused with the reason.",
        output_schema = schema_for_output::<AddedDocument>(),
        annotations(title = "Add a document", read_only_hint = false, destructive_hint = false, idempotent_hint = true, open_world_hint = false)
    )]
    async fn add_document(
        &self,
        meta: RequestMetaObject,
        Parameters(input): Parameters<AddDocument>,
    ) -> CallToolResult {
        respond(self.add(&meta, input).await, |added| {
            let done = if added.unchanged { "Unchanged" } else { "Added" };
            let Listed { title, characters, document, .. } = &added.document;
            format!("{done}: {title} ({characters} characters), id {document}")
        })
    }

    #[tool(
        description = "Lists the documents with their ids, titles, formats and what they are about.",
        output_schema = schema_for_output::<Documents>(),
        annotations(title = "List documents", read_only_hint = true, idempotent_hint = true, open_world_hint = true)
    )]
    async fn list_documents(&self, meta: RequestMetaObject) -> CallToolResult {
        let line = |one: &Listed| {
            let summary = one.summary.as_deref().unwrap_or("");
            format!("{} ({}): {} {summary}", one.title, one.format, one.document)
        };
        respond(self.list(&meta).await, |listed| {
            lines(listed.documents.iter().map(line), "\n", "No documents yet.")
        })
    }

    #[tool(
        description = "Finds passages that answer a question, by words and by meaning. Each hit quotes the document with title, page, section and the range of characters; read on around it with read_document. Filters narrow by collection, documents, format, section, author and time of change.",
        output_schema = schema_for_output::<Hits>(),
        annotations(title = "Search documents", read_only_hint = true, idempotent_hint = true, open_world_hint = true)
    )]
    async fn search_documents(
        &self,
        meta: RequestMetaObject,
        Parameters(input): Parameters<SearchDocuments>,
    ) -> CallToolResult {
        respond(self.search(&meta, input).await, |hits| {
            let failed = hits.by_words_only.as_ref();
            let failed = failed.map(|why| format!("Searched by words alone: {why}"));
            let nothing = hits.hits.is_empty().then(|| "Nothing was found.".to_owned());
            let shown = hits.hits.iter().zip(1..).map(|(Hit { source, .. }, number)| {
                let Source { title, document, start, end, quote, .. } = source;
                let page = source.page.map(|page| format!(", page {page}")).unwrap_or_default();
                let section = source.section.as_ref().map(|title| format!(", {title}"));
                let section = section.unwrap_or_default();
                let how = source.recognized.map(|percent| format!(", recognized ({percent} %)"));
                let how = how.unwrap_or_default();
                format!("[{number}] {title}{page}{section}{how} (document {document}, {start}..{end})\n{quote}")
            });
            lines(failed.into_iter().chain(nothing).chain(shown), "\n\n", "")
        })
    }

    #[tool(
        description = "Reads the text of a document between two places, counted in characters; about 12,000 characters if no end is given. Use it to read on around a hit.",
        output_schema = schema_for_output::<perihelion_documents::Read>(),
        annotations(title = "Read a document", read_only_hint = true, idempotent_hint = true, open_world_hint = true)
    )]
    async fn read_document(
        &self,
        meta: RequestMetaObject,
        Parameters(input): Parameters<ReadDocument>,
    ) -> CallToolResult {
        let start = input.start.unwrap_or(0);
        let end = input.end.unwrap_or(start.saturating_add(DEFAULT_READ));
        let end = end.min(start.saturating_add(MAX_READ));
        respond(self.read(&meta, &input.document, start, end).await, |read| {
            let Read { title, start, end, length, text, .. } = read;
            format!("{title} ({start}..{end} of {length})\n{text}")
        })
    }

    #[tool(
        description = "Deletes a document for good: its text, what it is found by, and its vectors.",
        output_schema = schema_for_output::<DeletedDocument>(),
        annotations(title = "Delete a document", read_only_hint = false, destructive_hint = true, idempotent_hint = true, open_world_hint = false)
    )]
    async fn delete_document(
        &self,
        meta: RequestMetaObject,
        Parameters(input): Parameters<DeleteDocument>,
    ) -> CallToolResult {
        respond(self.delete(&meta, &input.document).await, |gone| {
            format!("Deleted: {}", gone.title)
        })
    }
}

impl Server {
    fn model(&self) -> Option<&dyn EmbeddingModel> {
        self.embeddings.as_deref()
    }

    async fn threads(&self, meta: &RequestMetaObject) -> Result<DocumentThreads> {
        let open = async || {
            let settings = &self.settings;
            let model = if self.undescribed { None } else { summarizer(&settings.models)? };
            let keys = Keyring::of_found(settings.encryption.exposed())?;
            let url = settings.store.database.expose();
            let archive = settings.archive.dir.clone().map(Archive::new);
            Ok::<_, Cause>(DocumentThreads {
                library: self.library.clone(),
                store: checkpoint::open_with(url, keys, archive).await?,
                model,
                embeddings: self.embeddings.clone(),
                stop: CancellationToken::new(),
            })
        };
        let threads = self.threads.get_or_try_init(open).await?.clone();
        Ok(DocumentThreads { library: self.library(meta)?, ..threads })
    }

    fn library(&self, meta: &RequestMetaObject) -> Result<Library> {
        let tenant = meta.get(TENANT_META).and_then(|tenant| tenant.as_str());
        let Some(tenant) = tenant.filter(|_| self.believes_callers) else {
            return Ok(self.library.clone());
        };
        Ok(self.library.within(&Scope::new(tenant, self.library.scope().owner())?))
    }

    async fn list(&self, meta: &RequestMetaObject) -> Result<Documents> {
        let listed = self.library(meta)?.list(self.collection.as_deref()).await?;
        Ok(Documents { documents: listed.into_iter().map(Listed::from).collect() })
    }

    async fn read(
        &self,
        meta: &RequestMetaObject,
        document: &str,
        start: usize,
        end: usize,
    ) -> Result<Read> {
        Ok(self.library(meta)?.read(document, Some(start), Some(end)).await?)
    }

    async fn delete(&self, meta: &RequestMetaObject, document: &str) -> Result<DeletedDocument> {
        if self.read_only {
            return Err(Error::ReadOnly.into());
        }
        let gone = self.threads(meta).await?.delete(document).await?;
        let title = gone.title().to_owned();
        Ok(DeletedDocument { document: gone.id, title, deleted: true })
    }

    async fn add(&self, meta: &RequestMetaObject, asked: AddDocument) -> Result<AddedDocument> {
        if self.read_only {
            return Err(Error::ReadOnly.into());
        }
        let (path, bytes) = match (asked.path, asked.text) {
            (Some(path), None) => {
                let root = self.root.clone();
                let name = path.clone();
                let most = Limits::default().input_bytes;
                let reading =
                    tokio::task::spawn_blocking(move || file(root.as_deref(), &name, most));
                let read = reading.await.map_err(std::io::Error::from).flatten();
                let bytes = read.map_err(|source| Error::File { path: path.clone(), source })?;
                (path, bytes)
            }
            (None, Some(text)) => {
                // A text without a title is named by its content, so that two of them are two.
                let name = match &asked.title {
                    Some(title) => format!("text:{title}.md"),
                    None => format!("text:{}.md", &blake3::hash(text.as_bytes()).to_hex()[..16]),
                };
                (name, text.into_bytes())
            }
            _ => return Err(Error::PathOrText.into()),
        };
        let place = NewDocument {
            shown: path.clone(),
            name: path,
            collection: self.collection.clone().unwrap_or_else(|| COLLECTION.to_owned()),
            title: asked.title,
        };
        let threads = self.threads(meta).await?;
        let added = threads.add_sent(place, bytes).await?;
        let why = if threads.model.is_some() { NO_ANSWER } else { NO_MODEL };
        let not_described = added.document.description.is_none().then(|| why.to_owned());
        Ok(AddedDocument {
            not_described,
            document: added.document.into(),
            unchanged: added.unchanged,
            by_words_only: added.by_words_only,
        })
    }

    async fn search(&self, meta: &RequestMetaObject, asked: SearchDocuments) -> Result<Hits> {
        let mut query = Query::new(asked.query);
        query.filters = asked.filters.unwrap_or_default();
        if query.filters.collection.is_none() {
            query.filters.collection.clone_from(&self.collection);
        }
        query.limit = asked.limit.unwrap_or(DEFAULT_HITS).clamp(1, MAX_HITS);
        let library = self.library(meta)?;
        if asked.parents {
            let found = library.retrieve(&query, self.model(), None).await?;
            let hits = found.passages.into_iter().map(Hit::of_passage).collect();
            return Ok(Hits { hits, by_words_only: found.by_words_only });
        }
        let found = library.search(&query, self.model()).await?;
        let hits = found.hits.into_iter().map(|source| Hit { source, parent: None }).collect();
        Ok(Hits { hits, by_words_only: found.by_words_only })
    }
}

/// Reads a regular file of at most that many bytes.
fn file(root: Option<&Root>, path: &str, most: usize) -> std::io::Result<Vec<u8>> {
    let irregular = || std::io::Error::other("it is not a regular file");
    let file = match root {
        Some(root) => root.file(path)?,
        // Opening a pipe would hold the server until it has a writer.
        None if std::fs::metadata(path)?.is_file() => File::open(path)?,
        None => return Err(irregular()),
    };
    if !file.metadata()?.is_file() {
        return Err(irregular());
    }
    let mut bytes = Vec::new();
    file.take(most as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > most {
        return Err(std::io::Error::other(format!("it is larger than {most} bytes")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_up_to_the_limit() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a.txt");
        std::fs::write(&path, "12345").unwrap();
        let path = path.to_str().unwrap();
        assert_eq!(file(None, path, 5).unwrap(), b"12345");
        let refused = file(None, path, 4).unwrap_err().to_string();
        assert_eq!(refused, "it is larger than 4 bytes");
    }
}
