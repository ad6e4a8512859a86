use secrecy::ExposeSecret as _;

use super::*;

const EXAMPLE: &str = include_str!("../../../../perihelion.toml");

fn no_env(_: &str) -> Option<String> {
    None
}

fn env_of(pairs: &'static [(&'static str, &'static str)]) -> impl Fn(&str) -> Option<String> {
    |name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
}

fn file_with(text: &str) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("perihelion.toml");
    std::fs::write(&path, text).unwrap();
    (directory, path)
}

/// Uncomments the lines of the example that are keys or tables.
fn uncommented() -> String {
    EXAMPLE
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(rest)
                if ["[models.", "[serve."].iter().any(|one| rest.starts_with(one))
                    && rest.ends_with(']') =>
            {
                rest
            }
            Some(rest) if rest.split(" = ").next().is_some_and(is_key) && rest.contains(" = ") => {
                rest
            }
            _ => line,
        })
        .collect::<Vec<_>>()
        .join("\n")
}

fn is_key(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c == '_')
}

#[test]
fn the_example_file_equals_the_defaults_and_every_key_in_it_is_valid() {
    let (_keep, path) = file_with(EXAMPLE);
    let as_it_stands = Settings::load(Overrides::default(), Some(&path), &no_env).unwrap();
    assert_eq!(as_it_stands.limits.max_steps, 64);
    assert!(as_it_stands.models.for_role("qa").url.is_none());

    let (_keep, path) = file_with(&uncommented());
    let all = Settings::load(Overrides::default(), Some(&path), &no_env).unwrap();
    assert_eq!(all.models.for_role("supervisor").model, "gpt-4.1");
    assert_eq!(all.limits.deadline_sec, Some(3600));
    assert_eq!(all.models.prices["gpt-4.1"].output_per_mtok, 8.0);
}

#[test]
fn the_example_shows_every_key_with_its_environment_variable() {
    let table: toml::Table = uncommented().parse().unwrap();
    for key in Settings::keys() {
        assert!(table[key.table].get(key.key).is_some(), "missing: {}.{}", key.table, key.key);
        assert!(EXAMPLE.contains(key.variable), "missing: {}", key.variable);
    }
    for role in crate::config::Roles::NAMES {
        assert!(EXAMPLE.contains(role), "missing: {role}");
    }
}

#[test]
fn the_defaults_in_the_example_are_the_defaults() {
    let defaults = Settings::load(Overrides::default(), None, &no_env).unwrap();
    let (_keep, path) = file_with(&uncommented());
    let shown = Settings::load(Overrides::default(), Some(&path), &no_env).unwrap();
    let d = defaults.models.for_agent("other");
    let s = shown.models.for_agent("other");
    assert_eq!(
        (&d.model, &d.api_key_env, d.timeout, d.connect_timeout, d.max_retries),
        (&s.model, &s.api_key_env, s.timeout, s.connect_timeout, s.max_retries),
    );
    assert_eq!(
        (d.backoff, d.backoff_max, d.json_mode, d.protocol),
        (s.backoff, s.backoff_max, s.json_mode, s.protocol),
    );
    let bounds = |s: &Settings| {
        let l = &s.limits;
        (
            (l.max_steps, l.max_parallel_agents, l.max_tool_calls_per_task),
            (l.max_reflections, l.result_bytes, l.max_state_bytes, l.breaker_retries),
        )
    };
    assert_eq!(bounds(&defaults), bounds(&shown));
    assert_eq!((defaults.log.filter, defaults.log.format), (shown.log.filter, shown.log.format));
    assert_eq!(defaults.servers.file.file_name(), shown.servers.file.file_name());
}

#[test]
fn an_option_overrides_the_environment_which_overrides_the_file() {
    let (_keep, path) = file_with("[models]\nmodel = \"from-file\"\nmax_retries = 9\n");
    let env = env_of(&[("OPENAI_MODEL", "from-env"), ("PERIHELION_LIMITS_MAX_STEPS", "7")]);
    let overrides = Overrides { model: Some("from-option".into()), ..Overrides::default() };

    let file = Settings::load(Overrides::default(), Some(&path), &no_env).unwrap();
    assert_eq!(file.models.for_role("qa").model, "from-file");
    let environment = Settings::load(Overrides::default(), Some(&path), &env).unwrap();
    assert_eq!(environment.models.for_role("qa").model, "from-env");
    assert_eq!(environment.limits.max_steps, 7);
    assert_eq!(environment.models.for_role("qa").max_retries, 9);
    let option = Settings::load(overrides, Some(&path), &env).unwrap();
    assert_eq!(option.models.for_role("qa").model, "from-option");
}

#[test]
fn an_empty_environment_variable_counts_as_unset() {
    let env = env_of(&[("OPENAI_MODEL", ""), ("OPENAI_BASE_URL", " "), ("OPENAI_API_KEY", "")]);
    let settings = Settings::load(Overrides::default(), None, &env).unwrap();
    let qa = settings.models.for_role("qa");
    assert_eq!(qa.model, "gpt-4.1-mini");
    assert!(qa.url.is_none() && qa.api_key.is_none());
}

