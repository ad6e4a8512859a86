//! What operators write into the servers file, and what they are told about it.

use perihelion::mcp::{ApprovalMode, Effect, Grant, ServersFile, Transport};

fn parse(text: &str) -> Result<ServersFile, String> {
    let env = |name: &str| match name {
        "DATA" => Some("/srv/data".to_owned()),
        "TOKEN" => Some("s3cret-token".to_owned()),
        "PATH" => Some("/usr/bin".to_owned()),
        _ => None,
    };
    ServersFile::parse("mcp-servers.toml".as_ref(), text, &env).map_err(|error| error.to_string())
}

fn refusal(text: &str) -> String {
    parse(text).map(|_| ()).unwrap_err()
}

/// S3.12
#[test]
fn a_table_written_for_codex_is_understood_unchanged() {
    let file = parse(
        r#"
        [mcp_servers.docs]
        command = "npx"
        args = ["-y", "@example/docs"]
        env = { MODE = "fast" }
        env_vars = ["TOKEN", "NOT_SET"]
        cwd = "/tmp"
        startup_timeout_sec = 10.5
        tool_timeout_sec = 30
        enabled = true
        required = true
        enabled_tools = ["search", "open"]
        disabled_tools = ["open"]
        supports_parallel_tool_calls = false
        default_tools_approval_mode = "prompt"
        [mcp_servers.docs.tools.search]
        approval_mode = "approve"

        [mcp_servers.cloud]
        url = "https://example.org/mcp"
        bearer_token_env_var = "TOKEN"
        http_headers = { X-Region = "eu" }
        env_http_headers = { X-Data = "DATA", X-None = "NOT_SET" }
        scopes = ["read"]
        oauth = { client_id = "me" }
        "#,
    )
    .unwrap();
    let docs = file.get("docs").unwrap();
    let Transport::Stdio { command, args, env, cwd } = &docs.transport else { panic!() };
    assert_eq!((&**command, args.len(), cwd.as_deref()), ("npx", 2, Some("/tmp")));
    let variables: Vec<_> = env.keys().map(String::as_str).collect();
    assert_eq!(variables, ["MODE", "PATH", "TOKEN"]);
    assert_eq!((docs.startup_timeout.as_secs_f64(), docs.max_concurrent_calls), (10.5, 1));
    assert!(docs.required && docs.tools.refusal("open").is_some());
    assert!(docs.tools.refusal("search").is_none() && docs.tools.refusal("other").is_some());
    assert_eq!(docs.tools.by_name["search"].approval_mode, Some(ApprovalMode::Approve));
    assert_eq!(docs.tools.default_approval, ApprovalMode::Prompt);
    let Transport::Http { bearer_token, headers, .. } = &file.get("cloud").unwrap().transport
    else {
        panic!()
    };
    assert_eq!((bearer_token.as_deref(), headers.len()), (Some("s3cret-token"), 2));
    assert_eq!(file.warnings.len(), 3);
    assert!(file.warnings[0].text.ends_with("mcp_servers.cloud.oauth"), "{:?}", file.warnings);
}

#[test]
fn servers_keep_the_order_in_which_they_are_written() {
    let names = ["zeta", "alpha", "mid"];
    let text = names.map(|name| format!("[mcp_servers.{name}]\ncommand = \"x\"\n")).concat();
    let file = parse(&text).unwrap();
    let read: Vec<_> = file.servers.iter().map(|server| server.name.as_str()).collect();
    assert_eq!(read, names);
}

#[test]
fn an_unknown_key_is_refused_with_its_place_and_the_nearest_key() {
    let error = refusal("[mcp_servers.a]\ncommand = \"x\"\ntool_timeout_secs = 3\n");
    assert!(
        error.starts_with("mcp-servers.toml:3:1: unknown field `tool_timeout_secs`"),
        "{error}"
    );
    assert!(error.ends_with("did you mean `tool_timeout_sec`?"), "{error}");
    let error =
        refusal("[mcp_servers.a]\ncommand = \"x\"\n[mcp_servers.a.tools.t]\nefect = \"write\"\n");
    assert!(error.contains(":4:1:") && error.ends_with("did you mean `effect`?"), "{error}");
    let error = refusal("[mcp_servers.a]\ncommand = \"x\"\ndefault_tools_effect = \"readonly\"\n");
    assert!(error.contains(":3:") && error.ends_with("did you mean `read_only`?"), "{error}");
    assert!(refusal("[mcp_server.a]\ncommand = \"x\"").ends_with("did you mean `mcp_servers`?"));
}

