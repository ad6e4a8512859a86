//! Runs the child of a `langgraph.json`, and describes its graphs.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use perihelion_database::address::{self, Address};
use perihelion_engine::checkpoint::{Error as StoreError, Store};
use perihelion_engine::clock;
use perihelion_engine::graph::{GraphBuilder, node_with};
use perihelion_runtime::{AboutGraph, Graphs, OwnGraph, Screens};
use perihelion_settings::config::Settings;
use serde::Deserialize as _;
use serde_json::{Map, Value, json};
use tokio_util::task::AbortOnDropHandle;

use crate::child::{Call, Child};
use crate::config::{Config, GraphSpec};
use crate::frames::{Description, Frame};
use crate::node::{self, HostedNode, NODE, PAUSED};
use crate::served::HostedGraph;
use crate::state::Mirror;
use crate::{Error, reload};

/// The time limit for loading graphs.
const LOADS: Duration = Duration::from_secs(120);

/// The pause before a child is restarted.
const PAUSE: Duration = Duration::from_millis(500);

/// How long calls fail at once after a child could not load the graphs.
const FAILS: Duration = Duration::from_secs(5);

/// The graphs of a `langgraph.json` and their child, which ends when this is dropped.
pub struct Hosted {
    pub graphs: Graphs,
    /// The interpreter of the child.
    pub python: PathBuf,
    _watcher: AbortOnDropHandle<()>,
}

/// The host of one `langgraph.json`.
pub(crate) struct Host {
    path: PathBuf,
    order: Map<String, Value>,
    /// The environment variables that the child does not receive.
    secret: Vec<String>,
    /// The store of the threads, once the graphs are opened.
    store: OnceLock<Arc<dyn Store>>,
    /// The child with its graphs and files; the next call replaces an ended child.
    child: tokio::sync::Mutex<Loaded>,
    about: Mutex<HashMap<String, Graph>>,
}

/// The description and the drawing of a graph.
#[derive(Clone)]
pub(crate) struct Graph {
    pub about: &'static Arc<AboutGraph>,
    pub drawing: Value,
}

/// A child with its graphs loaded.
pub(crate) struct Loaded {
    pub child: Arc<Child>,
    pub graphs: HashMap<String, Description>,
    pub files: Vec<String>,
    /// Why the child that was to replace this one could not load the graphs, and when.
    failed: Option<(Instant, Arc<Error>)>,
}