#[test]
fn a_role_differs_if_its_table_or_variables_set_a_value() {
    let (_keep, path) = file_with(
        "[models]\nurl = \"http://a.example/v1\"\ntemperature = 0.7\n\
         [models.roles.reflector]\nmodel = \"small\"\ntimeout_sec = 5\n",
    );
    let env = env_of(&[("PERIHELION_MODELS_ROLES_REFLECTOR_TEMPERATURE", "0")]);
    let settings = Settings::load(Overrides::default(), Some(&path), &env).unwrap();
    let reflector = settings.models.for_role("reflector");
    assert_eq!(reflector.model, "small");
    assert_eq!(reflector.temperature, Some(0.0));
    assert_eq!(reflector.timeout.as_secs(), 5);
    assert_eq!(reflector.url.as_deref(), Some("http://a.example/v1"));
    assert_eq!(settings.models.for_role("qa").temperature, Some(0.7));
}

#[test]
fn the_api_key_does_not_follow_a_role_to_another_address() {
    let (_keep, path) = file_with(
        "[models]\nurl = \"http://a.example/v1\"\n\
         [models.roles.qa]\nurl = \"http://b.example/v1\"\n\
         [models.roles.agent]\nurl = \"http://c.example/v1\"\napi_key_env = \"C_KEY\"\n",
    );
    let env = env_of(&[("OPENAI_API_KEY", "sk-canary"), ("C_KEY", "sk-c")]);
    let models = Settings::load(Overrides::default(), Some(&path), &env).unwrap().models;
    assert!(models.for_role("qa").api_key.is_none());
    assert_eq!(models.for_role("agent").api_key.unwrap().expose_secret(), "sk-c");
    assert_eq!(models.for_role("supervisor").api_key.unwrap().expose_secret(), "sk-canary");
}

#[test]
fn a_key_without_an_address_means_the_public_endpoint() {
    let env = env_of(&[("OPENAI_API_KEY", "sk-canary")]);
    let settings = Settings::load(Overrides::default(), None, &env).unwrap();
    let url = settings.models.for_role("qa").url;
    assert_eq!(url.as_deref(), Some("https://api.openai.com/v1"));
}

#[test]
fn secrets_do_not_show_when_the_settings_are_printed() {
    let env = env_of(&[
        ("OPENAI_API_KEY", "sk-canary"),
        ("DATABASE_URL", "postgres://user:pass@word-canary@db.example/name?password=more-canary"),
    ]);
    let settings = Settings::load(Overrides::default(), None, &env).unwrap();
    let printed = format!("{settings:?} {}", settings.store.database);
    assert!(!printed.contains("canary"), "{printed}");
    assert!(printed.contains("postgres://user@db.example/name"), "{printed}");
}

#[test]
fn a_wrong_value_is_refused_with_the_place_it_came_from() {
    let refused = |file: &str, env: &'static [(&'static str, &'static str)]| {
        let (_keep, path) = file_with(file);
        let error = Settings::load(Overrides::default(), Some(&path), &env_of(env)).unwrap_err();
        error.to_string().replace(&path.display().to_string(), "FILE")
    };
    insta::assert_snapshot!(refused("[limits]\nmax_step = 3\n", &[]));
    insta::assert_snapshot!(refused("[limits]\nmax_steps = 0\n", &[]));
    insta::assert_snapshot!(refused("[models.roles.supervizor]\nmodel = \"x\"\n", &[]));
    insta::assert_snapshot!(refused("[models]\ntemperature = 3.5\n", &[]));
    insta::assert_snapshot!(refused("[store]\ndatabase = \"mysql://root:secret@db\"\n", &[]));
    insta::assert_snapshot!(refused("", &[("PERIHELION_LIMITS_MAX_STEPS", "many")]));
    insta::assert_snapshot!(refused("", &[("OPENAI_BASE_URL", "localhost:11434")]));
    insta::assert_snapshot!(refused("[limits]\nmax_cost_usd = 1.0\n", &[]));
    let price = "[models.prices.\"m\"]\ninput_per_mtok = -1.0\noutput_per_mtok = 0.0\n";
    insta::assert_snapshot!(refused(price, &[]));
}

#[test]
fn a_token_and_each_kind_of_issuer_authenticate_and_stay_secret() {
    let provider = r#"{ "issuer": "https://i.example", "client_id": "p", "client_secret": "long-secret-canary",
        "public_url": "https://p.example" }"#;
    let issuer = r#"{ "issuer": "i", "audience": "a", "jwks_url": "https://i.example/keys" }"#;
    let serve = |variable: &str, value: &str| {
        let env = |name: &str| (name == variable).then(|| value.to_owned());
        Settings::load(Overrides::default(), None, &env).map(|settings| settings.serve)
    };
    assert!(!serve("", "").unwrap().authenticates());
    for (variable, value) in [
        ("PERIHELION_SERVE_TOKEN", "long-secret-canary"),
        ("PERIHELION_SERVE_JWT", issuer),
        ("PERIHELION_SERVE_OIDC", provider),
    ] {
        let serve = serve(variable, value).unwrap();
        assert!(serve.authenticates(), "{variable}");
        assert!(!format!("{serve:?}").contains("canary"), "{serve:?}");
    }
    let refused = serve("PERIHELION_SERVE_OIDC", "{}").unwrap_err().to_string();
    assert!(refused.ends_with("file: missing field `issuer` at line 1 column 2"), "{refused}");
    for weak in ["short", "has spaces in its letters"] {
        let refused = serve("PERIHELION_SERVE_TOKEN", weak).unwrap_err().to_string();
        assert!(refused.contains("at least 16 letters"), "{refused}");
    }
}

