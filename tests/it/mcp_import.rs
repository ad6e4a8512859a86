//! Servers that other programs are configured with: taken over once, or used as they stand; and the schema.

use std::path::Path;

use perihelion::mcp::{ApprovalMode, Format, ServersFile, Transport, import};

const CLAUDE: &str = r#"{
  "mcpServers": {
    "github": {
      "type": "stdio", "command": "npx", "args": ["-y", "@example/github", "--token=ghp_0123456789"],
      "env": { "GITHUB_TOKEN": "ghp_abcdefghij", "MODE": "fast", "HOST": "${GH_HOST:-github.com}" },
      "alwaysAllow": ["x"]
    },
    "My Docs": {
      "type": "http", "url": "https://example.org/mcp",
      "headers": { "Authorization": "Bearer abcdefghijkl", "X-Region": "eu" }, "disabled": true
    }
  }
}"#;

const VS_CODE: &str = r#"{
  // kept by hand
  "inputs": [{ "type": "promptString", "id": "api-key", "password": true }],
  "servers": {
    "search": {
      "type": "http", "url": "https://example.org/${env:REGION}",
      "headers": { "X-Key": "${input:api-key}" },
    },
    "files": { "command": "npx", "args": ["files", "${workspaceFolder}/docs"] },
  },
}"#;

const CODEX: &str = "model = \"o5\"\n\n# the documents\n[mcp_servers.docs]\ncommand = \"npx\" # with node\n\
    env = { DOCS_API_KEY = \"abcdefghijkl\" }\n[mcp_servers.docs.tools.search]\n\
    # asks first\napproval_mode = \"prompt\"\n";

const OURS: &str = "# mine\n[mcp_servers.own]\ncommand = \"x\" # stays\n";

fn taken(path: &str, text: &str) -> perihelion::mcp::Imported {
    import((Path::new("mcp-servers.toml"), OURS), (Path::new(path), text), None).unwrap()
}

/// Checks that the file that an import makes is valid, with the variables set.
fn parsed(file: &str) -> ServersFile {
    let env = |name: &str| Some(format!("value-of-{name}"));
    ServersFile::parse("mcp-servers.toml".as_ref(), file, &env).unwrap()
}

fn secrets(imported: &perihelion::mcp::Imported) -> Vec<(&str, &str)> {
    imported.secrets.iter().map(|one| (one.key.as_str(), one.variable.as_str())).collect()
}

/// S3.12
#[test]
fn servers_of_claude_become_tables_and_their_secrets_references() {
    let imported = taken(".mcp.json", CLAUDE);
    assert!(imported.file.starts_with(OURS), "{}", imported.file);
    for secret in ["ghp_", "abcdefghijkl"] {
        assert!(!imported.file.contains(secret), "{}", imported.file);
    }
    assert_eq!(
        secrets(&imported),
        [
            ("env.GITHUB_TOKEN", "GITHUB_TOKEN"),
            ("args", "GITHUB_TOKEN_2"),
            ("http_headers.Authorization", "MY_DOCS_AUTHORIZATION"),
        ]
    );
    let notes: Vec<_> = imported.notes.iter().map(|(_, note)| note.as_str()).collect();
    assert_eq!(
        notes,
        [
            "this key was not taken over: alwaysAllow",
            "it is called My-Docs here, and was called: My Docs"
        ]
    );
    let file = parsed(&imported.file);
    assert_eq!(imported.servers, ["github", "My-Docs"]);
    let Transport::Stdio { args, env, .. } = &file.get("github").unwrap().transport else {
        panic!()
    };
    assert_eq!(args[2], "--token=value-of-GITHUB_TOKEN_2");
    assert_eq!(env["GITHUB_TOKEN"], "value-of-GITHUB_TOKEN");
    assert_eq!((&*env["MODE"], &*env["HOST"]), ("fast", "value-of-GH_HOST"));
    assert!(!file.get("My-Docs").unwrap().enabled);
    assert!(imported.tables.contains("Authorization = \"Bearer ${MY_DOCS_AUTHORIZATION}\""));
    assert!(file.warnings.is_empty(), "{:?}", file.warnings);
}