/// Reads a `langgraph.json`, starts its child and returns its graphs.
///
/// # Errors
/// [`Error`] if the file has unsupported fields, or the child cannot load a graph.
pub async fn open(path: &Path, settings: &Settings) -> Result<Hosted, Error> {
    let config = Config::read(path)?;
    let database = for_child(settings.store.database.expose())?;
    let mut keys = Vec::new();
    for (_, key) in settings.encryption.exposed() {
        keys.push(key?.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    }
    let order = Map::from_iter([
        ("database".to_owned(), json!(database)),
        ("keys".to_owned(), json!(keys)),
    ]);
    let secret: Vec<String> =
        settings.encryption.keys.iter().filter_map(|key| key.variable.clone()).collect();
    let loaded = load(&config, &order, &secret).await.map_err(|error| match error {
        Error::Gone => Error::Load(config.python()),
        other => other,
    })?;
    let host = Arc::new(Host {
        path: config.path.clone(),
        order,
        secret,
        store: OnceLock::new(),
        about: Mutex::new(described(&config, &loaded)),
        child: tokio::sync::Mutex::new(loaded),
    });
    let mut graphs = Graphs::new();
    for (name, GraphSpec { description, .. }) in &config.graphs {
        let own = engine_graph(&host, name, description.as_deref());
        let own = own.screening(screens(&config));
        let host = Arc::clone(&host);
        let name = name.clone();
        graphs = graphs.with_wrapped(own, move |inner, parts| {
            let store = Arc::clone(&parts.store);
            // A program opens its graphs once; opening them again would provide the same store.
            let _ = host.store.set(Arc::clone(&store));
            Arc::new(HostedGraph { inner, host: Arc::clone(&host), name: name.clone(), store })
        });
    }
    let watcher = AbortOnDropHandle::new(tokio::spawn(reload::watch(host)));
    Ok(Hosted { graphs, python: config.python(), _watcher: watcher })
}

/// Returns whether a `langgraph.json` has an auth handler, so that its server needs no other authentication.
///
/// # Errors
/// As [`open`], without a child.
pub fn authenticates(path: &Path) -> Result<bool, Error> {
    Ok(!Config::read(path)?.auth.is_null())
}

/// Makes the engine graph of a hosted graph.
fn engine_graph(host: &Arc<Host>, name: &str, description: Option<&str>) -> OwnGraph<Mirror> {
    let host = Arc::clone(host);
    let graph = name.to_owned();
    let own = OwnGraph::<Mirror>::built(name, move |parts| {
        let store = Arc::clone(&parts.store);
        let hosted = Arc::new(HostedNode { host: Arc::clone(&host), store, graph: graph.clone() });
        let advance = || node_with(Arc::clone(&hosted), node::advance);
        GraphBuilder::new(&graph)
            .node(NODE, advance())
            .node(PAUSED, advance())
            .route(NODE, node::following)
            .route(PAUSED, node::following)
            .entry(NODE)
            .build()
    });
    match description {
        Some(text) => own.hosted().description(text),
        None => own.hosted(),
    }
}

/// Starts a child, which loads the graphs.
async fn load(
    config: &Config,
    order: &Map<String, Value>,
    secret: &[String],
) -> Result<Loaded, Error> {
    let child = Child::start(&config.python(), &config.root, secret)?;
    let graphs = config.graphs.iter().map(|(name, spec)| (name.clone(), json!(spec.path)));
    let mut order = Value::Object(order.clone());
    order["root"] = json!(config.root);
    order["graphs"] = Value::Object(graphs.collect());
    order["dependencies"] = json!(config.dependencies);
    order["env"] = json!(config.env);
    order["store"] = config.store.clone();
    order["auth"] = config.auth.clone();
    order["http"] = config.http.clone();
    order["checkpointer"] = config.checkpointer.clone();
    order["python_version"] = json!(config.python_version);
    let mut call = child.call("load", order);
    let frame = tokio::time::timeout(LOADS, call.next()).await;
    match frame.unwrap_or_else(|_| Err(Error::Load(config.python())))? {
        Frame::Loaded { graphs, mut files } => {
            files.push(config.path.to_string_lossy().into_owned());
            let graphs = graphs.into_iter().collect();
            Ok(Loaded { child, graphs, files, failed: None })
        }
        _ => Err(Error::OutOfTurn("another frame than its graphs")),
    }
}

/// Returns what the process of the graphs decides about requests.
fn screens(config: &Config) -> Screens {
    if !config.auth.is_null() {
        Screens::Users
    } else if !config.http.is_null() {
        Screens::Requests
    } else {
        Screens::Nothing
    }
}

/// Describes the graphs.
fn described(config: &Config, loaded: &Loaded) -> HashMap<String, Graph> {
    let any = |schema: &Value| {
        if schema.is_object() { schema.clone() } else { json!({ "type": "object" }) }
    };
    let graph = |(name, spec): (&String, &GraphSpec)| {
        let found = loaded.graphs.get(name).cloned().unwrap_or_default();
        let about = AboutGraph {
            name: name.clone(),
            description: spec.description.clone(),
            input_schema: any(&found.input_schema),
            state_schema: any(&found.state_schema),
            output_schema: any(&found.output_schema),
            config_schema: any(&found.config_schema),
            context_schema: any(&found.context_schema),
            messages: None,
            is_hosted: true,
            screens: screens(config),
        };
        // Callers borrow it without a limit in time; each change of a file leaks a few kilobytes.
        let about: &'static Arc<AboutGraph> = Box::leak(Box::new(Arc::new(about)));
        (name.clone(), Graph { about, drawing: found.drawing })
    };
    config.graphs.iter().map(graph).collect()
}

/// Returns the address of a database for the child, which runs in another directory.
fn for_child(database: &str) -> Result<String, Error> {
    match address::read(database)? {
        Address::Memory => Err(Error::InMemory),
        Address::Server => Ok(database.to_owned()),
        Address::File(path) => {
            Ok(std::path::absolute(&path).unwrap_or(path).to_string_lossy().into_owned())
        }
    }
}

impl Host {
    /// Begins a call; starts another child first if the child has ended.
    pub async fn call(self: &Arc<Self>, op: &str, order: Value) -> Result<Call, Error> {
        let host = Arc::clone(self);
        // If this caller leaves, the others still wait for the child that it starts.
        let running = tokio::spawn(async move { host.running().await });
        Ok(running.await.unwrap_or(Err(Error::Gone))?.call(op, order))
    }

    /// Returns the child; starts another one first if it has ended.
    async fn running(&self) -> Result<Arc<Child>, Error> {
        let mut loaded = self.child.lock().await;
        if loaded.child.is_gone() {
            if let Some((at, error)) = &loaded.failed
                && at.elapsed() < FAILS
            {
                return Err(Error::Reload(Arc::clone(error)));
            }
            clock::sleep(PAUSE).await;
            match self.load().await {
                Ok(new) => *loaded = new,
                // Killed: the next call may succeed.
                Err(Error::Gone) => return Err(Error::Gone),
                Err(error) => {
                    let error = Arc::new(error);
                    loaded.failed = Some((clock::monotonic(), Arc::clone(&error)));
                    return Err(Error::Reload(error));
                }
            }
        }
        Ok(Arc::clone(&loaded.child))
    }

    /// Starts another child.
    pub async fn load(&self) -> Result<Loaded, Error> {
        load(&Config::read(&self.path)?, &self.order, &self.secret).await
    }

    /// Replaces the child; running calls continue in the previous child.
    pub async fn replace(&self, loaded: Loaded) {
        if let Ok(config) = Config::read(&self.path) {
            let graphs = described(&config, &loaded);
            self.about.lock().extend(graphs);
        }
        *self.child.lock().await = loaded;
    }

    /// Deletes the child's checkpoints of deleted threads, of one page; returns the start of the next page.
    pub async fn sweep(self: &Arc<Self>, after: &str) -> Result<String, Error> {
        let Some(store) = self.store.get() else { return Ok(String::new()) };
        let Frame::Answer { answer } =
            self.call("threads", json!({ "after": after })).await?.next().await?
        else {
            return Err(Error::OutOfTurn("another frame than threads"));
        };
        let threads = Vec::<String>::deserialize(answer)?;
        for thread in threads.iter().filter_map(|thread| thread.parse().ok()) {
            if let Err(StoreError::UnknownThread(_)) = store.info(thread).await {
                self.call("delete", json!({ "thread": thread })).await?.next().await?;
            }
        }
        Ok(threads.last().cloned().unwrap_or_default())
    }

    /// Returns the source files of the graphs.
    pub async fn files(&self) -> Vec<String> {
        self.child.lock().await.files.clone()
    }

    /// Returns the description and the drawing of a graph.
    pub fn graph(&self, name: &str) -> Option<Graph> {
        self.about.lock().get(name).cloned()
    }
}