#[test]
fn a_relative_path_in_the_file_starts_at_the_files_directory() {
    let (keep, path) = file_with("[servers]\nfile = \"mine.toml\"\n[prompts]\ndir = \"words\"\n");
    let settings = Settings::load(Overrides::default(), Some(&path), &no_env).unwrap();
    assert_eq!(settings.servers.file, keep.path().join("mine.toml"));
    assert_eq!(settings.prompts.dir, Some(keep.path().join("words")));
    let overrides = Overrides { servers: Some("here.toml".into()), ..Overrides::default() };
    let settings = Settings::load(overrides, Some(&path), &no_env).unwrap();
    assert_eq!(settings.servers.file, PathBuf::from("here.toml"));
}

#[test]
fn a_named_file_that_is_missing_is_an_error() {
    let error =
        Settings::load(Overrides::default(), Some(Path::new("nowhere.toml")), &no_env).unwrap_err();
    assert!(error.to_string().starts_with("cannot read nowhere.toml"), "{error}");
}

#[test]
fn metrics_go_to_the_traces_collector_unless_an_address_or_the_environment_overrides_it() {
    let collector = |file: &str, env: &'static [(&'static str, &'static str)]| {
        let (_keep, path) = file_with(file);
        let settings = Settings::load(Overrides::default(), Some(&path), &env_of(env)).unwrap();
        let found = settings.metrics.otlp?;
        Some((found.endpoint, found.transport.is_exact, found.transport.headers.len()))
    };
    let named = "[traces]\notlp_endpoint = \"http://c:4318\"\nheaders_env = \"HEADERS\"\n";
    let to = |endpoint: &str, exact, headers| Some((endpoint.to_owned(), exact, headers));
    const SECRET: (&str, &str) = ("HEADERS", "authorization=secret");
    const OWN: (&str, &str) = ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://m:9/x");
    assert_eq!(collector(named, &[SECRET]), to("http://c:4318", false, 1));
    assert_eq!(
        collector(named, &[SECRET, OWN]),
        to("http://m:9/x", true, 0),
        "no secret for others"
    );
    for off in [
        [("OTEL_METRICS_EXPORTER", "none")],
        [("OTEL_METRICS_EXPORTER", "prometheus")],
        [("OTEL_SDK_DISABLED", "TRUE")],
        [("OTEL_EXPORTER_OTLP_ENDPOINT", "https://c/api/public/otel/v1/traces")],
    ] {
        let off: &'static [(&'static str, &'static str)] = Box::leak(Box::new(off));
        assert_eq!(collector(named, off), None, "{off:?}");
    }
    assert!(collector(named, &[("OTEL_METRICS_EXPORTER", "otlp,console")]).is_some());
    assert_eq!(collector("", &[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://t")]), None);
}

/// S3.02: an agent has its own model, endpoint and limits; the rest comes from its role.
#[test]
fn settings_of_an_agent_override_the_settings_of_its_role() {
    let (_keep, path) = file_with(
        "[models]\nurl = \"http://a.example/v1\"\nmodel = \"base\"\n\
         [models.roles.agent]\ntemperature = 0.1\ntimeout_sec = 7\n\
         [models.agents.sales]\nmodel = \"own\"\nmax_retries = 9\n\
         [models.agents.far]\napi = \"anthropic\"\napi_key_env = \"FAR_KEY\"\n",
    );
    let env = |name: &str| match name {
        "OPENAI_API_KEY" => Some("sk-canary".to_owned()),
        "FAR_KEY" => Some("sk-far".to_owned()),
        _ => None,
    };
    let models = Settings::load(Overrides::default(), Some(&path), &env).unwrap().models;
    let sales = models.for_agent("mcp_agent_sales");
    assert_eq!((sales.model.as_str(), sales.max_retries), ("own", 9));
    assert_eq!((sales.temperature, sales.timeout.as_secs()), (Some(0.1), 7));
    assert_eq!(sales.api_key.unwrap().expose_secret(), "sk-canary");
    let far = models.for_agent("far");
    assert_eq!(far.url.as_deref(), Some("https://api.anthropic.com/v1"));
    assert_eq!(
        (far.api, far.api_key.unwrap().expose_secret()),
        (crate::config::Api::Anthropic, "sk-far")
    );
    assert_eq!(models.for_agent("other").model, "base");
}