const LEAKY: &str = r#"{"mcpServers": {
  "gh docker": {"command": "docker", "args": ["run", "-e", "GITHUB_PAT=ghp_0123456789", "--header",
    "Authorization: Bearer abcdefghijkl", "-e", "MODE=stdio", "img"],
    "env": {"JIRA_PAT": "abcdefghijkl", "STRIPE": "rk_live_0123456789", "REMOTE": "https://h/x?token=abcdefghijkl&r=eu"}},
  "gh.docker": {"type": "http", "url": "https://example.org/mcp?region=eu&api_key=abcdefghijkl",
    "headers": {"Cookie": "sid=abcdefghijkl; theme=dark", "X-Forward": "Basic YWJjZGVmZ2hpamts"}}
}}"#;

#[test]
fn an_import_copies_no_secret_and_loses_no_server() {
    let imported = taken(".mcp.json", LEAKY);
    for secret in ["ghp_", "abcdefghijkl", "rk_live_", "YWJj"] {
        assert!(!imported.file.contains(secret), "{}", imported.file);
    }
    assert_eq!(imported.servers, ["gh-docker", "gh-docker-2"]);
    assert!(
        imported
            .notes
            .iter()
            .any(|(server, note)| server == "gh-docker-2" && note.contains("another"))
    );
    let file = parsed(&imported.file);
    let Transport::Stdio { args, env, .. } = &file.get("gh-docker").unwrap().transport else {
        panic!()
    };
    let pat = "GITHUB_PAT=value-of-GH_DOCKER_GITHUB_PAT";
    assert_eq!((&*args[2], &*args[6]), (pat, "MODE=stdio"));
    assert_eq!(args[4], "Authorization: Bearer value-of-GH_DOCKER_AUTHORIZATION");
    assert_eq!(env["REMOTE"], "https://h/x?token=value-of-GH_DOCKER_TOKEN&r=eu");
    let Transport::Http { url, headers, .. } = &file.get("gh-docker-2").unwrap().transport else {
        panic!()
    };
    assert_eq!(url, "https://example.org/mcp?region=eu&api_key=value-of-GH_DOCKER_2_API_KEY");
    assert_eq!(headers["X-Forward"], "Basic value-of-GH_DOCKER_2_X_FORWARD");
    assert!(file.warnings.is_empty(), "{:?}", file.warnings);
}

/// The name of one server is in the variable of another one.
#[test]
fn different_secrets_get_different_variables_and_equal_secrets_share_one() {
    let servers = r#"{"mcpServers": {
      "github": {"command": "x", "env": {"GITHUB_TOKEN": "ghp_first"}},
      "git": {"command": "x", "env": {"GITHUB_TOKEN": "ghp_second"}, "args": ["--github-token=ghp_first"]}}}"#;
    let imported = taken(".mcp.json", servers);
    let variables: Vec<&str> = secrets(&imported).iter().map(|(_, variable)| *variable).collect();
    assert_eq!(variables, ["GITHUB_TOKEN", "GITHUB_TOKEN_2", "GITHUB_TOKEN"]);
    let file = parsed(&imported.file);
    let Transport::Stdio { args, env, .. } = &file.get("git").unwrap().transport else { panic!() };
    assert_eq!(env["GITHUB_TOKEN"], "value-of-GITHUB_TOKEN_2");
    assert_eq!(args[0], "--github-token=value-of-GITHUB_TOKEN");
}

#[test]
fn servers_of_vs_code_are_imported_with_their_inputs_as_variables() {
    let imported = taken("/srv/project/.vscode/mcp.json", VS_CODE);
    let file = parsed(&imported.file);
    let Transport::Http { url, headers, .. } = &file.get("search").unwrap().transport else {
        panic!()
    };
    assert_eq!(
        (&**url, &*headers["X-Key"]),
        ("https://example.org/value-of-REGION", "value-of-API_KEY")
    );
    let Transport::Stdio { args, .. } = &file.get("files").unwrap().transport else { panic!() };
    assert_eq!(args[1], "/srv/project/docs");
}

#[test]
fn tables_of_codex_keep_their_comments_and_leave_the_rest_behind() {
    let imported = taken("config.toml", CODEX);
    assert_eq!(
        imported.tables,
        "# the documents\n[mcp_servers.docs]\ncommand = \"npx\" # with node\n\
         env = { DOCS_API_KEY = \"${DOCS_API_KEY}\" }\n[mcp_servers.docs.tools.search]\n\
         # asks first\napproval_mode = \"prompt\"\n"
    );
    assert_eq!(imported.file, format!("{OURS}\n{}", imported.tables));
    let tools = &parsed(&imported.file).get("docs").unwrap().tools.clone();
    assert_eq!(tools.by_name["search"].approval_mode, Some(ApprovalMode::Prompt));
}