#[test]
fn a_variable_that_is_not_set_is_named_with_server_and_key() {
    let left_out = |text: &str| {
        let file = parse(&format!("{text}\n[mcp_servers.b]\ncommand = \"y\"")).unwrap();
        assert_eq!((file.servers.len(), &*file.servers[0].name), (1, "b"), "the others stay");
        let [one] = file.unusable.as_slice() else { panic!("{:?}", file.unusable) };
        assert_eq!(one.server, "a");
        one.reason.clone()
    };
    let reason = left_out(
        "[mcp_servers.a]\ncommand = \"x\"\nargs = [\"${NOT_A}\", \"${NOT_B:-b}\"]\nenv = { KEY = \"${NOT_SET}\" }",
    );
    assert!(reason.ends_with("are not set: NOT_A, NOT_SET"), "{reason}");
    assert!(reason.contains("mcp-servers.toml"), "{reason}");
    let reason =
        left_out("[mcp_servers.a]\nurl = \"http://h/\"\nbearer_token_env_var = \"NOT_SET\"");
    assert!(reason.ends_with("is not set: NOT_SET"), "{reason}");
    // Of a disabled server nothing is demanded.
    assert!(
        parse("[mcp_servers.a]\nenabled = false\nargs = [\"${NOT_SET}\"]\ncommand = \"x\"").is_ok()
    );
}

#[test]
fn variables_are_expanded_in_command_arguments_directory_and_address() {
    let file = parse(
        "[mcp_servers.a]\ncommand = \"${DATA}/run\"\nargs = [\"${DATA}\", \"${NO:-b}\"]\ncwd = \"${DATA}\"\n\
         [mcp_servers.b]\nurl = \"http://${HOST:-localhost}:1/mcp\"",
    )
    .unwrap();
    let Transport::Stdio { command, args, cwd, .. } = &file.servers[0].transport else { panic!() };
    assert_eq!(command, "/srv/data/run");
    assert_eq!((args.join(" "), cwd.as_deref()), ("/srv/data b".into(), Some("/srv/data")));
    let Transport::Http { url, .. } = &file.servers[1].transport else { panic!() };
    assert_eq!(url, "http://localhost:1/mcp");
}

#[test]
fn relative_paths_of_a_sandbox_start_in_the_directory_of_the_server() {
    let file = parse(
        "[mcp_servers.a]\ncommand = \"x\"\ncwd = \"${DATA}\"\nsandbox = { read_only = [\"books\"] }",
    )
    .unwrap();
    let sandbox = file.servers[0].sandbox.as_ref().unwrap();
    assert_eq!(sandbox.read_only, [std::path::Path::new("/srv/data/books")]);
}

#[test]
fn a_header_without_a_value_is_named_and_does_not_count_as_a_token() {
    let table =
        "[mcp_servers.a]\nurl = \"http://h/\"\nenv_http_headers = { Authorization = \"NOT_SET\" }";
    let file = parse(table).unwrap();
    let [warning] = file.warnings.as_slice() else { panic!("{:?}", file.warnings) };
    assert_eq!(
        warning.text,
        "this header is not sent, because NOT_SET is not set: mcp_servers.a.env_http_headers.Authorization"
    );
    let Transport::Http { headers, oauth, .. } = &file.servers[0].transport else { panic!() };
    assert!(headers.is_empty() && oauth.is_some());
    let twice = table.replace("NOT_SET", "TOKEN") + "\nbearer_token_env_var = \"TOKEN\"";
    assert!(refusal(&twice).contains("bearer_token_env_var: the headers have `Authorization` too"));
}

