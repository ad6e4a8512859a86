//! The models section: one endpoint for all, and what differs per role.

use std::collections::BTreeMap;
use std::time::Duration;

use secrecy::SecretString;
use serde::Deserialize;

use super::apis::{Api, Inputs};
use super::prices::{self, Price, Prices};
use super::resolve::{
    Section, Setting, Sources, any, http_url, if_any, not_empty, positive, seconds, section,
    temperature,
};
use super::strict::{Error, Invalid};

/// Prefix of the agents that are generated from MCP servers (S1.09); tables of settings go without it.
pub const AGENT_PREFIX: &str = "mcp_agent_";

section! {
    /// The endpoint that every role uses unless its own table says otherwise.
    Endpoint, ModelsFile, "models" {
        /// Base address of an OpenAI-compatible endpoint, up to and including `/v1`.
        url: Option<String> = None, "OPENAI_BASE_URL", if_any(http_url);
        /// Model name sent with each request.
        model: String = "gpt-4.1-mini".to_owned(), "OPENAI_MODEL", not_empty;
        /// Environment variable with the API key; the key itself is never in a file.
        api_key_env: String = "OPENAI_API_KEY".to_owned(), "PERIHELION_MODELS_API_KEY_ENV", not_empty;
        /// Seconds to wait for an answer, and for each next piece of a streamed one.
        timeout_sec: f64 = 120.0, "PERIHELION_MODELS_TIMEOUT_SEC", seconds;
        /// Seconds to wait for a connection.
        connect_timeout_sec: f64 = 10.0, "PERIHELION_MODELS_CONNECT_TIMEOUT_SEC", seconds;
        /// Further attempts after status 429 or 5xx, a lost connection or a timeout.
        max_retries: u32 = 4, "PERIHELION_MODELS_MAX_RETRIES", any;
        /// First wait between attempts, in milliseconds; doubles each time, with jitter.
        backoff_ms: u64 = 500, "PERIHELION_MODELS_BACKOFF_MS", any;
        /// Longest wait between attempts, in seconds, also where `Retry-After` asks for more.
        backoff_max_sec: f64 = 30.0, "PERIHELION_MODELS_BACKOFF_MAX_SEC", seconds;
        /// The protocol of the endpoint: `chat_completions`, `anthropic` or `gemini`.
        api: Api = Api::ChatCompletions, "PERIHELION_MODELS_API", any;
        /// How JSON is asked for: `auto`, `json_schema`, `json_object` or `text`.
        json_mode: JsonMode = JsonMode::Auto, "PERIHELION_MODELS_JSON_MODE", any;
        /// Which decisions the supervisor is asked for: `auto`, `compact` or `full`.
        protocol: Protocol = Protocol::Auto, "PERIHELION_MODELS_PROTOCOL", any;
        /// Sampling temperature; by default the endpoint's.
        temperature: Option<f64> = None, "PERIHELION_MODELS_TEMPERATURE", if_any(temperature);
        /// Maximum tokens of an answer; by default the endpoint's.
        max_tokens: Option<u32> = None, "PERIHELION_MODELS_MAX_TOKENS", if_any(positive);
        /// Tokens of the model's window, question and answer together; requests are fitted into it. By default they are
        /// not, unless the endpoint rejects one as too long.
        context_window: Option<u32> = None, "PERIHELION_MODELS_CONTEXT_WINDOW", if_any(positive);
        /// The inputs of the model in addition to text: `text`, `image`, `pdf`; other inputs are only named to it.
        input: Inputs = Inputs::default(), "PERIHELION_MODELS_INPUT", any;
    }
    beside {
        roles: Roles;
        agents: BTreeMap<String, RoleSettings>;
        prices: BTreeMap<String, Price>;
    }
}

/// How a JSON answer is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JsonMode {
    /// `json_schema`, and the fallback if the endpoint rejects it.
    #[default]
    Auto,
    /// Always a strict `json_schema`.
    JsonSchema,
    /// Always `json_object`, with the schema in the system message.
    JsonObject,
    /// No `response_format`, only the schema in the system message.
    Text,
}

impl Setting for JsonMode {}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// The full form until the model fails at it, and again after 20 valid compact answers; none where there is one agent.
    #[default]
    Auto,
    /// One agent and its task at a time; none where there is one agent.
    Compact,
    /// A plan with any number of tasks, always.
    Full,
}

impl Setting for Protocol {}

