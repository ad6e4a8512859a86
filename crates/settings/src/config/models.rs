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
        /// Environment variable that holds the API key; the key itself never stands in a file.
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
        /// What the endpoint speaks: `chat_completions`, `anthropic` or `gemini`.
        api: Api = Api::ChatCompletions, "PERIHELION_MODELS_API", any;
        /// How JSON is asked for: `auto`, `json_schema`, `json_object` or `text`.
        json_mode: JsonMode = JsonMode::Auto, "PERIHELION_MODELS_JSON_MODE", any;
        /// Sampling temperature; none: the endpoint's own.
        temperature: Option<f64> = None, "PERIHELION_MODELS_TEMPERATURE", if_any(temperature);
        /// Tokens an answer may have; none: the endpoint's own bound.
        max_tokens: Option<u32> = None, "PERIHELION_MODELS_MAX_TOKENS", if_any(positive);
        /// Tokens of the model's window, question and answer together; requests are fitted into it. None: they are not,
        /// unless the endpoint refuses one as too long.
        context_window: Option<u32> = None, "PERIHELION_MODELS_CONTEXT_WINDOW", if_any(positive);
        /// What the model takes beside text: `text`, `image`, `pdf`; what it does not take is named to it.
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
    /// `json_schema`, and what the endpoint does accept where it refuses that.
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

macro_rules! role_settings {
    ($($(#[$doc:meta])* $key:ident: $type:ty, $check:expr;)*) => {
        /// What one role or one agent does differently; `PERIHELION_MODELS_ROLES_<ROLE>_<KEY>` and
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
    /// Another endpoint; it gets no key unless `api_key_env` stands beside it.
    url: String, http_url;
    api_key_env: String, any;
    /// What the other endpoint speaks.
    api: Api, any;
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

            /// Returns a role's table; none for an unknown role.
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

/// Everything the settings say of models.
#[derive(Clone, Debug)]
pub struct Models {
    pub endpoint: Endpoint,
    pub roles: Roles,
    /// What single agents do differently, by their server's name; only the file can name one.
    pub agents: BTreeMap<String, RoleSettings>,
    /// What models charge, by model name; only the file can say it.
    pub prices: BTreeMap<String, Price>,
    api_key: Option<SecretString>,
}

/// What one role's calls need, all layers applied.
#[derive(Clone, Debug)]
pub struct ModelSettings {
    /// None: no endpoint is configured.
    pub url: Option<String>,
    pub model: String,
    pub api_key: Option<SecretString>,
    /// The variable that the key is read from; none: no key goes to this address.
    pub api_key_env: Option<String>,
    pub timeout: Duration,
    pub connect_timeout: Duration,
    pub max_retries: u32,
    pub backoff: Duration,
    pub backoff_max: Duration,
    pub api: Api,
    pub json_mode: JsonMode,
    pub temperature: Option<f64>,
    pub max_tokens: Option<u32>,
    /// Tokens of question and answer together; none: not known.
    pub context_window: Option<u32>,
    /// What the model can be sent.
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
        let endpoint = Endpoint::resolve(file, sources)?;
        let api_key = sources.secret(&endpoint.api_key_env);
        Ok(Self { roles, agents, prices, endpoint, api_key })
    }
}

impl Models {
    /// Returns the prices by which calls are counted.
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

    /// Returns settings that send every role to one endpoint and model, without a key.
    #[must_use]
    pub fn at(mut self, url: &str, model: &str) -> Self {
        self.endpoint.url = Some(url.to_owned());
        self.endpoint.model = model.to_owned();
        self.endpoint.api = Api::ChatCompletions;
        self.roles = Roles::default();
        self.agents.clear();
        self.api_key = None;
        self
    }

    /// Returns what the calls of a role need; an unknown role gets the endpoint's own settings.
    pub fn for_role(&self, role: &str) -> ModelSettings {
        self.of_endpoint().with(self.roles.get(role))
    }

    /// Returns what an agent's own calls need: its table's word before that of its role.
    pub fn for_agent(&self, name: &str) -> ModelSettings {
        self.for_role("agent").with(self.agents.get(name.trim_start_matches(AGENT_PREFIX)))
    }

    fn of_endpoint(&self) -> ModelSettings {
        let base = &self.endpoint;
        let public = || self.api_key.as_ref().map(|_| base.api.public_endpoint().to_owned());
        ModelSettings {
            url: base.url.clone().or_else(public),
            api_key: self.api_key.clone(),
            api_key_env: Some(base.api_key_env.clone()),
            model: base.model.clone(),
            timeout: Duration::from_secs_f64(base.timeout_sec),
            connect_timeout: Duration::from_secs_f64(base.connect_timeout_sec),
            max_retries: base.max_retries,
            backoff: Duration::from_millis(base.backoff_ms),
            backoff_max: Duration::from_secs_f64(base.backoff_max_sec),
            api: base.api,
            json_mode: base.json_mode,
            temperature: base.temperature,
            max_tokens: base.max_tokens,
            context_window: base.context_window,
            input: base.input.clone(),
        }
    }
}

/// The part of a window that is left for the answer, where its length is not bounded.
const FOR_ANSWERS: u32 = 8;

impl ModelSettings {
    /// Returns how many tokens a question may have, where the window is known.
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
            temperature: own.temperature.or(self.temperature),
            max_tokens: own.max_tokens.or(self.max_tokens),
            // Another model takes other things, and has another window.
            input: own.input.unwrap_or(if is_same_model { self.input } else { Inputs::default() }),
            context_window: own.context_window.or(self.context_window.filter(|_| is_same_model)),
            ..self
        }
    }
}