#[test]
fn invalid_server_settings_are_refused_by_name() {
    let cases = [
        ("[mcp_servers.a]\n", "give a `command` to start"),
        ("[mcp_servers.a]\ncommand = \"x\"\nurl = \"http://h/\"", "not both"),
        ("[mcp_servers.\"a b\"]\ncommand = \"x\"", "for a server's name"),
        (
            "[mcp_servers.a]\ncommand = \"x\"\ntool_timeout_sec = 0",
            "tool_timeout_sec: expected seconds",
        ),
        ("[mcp_servers.a]\ncommand = \"x\"\ntool_timeout_sec = nan", "expected seconds"),
        (
            "[mcp_servers.a]\ncommand = \"x\"\nmax_concurrent_calls = 0",
            ":3:1: mcp_servers.a.max_concurrent_calls: expected a number",
        ),
        (
            "[mcp_servers.a]\ncommand = \"x\"\nhttp_headers = { A = \"b\" }",
            "only a server with `url`",
        ),
        ("[mcp_servers.a]\nurl = \"http://h/\"\nargs = [\"b\"]", "only a server with `command`"),
        ("[mcp_servers.a]\nurl = \"ftp://h/\"", "expected http or https, found: ftp"),
        ("[mcp_servers.a]\nurl = \"nonsense\"", "url: not a URL"),
        ("[mcp_servers.a]\nurl = \"http://h/\"\nhttp_headers = { \"a b\" = \"c\" }", "HTTP header"),
        ("[mcp_servers.a]\ncommand = \" \"", "the command is empty"),
        (
            "[mcp_servers.a]\ncommand = \"x\"\nrate_limit = \"60 a minute\"",
            ":3:1: mcp_servers.a.rate_limit: expected calls per time, such as 5/s",
        ),
        ("[mcp_servers.a]\ncommand = \"x\"\nrate_limit = \"0/s\"", "expected calls per time"),
        ("[mcp_servers.a]\ncommand = \"x\"\nidle_timeout_sec = -1", "idle_timeout_sec: expected"),
    ];
    for (text, expected) in cases {
        let error = refusal(text);
        assert!(error.contains(expected), "{text}\n{error}");
    }
}

#[test]
fn token_settings_are_read_and_contradictory_ones_are_refused() {
    let table = |oauth: &str| format!("[mcp_servers.a]\nurl = \"https://h/mcp\"\n{oauth}\n");
    let file = parse(&table(
        "scopes = [\"read\"]\noauth = { client_id = \"me\", client_secret_env_var = \"TOKEN\", \
         grant = \"client_credentials\" }",
    ))
    .unwrap();
    let Transport::Http { oauth: Some(oauth), bearer_token: None, .. } = &file.servers[0].transport
    else {
        panic!()
    };
    assert_eq!(oauth.grant, Grant::ClientCredentials);
    assert_eq!(
        (oauth.client_id.as_deref(), &*oauth.scopes),
        (Some("me"), &["read".to_owned()][..])
    );
    assert!(!format!("{oauth:?}").contains("s3cret-token"));
    for (oauth, ends) in [
        ("oauth = { client = \"me\" }", "did you mean `client_id`?"),
        ("oauth = { grant = \"password\" }", "client_credentials`"),
        ("oauth = { client_secret_env_var = \"TOKEN\" }", "a secret goes with a `client_id`"),
        ("oauth = { grant = \"client_credentials\" }", "and `client_secret_env_var`"),
        ("oauth = { client_metadata_url = \"http://h/me.json\" }", "with a path: http://h/me.json"),
        (
            "oauth = { client_id = \"me\", client_metadata_url = \"https://h/me.json\" }",
            "`client_metadata_url`, not both",
        ),
        ("scopes = [\"read write\"]", "a scope is one word: read write"),
    ] {
        let error = refusal(&table(oauth));
        assert!(error.contains(ends), "{oauth}: {error}");
    }
    let error = refusal("[mcp_servers.a]\ncommand = \"x\"\nscopes = [\"read\"]");
    assert!(error.contains("only a server with `url` takes this key"), "{error}");
}

