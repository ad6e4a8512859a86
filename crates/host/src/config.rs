//! Reads a `langgraph.json`, and refuses unsupported fields by name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{Error, dotenv};

/// Supported fields; a dot leads into an object. Those about images concern nothing that is served.
const SUPPORTED: [&str; 34] = [
    "$schema",
    "api_version",
    "auth",
    "auth.openapi",
    "auth.path",
    "checkpointer",
    "checkpointer.serde",
    "dependencies",
    "env",
    "graphs",
    "http",
    "http.configurable_headers",
    "http.configurable_headers.exclude",
    "http.configurable_headers.excludes",
    "http.configurable_headers.include",
    "http.configurable_headers.includes",
    "http.disable_a2a",
    "http.disable_assistants",
    "http.disable_mcp",
    "http.disable_meta",
    "http.disable_runs",
    "http.disable_store",
    "http.disable_threads",
    "http.disable_webhooks",
    "keep_pkg_tools",
    "pip_installer",
    "python_version",
    "store",
    "store.index",
    "store.ttl",
    "store.ttl.default_ttl",
    "store.ttl.omit_expired",
    "store.ttl.refresh_on_read",
    "store.ttl.sweep_interval_minutes",
];

/// Unsupported fields with their alternatives.
const UNSUPPORTED: [(&str, &str); 20] = [
    ("node_version", "serve JavaScript graphs with LangGraph's own server"),
    ("dockerfile_lines", "install the requirements of the graphs into their environment"),
    ("base_image", "install the requirements of the graphs into their environment"),
    ("image_distro", "install the requirements of the graphs into their environment"),
    ("pip_config_file", "install the requirements of the graphs into their environment"),
    ("ui", "serve page components with your own server"),
    ("ui_config", "serve page components with your own server"),
    ("encryption", "set [encryption] in perihelion.toml"),
    ("webhooks", "pass the address of the webhook with each run"),
    ("http.app", "serve your own routes with your own server"),
    ("http.disable_ui", "remove it, because page components are not served"),
    ("http.cors", "list the origins in serve.origins of perihelion.toml"),
    ("http.mount_prefix", "add the prefix in a proxy"),
    ("http.middleware_order", "remove it, because there is no middleware"),
    ("http.logging_headers", "set the log filter of perihelion"),
    ("auth.cache", "remove it, because the handler is asked about every request"),
    (
        "auth.disable_studio_auth",
        "remove it; requests with a credential of perihelion need no handler",
    ),
    ("checkpointer.path", "remove it, because checkpoints are in the database of perihelion"),
    ("checkpointer.ttl", "set limits under [retention] in perihelion.toml"),
    ("store.path", "remove it, because the store is in the database of perihelion"),
];

/// The settings of a `langgraph.json`.
#[derive(Clone, Debug)]
pub struct Config {
    pub path: PathBuf,
    pub root: PathBuf,
    pub graphs: BTreeMap<String, GraphSpec>,
    pub dependencies: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub store: Value,
    pub auth: Value,
    pub http: Value,
    pub checkpointer: Value,
    pub python_version: Option<String>,
}

/// The location of a graph.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "Written")]
pub struct GraphSpec {
    pub path: String,
    pub description: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Path(String),
    Described { path: String, description: Option<String> },
}