#[test]
fn clashing_and_unusable_entries_are_refused_with_their_position() {
    let refused = |path: &str, text: &str, format| {
        let ours = (Path::new("mcp-servers.toml"), OURS);
        import(ours, (Path::new(path), text), format).unwrap_err().to_string()
    };
    let own = r#"{"mcpServers": {"own": {"command": "y"}}}"#;
    let error = refused(".mcp.json", own, None);
    assert!(error.starts_with("mcp-servers.toml: mcp_servers.own: there is a server"), "{error}");
    let old = r#"{"mcpServers": {"a": {"type": "sse", "url": "http://h/"}}}"#;
    let left_out = taken(".mcp.json", old);
    assert!(left_out.servers.is_empty());
    let note = &left_out.notes[0].1;
    assert!(
        note.contains("the old HTTP+SSE transport") && note.ends_with("mcpServers.a.type"),
        "{note}"
    );
    let error = refused("x.json", "{\n  \"mcpServers\": {,}\n}", Some(Format::Claude));
    assert!(error.starts_with("x.json:2:"), "{error}");
    assert!(refused("x.json", "{}", None).contains("pass --format"));
    let wrong = "[mcp_servers.a]\ncomand = \"x\"\n";
    let error = refused("config.toml", wrong, None);
    assert!(error.starts_with("config.toml:2:1:") && error.ends_with("mean `command`?"), "{error}");
}

/// S3.12: a plug-in of another program is a plug-in here, without copying anything.
#[test]
fn an_imported_file_of_another_program_is_used_unchanged() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mcp-servers.toml");
    std::fs::write(
        &path,
        format!("import = [\".mcp.json\", \"mcp.json\", \"config.toml\"]\n{OURS}"),
    )
    .unwrap();
    std::fs::write(directory.path().join(".mcp.json"), CLAUDE).unwrap();
    std::fs::write(directory.path().join("mcp.json"), VS_CODE).unwrap();
    std::fs::write(directory.path().join("config.toml"), CODEX).unwrap();
    let env = |name: &str| matches!(name, "API_KEY" | "REGION").then(|| "eu-value".to_owned());
    let file = ServersFile::load(&path, &env).unwrap();
    let names: Vec<_> = file.servers.iter().map(|server| server.name.as_str()).collect();
    assert_eq!(names, ["own", "github", "My-Docs", "search", "files", "docs"]);
    assert_eq!(file.sources.len(), 4);
    let Transport::Stdio { args, .. } = &file.get("files").unwrap().transport else { panic!() };
    assert_eq!(args[1], directory.path().join("docs").display().to_string());
    assert!(!format!("{file:?}").contains("ghp_"));

    std::fs::write(&path, "import = [\".mcp.json\"]\n[mcp_servers.github]\ncommand = \"x\"\n")
        .unwrap();
    let error = ServersFile::load(&path, &env).unwrap_err().to_string();
    assert!(
        error.contains(".mcp.json: mcpServers.github: there is a server of this name"),
        "{error}"
    );
    std::fs::write(&path, "import = [\"none.json\"]\n").unwrap();
    assert!(ServersFile::load(&path, &env).unwrap_err().to_string().contains("none.json"));
}

/// The published schema is that of the types that read the file.
#[test]
fn the_published_schema_is_the_real_one() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/mcp-servers.schema.json");
    let text = perihelion::cli::servers_schema().unwrap();
    if std::env::var("UPDATE_SCHEMA").is_ok() {
        std::fs::write(path, &text).unwrap();
    }
    let published = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        published == text,
        "write it again: perihelion agents schema > docs/mcp-servers.schema.json"
    );
    let schema: serde_json::Value = serde_json::from_str(&text).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let valid = |text: &str| {
        validator
            .is_valid(&serde_json::to_value(toml::from_str::<toml::Value>(text).unwrap()).unwrap())
    };
    let ours =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/mcp-servers.toml")).unwrap();
    assert!(ours.starts_with("#:schema "), "editors find the schema");
    assert!(
        valid(&ours)
            && valid(OURS)
            && valid("[mcp_servers.a]\nurl = \"http://h/\"\nrate_limit = \"5/s\"")
    );
    assert!(!valid("[mcp_servers.a]\ncomand = \"x\""));
    assert!(!valid("[mcp_servers.a]\ncommand = \"x\"\ntools.t.effect = \"readonly\""));
}