#[test]
fn the_limits_of_a_server_are_read_and_have_defaults() {
    let file = parse(
        "[mcp_servers.a]\ncommand = \"x\"\nrate_limit = \"60/min\"\nidle_timeout_sec = 0\n\
         breaker_failures = 2\nbreaker_cooldown_sec = 1.5\nmax_concurrency = 3\n\
         [mcp_servers.b]\ncommand = \"x\"",
    )
    .unwrap();
    let [a, b] = file.servers.as_slice() else { panic!() };
    let rate = a.rate_limit.unwrap();
    assert_eq!((rate.calls.get(), rate.per.as_secs()), (60, 60));
    assert_eq!((a.idle_timeout, a.max_concurrent_calls), (None, 3));
    assert_eq!((a.breaker.failures, a.breaker.cooldown.as_secs_f64()), (2, 1.5));
    assert_eq!((b.rate_limit, b.idle_timeout.unwrap().as_secs()), (None, 600));
    assert_eq!((b.breaker.failures, b.breaker.cooldown.as_secs()), (5, 30));
}

#[test]
fn a_secret_in_plain_text_is_warned_of_by_its_key_and_not_shown() {
    let file = parse(
        "[mcp_servers.a]\ncommand = \"x\"\nargs = [\"--token\", \"abcdef123456\"]\n\
         env = { API_KEY = \"abcdef123456\", OTHER_KEY = \"${TOKEN}\", MODE = \"fast\" }\n\
         [mcp_servers.b]\nurl = \"http://ann:hunter2@h/\"",
    )
    .unwrap();
    let warnings: Vec<_> = file.warnings.iter().map(|one| one.text.as_str()).collect();
    assert_eq!(warnings.len(), 3, "{warnings:?}");
    for (warning, key) in warnings.iter().zip(["a.env.API_KEY", "a.args", "b.url"]) {
        assert!(warning.ends_with(&format!(": mcp_servers.{key}")), "{warning}");
        assert!(!warning.contains("abcdef") && !warning.contains("hunter2"), "{warning}");
    }
}

#[test]
fn cached_definitions_are_identified_by_the_target_and_by_no_secret() {
    let prints = |text: &str, token: &'static str| {
        let env = |name: &str| (name == "TOKEN").then(|| token.to_owned());
        let file = ServersFile::parse("f".as_ref(), text, &env).unwrap();
        file.servers[0].fingerprint.clone()
    };
    let text = "[mcp_servers.a]\ncommand = \"x\"\nenv = { T = \"${TOKEN}\", M = \"fast\" }";
    let print = prints(text, "first-token");
    assert_eq!(print, prints(text, "second-token"));
    assert_eq!(print, prints(&format!("{text}\ntool_timeout_sec = 3"), "first-token"));
    assert_eq!(print, prints(&text.replace("servers.a", "servers.b"), "first-token"));
    assert_ne!(print, prints(&text.replace("fast", "slow"), "first-token"));
    assert_ne!(print, prints(&format!("{text}\nargs = [\"b\"]"), "first-token"));
}

#[test]
fn no_secret_is_shown_when_a_configuration_is_printed() {
    let file = parse(
        "[mcp_servers.a]\ncommand = \"x\"\nenv = { T = \"${TOKEN}\" }\n\
         [mcp_servers.b]\nurl = \"http://h/\"\nbearer_token_env_var = \"TOKEN\"",
    );
    assert!(!format!("{file:?}").contains("s3cret"), "{file:?}");
}

#[test]
fn the_bundled_servers_file_is_valid_and_its_servers_only_read() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/mcp-servers.toml");
    let file = ServersFile::load(path.as_ref(), &|name| std::env::var(name).ok()).unwrap();
    assert!(file.warnings.is_empty());
    for server in &file.servers {
        assert_eq!(server.tools.default_effect, Effect::ReadOnly, "{}", server.name);
        let Transport::Stdio { command, .. } = &server.transport else { panic!("{}", server.name) };
        assert_eq!(command, "perihelion");
    }
}