macro_rules! role_settings {
    ($($(#[$doc:meta])* $key:ident: $type:ty, $check:expr;)*) => {
        /// The differences of one role or one agent; `PERIHELION_MODELS_ROLES_<ROLE>_<KEY>` and
        /// `PERIHELION_MODELS_AGENTS_<NAME>_<KEY>` in the environment.
        #[derive(Clone, Debug, Default, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct RoleSettings {
            $($(#[$doc])* pub $key: Option<$type>,)*
            /// Read from the environment, never from the file.
            #[serde(skip)]
            api_key: Option<SecretString>,
        }

        impl RoleSettings {
            pub(super) const KEYS: &'static [&'static str] = &[$(stringify!($key)),*];

            fn resolve(self, kind: &str, of: &str, sources: &Sources<'_>) -> Result<Self, Error> {
                let key = |name: &str| format!("models.{kind}.{of}.{name}");
                let variable = |name: &str| {
                    format!("PERIHELION_MODELS_{kind}_{of}_{name}").to_uppercase().replace('-', "_")
                };
                let mut found = Self::default();
                $(found.$key = sources
                    .find(&key(stringify!($key)), &variable(stringify!($key)), self.$key, $check)?;)*
                found.api_key = found.api_key_env.as_deref().and_then(|name| sources.secret(name));
                Ok(found)
            }
        }
    };
}
role_settings! {
    model: String, not_empty;
    /// Another endpoint; it gets no key without an `api_key_env` of its own.
    url: String, http_url;
    api_key_env: String, any;
    /// The protocol of the other endpoint.
    api: Api, any;
    protocol: Protocol, any;
    temperature: f64, temperature;
    max_tokens: u32, positive;
    context_window: u32, positive;
    input: Inputs, any;
    timeout_sec: f64, seconds;
    max_retries: u32, any;
}

macro_rules! roles {
    ($($role:ident),*) => {
        /// The role tables, `[models.roles.<role>]`.
        #[derive(Clone, Debug, Default, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct Roles { $(pub $role: RoleSettings,)* }

        impl Roles {
            /// The roles that can have a table.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($role)),*];

            /// Returns a role's table; `None` for an unknown role.
            pub fn get(&self, role: &str) -> Option<&RoleSettings> {
                match role { $(stringify!($role) => Some(&self.$role),)* _ => None }
            }

            fn resolve(self, sources: &Sources<'_>) -> Result<Self, Error> {
                Ok(Self { $($role: self.$role.resolve("roles", stringify!($role), sources)?,)* })
            }
        }
    };
}
roles!(supervisor, agent, reflector, qa, architect, extractor, summarizer, classifier, reranker);

#[derive(Clone, Debug)]
pub struct Models {
    base: ModelSettings,
    pub roles: Roles,
    /// The settings of single agents, by their server's name; only in the file.
    pub agents: BTreeMap<String, RoleSettings>,
    /// The prices of models, by model name; only in the file.
    pub prices: BTreeMap<String, Price>,
}

/// The settings of one role's calls, with all layers applied.
#[derive(Clone, Debug)]
pub struct ModelSettings {
    /// `None` without an endpoint.
    pub url: Option<String>,
    pub model: String,
    pub api_key: Option<SecretString>,
    /// The variable with the key; `None` means that this address gets no key.
    pub api_key_env: Option<String>,
    pub timeout: Duration,
    pub connect_timeout: Duration,
    pub max_retries: u32,
    pub backoff: Duration,
    pub backoff_max: Duration,
    pub api: Api,
    pub json_mode: JsonMode,
    pub protocol: Protocol,
    pub temperature: Option<f64>,
    pub max_tokens: Option<u32>,
    /// Tokens of question and answer together; `None` if unknown.
    pub context_window: Option<u32>,
    pub input: Inputs,
}

impl Section for Models {
    type File = ModelsFile;
    const KEYS: &'static [super::Key] = Endpoint::KEYS;

    fn resolve(mut file: ModelsFile, sources: &Sources<'_>) -> Result<Self, Error> {
        if let Some((key, price)) = prices::unusable(&file.prices) {
            return Err(sources.refuse(&key, Invalid::Price(price)));
        }
        let roles = std::mem::take(&mut file.roles).resolve(sources)?;
        let mut agents = BTreeMap::new();
        for (name, table) in std::mem::take(&mut file.agents) {
            let name = name.trim_start_matches(AGENT_PREFIX).to_owned();
            let table = table.resolve("agents", &name, sources)?;
            agents.insert(name, table);
        }
        let prices = std::mem::take(&mut file.prices);
        let base = Endpoint::resolve(file, sources)?.settings(sources);
        Ok(Self { base, roles, agents, prices })
    }
}

impl Endpoint {
    /// Returns the settings of calls to the endpoint; a key without an address means the public one.
    fn settings(self, sources: &Sources<'_>) -> ModelSettings {
        let api_key = sources.secret(&self.api_key_env);
        let public = || api_key.as_ref().map(|_| self.api.public_endpoint().to_owned());
        ModelSettings {
            url: self.url.or_else(public),
            api_key,
            api_key_env: Some(self.api_key_env),
            model: self.model,
            timeout: Duration::from_secs_f64(self.timeout_sec),
            connect_timeout: Duration::from_secs_f64(self.connect_timeout_sec),
            max_retries: self.max_retries,
            backoff: Duration::from_millis(self.backoff_ms),
            backoff_max: Duration::from_secs_f64(self.backoff_max_sec),
            api: self.api,
            json_mode: self.json_mode,
            protocol: self.protocol,
            temperature: self.temperature,
            max_tokens: self.max_tokens,
            context_window: self.context_window,
            input: self.input,
        }
    }
}

impl Models {
    pub fn price_list(&self) -> Prices {
        let asked = |role: &&str| ((*role).to_owned(), self.for_role(role).model);
        Prices { models: self.prices.clone(), roles: Roles::NAMES.iter().map(asked).collect() }
    }

    /// Returns the first model in use of which no price is known.
    pub(super) fn unpriced(&self) -> Option<String> {
        let prices = self.price_list();
        let of_roles = Roles::NAMES.iter().map(|role| (*role, self.for_role(role).model));
        let of_agents = self.agents.keys().map(|name| ("", self.for_agent(name).model));
        let mut all = of_roles.chain(of_agents);
        all.find(|(role, model)| prices.of(role, model).is_none()).map(|(_, model)| model)
    }

    /// Returns settings that send every role to one endpoint and model, without a key; its script makes the plans.
    #[must_use]
    pub fn at(mut self, url: &str, model: &str) -> Self {
        self.base.url = Some(url.to_owned());
        self.base.api_key = None;
        self.base.model = model.to_owned();
        self.base.api = Api::ChatCompletions;
        self.base.protocol = Protocol::Full;
        self.roles = Roles::default();
        self.agents.clear();
        self
    }

    /// Returns the settings of a role's calls; an unknown role gets the endpoint's.
    pub fn for_role(&self, role: &str) -> ModelSettings {
        self.base.clone().with(self.roles.get(role))
    }

    /// Returns the settings of an agent's own calls: its table precedes that of its role.
    pub fn for_agent(&self, name: &str) -> ModelSettings {
        self.for_role("agent").with(self.agents.get(name.trim_start_matches(AGENT_PREFIX)))
    }
}

/// The part of a window that is left for the answer, where its length is not bounded.
const FOR_ANSWERS: u32 = 8;

impl ModelSettings {
    /// Returns the maximum tokens of a question, if the window is known.
    pub fn room(&self) -> Option<u64> {
        let window = self.context_window?;
        let answer = self.max_tokens.unwrap_or(window / FOR_ANSWERS).min(window / 2);
        Some(u64::from(window - answer))
    }

    /// Lays a table over these.
    fn with(self, own: Option<&RoleSettings>) -> Self {
        let Some(own) = own.cloned() else { return self };
        let api = own.api.unwrap_or(self.api);
        // Another API without an address is its provider's own.
        let elsewhere = (api != self.api).then(|| api.public_endpoint().to_owned());
        let url = own.url.or(elsewhere);
        // A key belongs to the address it was given for: it does not follow to another one.
        let is_elsewhere = url.as_ref().is_some_and(|url| Some(url) != self.url.as_ref());
        let (api_key_env, api_key) = match own.api_key_env {
            Some(variable) => (Some(variable), own.api_key),
            None if is_elsewhere => (None, None),
            None => (self.api_key_env, self.api_key),
        };
        let public = || api_key.as_ref().map(|_| api.public_endpoint().to_owned());
        let is_same_model = own.model.as_ref().is_none_or(|model| *model == self.model);
        Self {
            url: url.or(self.url).or_else(public),
            api_key,
            api_key_env,
            api,
            model: own.model.unwrap_or(self.model),
            timeout: own.timeout_sec.map_or(self.timeout, Duration::from_secs_f64),
            max_retries: own.max_retries.unwrap_or(self.max_retries),
            protocol: own.protocol.unwrap_or(self.protocol),
            temperature: own.temperature.or(self.temperature),
            max_tokens: own.max_tokens.or(self.max_tokens),
            // Another model takes other things, and has another window.
            input: own.input.unwrap_or(if is_same_model { self.input } else { Inputs::default() }),
            context_window: own.context_window.or(self.context_window.filter(|_| is_same_model)),
            ..self
        }
    }
}