impl From<Written> for GraphSpec {
    fn from(written: Written) -> Self {
        match written {
            Written::Path(path) => Self { path, description: None },
            Written::Described { path, description } => Self { path, description },
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct File {
    graphs: BTreeMap<String, GraphSpec>,
    dependencies: Vec<String>,
    env: Option<Env>,
    store: Value,
    auth: Value,
    http: Value,
    checkpointer: Value,
    python_version: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Env {
    File(String),
    Variables(BTreeMap<String, String>),
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// [`Error::Read`], [`Error::Parse`], [`Error::Unsupported`], [`Error::NoGraphs`].
    pub fn read(path: &Path) -> Result<Self, Error> {
        let unread = |source| Error::Read { path: path.to_owned(), source };
        let path = path.canonicalize().map_err(unread)?;
        let text = std::fs::read_to_string(&path).map_err(unread)?;
        let unparsed = |source| Error::Parse { path: path.clone(), source };
        let fields: Map<String, Value> = serde_json::from_str(&text).map_err(unparsed)?;
        check(&path, &fields)?;
        let mut file = File::deserialize(Value::Object(fields)).map_err(unparsed)?;
        if file.graphs.is_empty() {
            return Err(Error::NoGraphs(path));
        }
        let root = path.parent().unwrap_or(Path::new("/")).to_owned();
        let env = match file.env.take() {
            None => BTreeMap::new(),
            Some(Env::Variables(variables)) => variables,
            Some(Env::File(name)) => {
                let path = root.join(name);
                let read = std::fs::read_to_string(&path);
                let read = read.map_err(|source| Error::Read { path: path.clone(), source })?;
                dotenv::variables(&read).map_err(|line| Error::Unclosed { path, line })?
            }
        };
        // Packages are already installed; directories are searched for modules.
        let dependencies = std::mem::take(&mut file.dependencies);
        let dependencies = dependencies.into_iter().filter(|one| one.starts_with('.')).collect();
        let File { graphs, store, auth, http, checkpointer, python_version, .. } = file;
        Ok(Self {
            path,
            root,
            graphs,
            dependencies,
            env,
            store,
            auth,
            http,
            checkpointer,
            python_version,
        })
    }

    /// Returns the Python of the `.venv` next to the file, of the active environment, or on the path.
    pub fn python(&self) -> PathBuf {
        let inside = self.root.join(".venv/bin/python");
        let active = || std::env::var_os("VIRTUAL_ENV").map(PathBuf::from);
        let found = inside.exists().then_some(inside);
        found
            .or_else(|| active().map(|home| home.join("bin/python")))
            .unwrap_or_else(|| PathBuf::from("python3"))
    }
}

/// Refuses fields that are unsupported or unknown.
fn check(path: &Path, fields: &Map<String, Value>) -> Result<(), Error> {
    let unsupported = |field: &str, way_out| {
        Err(Error::Unsupported { path: path.to_owned(), field: field.to_owned(), way_out })
    };
    if let Some((field, way_out)) = refused("", fields) {
        return unsupported(&field, way_out);
    }
    let graphs = fields.get("graphs").and_then(Value::as_object).into_iter().flatten();
    for (name, graph) in graphs {
        let place = graph.as_str().or_else(|| graph["path"].as_str()).unwrap_or_default();
        let file = place.rsplit_once(':').map_or(place, |(file, _)| file);
        if [".ts", ".js", ".mts", ".mjs", ".tsx", ".cjs"].iter().any(|end| file.ends_with(end)) {
            let way_out = "serve JavaScript graphs with LangGraph's own server";
            return unsupported(&format!("graphs.{name} in JavaScript"), way_out);
        }
    }
    Ok(())
}

/// Finds a field that is not supported, with its alternative.
fn refused(within: &str, fields: &Map<String, Value>) -> Option<(String, &'static str)> {
    fields.iter().filter(|(_, value)| !value.is_null()).find_map(|(name, value)| {
        let field = format!("{within}{name}");
        if let Some((_, way_out)) = UNSUPPORTED.iter().find(|(known, _)| *known == field) {
            return Some((field, *way_out));
        }
        if !SUPPORTED.contains(&field.as_str()) {
            return Some((field, "remove it, or correct its name"));
        }
        let below = format!("{field}.");
        let has_fields = SUPPORTED.iter().any(|known| known.starts_with(&below));
        value.as_object().filter(|_| has_fields).and_then(|inner| refused(&below, inner))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(fields: &Value) -> Result<Config, Error> {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("langgraph.json");
        std::fs::write(
            home.path().join(".env"),
            "# a key\nexport KEY=\"a b\" # mine\nOTHER=1 # one\n",
        )
        .unwrap();
        std::fs::write(&path, fields.to_string()).unwrap();
        Config::read(&path)
    }

    #[test]
    fn graphs_and_variables_are_read_in_all_their_forms() {
        let config = read(&json!({
            "dependencies": [".", "langchain_openai"],
            "graphs": { "a": "./a.py:graph", "b": { "path": "./b.py:make", "description": "Answers" } },
            "env": ".env", "python_version": "3.12",
        }));
        let config = config.unwrap();
        assert_eq!(config.graphs["a"].path, "./a.py:graph");
        assert_eq!(config.graphs["b"].description.as_deref(), Some("Answers"));
        assert_eq!((config.env["KEY"].as_str(), config.env["OTHER"].as_str()), ("a b", "1"));
        assert_eq!(config.dependencies, ["."]);
    }

    /// X13
    #[test]
    fn what_is_not_hosted_is_refused_by_its_name() {
        let with = |field: &str| {
            let outer = |value, name: &str| json!({ name: value });
            let mut fields = field.rsplit('.').fold(json!("x"), outer);
            fields["graphs"] = json!({ "a": "./a.py:graph" });
            fields
        };
        let unknown = ["http.disable_thread", "store.ttl.default", "auth.paths", "graph"];
        for field in UNSUPPORTED.iter().map(|(field, _)| *field).chain(unknown) {
            let why = read(&with(field)).unwrap_err().to_string();
            assert!(why.contains(&format!("has {field}, which")), "{why}");
        }
        for field in SUPPORTED.iter().filter(|field| field.contains('.')) {
            read(&with(field)).unwrap();
        }
        let why = read(&json!({ "graphs": { "a": "./a.ts:graph" } })).unwrap_err().to_string();
        assert!(why.contains("graphs.a in JavaScript"), "{why}");
        assert!(matches!(read(&json!({ "graphs": {} })), Err(Error::NoGraphs(_))));
    }
}
