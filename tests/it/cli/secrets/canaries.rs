//! The words that are looked for, where they are put, and how they are found.

use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Rule, Script};
use serde_json::json;

use super::super::world::KEY;

/// Secrets as an operator configures them: in a server's environment, its headers and token, in the collector's
/// headers, in addresses, and in variables that are none of the program's business. [`KEY`] is the model's.
pub const SECRETS: [&str; 9] = [
    "canary-server-environment",
    "canary-inherited-environment",
    "canary-unrelated-environment",
    "canary-bearer-token",
    "canary-http-header",
    "canary-collector-header",
    "canary-database-password",
    "canary-url-password",
    KEY,
];

pub const KEY_AT_REST: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

/// What the person, the models and the tools say in one run.
pub const STATED: [&str; 13] = [
    "canary-said-question",
    "canary-said-thought",
    "canary-said-plan",
    "canary-said-note",
    "canary-said-argument",
    "canary-said-result",
    "canary-said-failure",
    "canary-said-unsent",
    "canary-said-output",
    "canary-said-refined",
    "canary-said-feedback",
    "canary-said-answer",
    "canary-said-context",
];

/// Two agents, one over stdio and one over HTTP, and a server that is not there.
pub fn servers(web: &str) -> String {
    format!(
        r#"
[mcp_servers.notes]
command = "perihelion"
args = ["mcp", "notes", "--file", "notes.jsonl"]
env = {{ NOTES_TOKEN = "canary-server-environment" }}
env_vars = ["INHERITED_TOKEN"]

[mcp_servers.web]
url = "{web}"
bearer_token_env_var = "BEARER_TOKEN"
http_headers = {{ X-Token = "canary-http-header" }}
default_tools_effect = "read_only"

[mcp_servers.away]
url = "http://127.0.0.1:9/mcp"
bearer_token_env_var = "BEARER_TOKEN"
http_headers = {{ X-Token = "canary-http-header" }}
"#
    )
}

/// Calls that succeed, that fail and that cannot be made, and a verdict with everything in it.
pub fn script() -> Script {
    let decide = |agents: &[&str]| {
        Reply::json(json!({
            "thought_process": "canary-said-thought", "plan": ["canary-said-plan"],
            "selected_agents": agents, "tasks": [], "clarification": null,
        }))
    };
    let verdict = json!({
        "status": "FIXED", "refined_output": "canary-said-refined", "feedback": "canary-said-feedback",
    });
    let agent = |name: &str, results: usize, reply: Reply| {
        Rule::new(reply).role(Role::Agent).agent(name).after_tool_results(results)
    };
    let note = Reply::call("append_note", json!({ "text": "canary-said-note" }));
    let look = Reply::call("look", json!({ "what": "canary-said-argument" }));
    let fail = Reply::call("fail", json!({}));
    let unsent = Reply::call("not_there", json!({ "x": "canary-said-unsent" }));
    Script::new()
        .rule(
            Rule::new(decide(&["mcp_agent_notes", "mcp_agent_web"])).role(Role::Supervisor).nth(1),
        )
        .rule(Rule::new(decide(&["qa"])).role(Role::Supervisor))
        .rule(agent("mcp_agent_notes", 0, note))
        .rule(agent("mcp_agent_web", 0, look))
        .rule(agent("mcp_agent_web", 1, fail))
        .rule(agent("mcp_agent_web", 2, unsent))
        .rule(Rule::new(Reply::text("canary-said-output")).role(Role::Agent))
        .rule(Rule::new(Reply::json(verdict)).role(Role::Reflector))
        .rule(Rule::new(Reply::text("canary-said-answer")).role(Role::Qa))
}

/// Returns the canaries that stand in some bytes: as they are, as hexadecimal digits, or in Base64.
pub fn found(bytes: &[u8], canaries: &[&'static str]) -> Vec<&'static str> {
    // What is looked for is ASCII, which stands in the text as it does in the bytes.
    let text = String::from_utf8_lossy(bytes);
    let leaked = |canary: &&&str| {
        let hex: String = canary.bytes().map(|byte| format!("{byte:02x}")).collect();
        text.contains(**canary)
            || text.contains(&hex)
            || base64(canary).iter().any(|one| text.contains(one))
    };
    canaries.iter().filter(leaked).copied().collect()
}

/// Returns what of a text's Base64 does not depend on its neighbours, for each of its three places.
fn base64(text: &str) -> [String; 3] {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    [0, 1, 2].map(|before| {
        let padded: Vec<u8> = std::iter::repeat_n(0, before).chain(text.bytes()).collect();
        let groups = padded.chunks_exact(3).map(|group| {
            let bits = u32::from_be_bytes([0, group[0], group[1], group[2]]);
            [18, 12, 6, 0].map(|shift| char::from(DIGITS[(bits >> shift & 63) as usize]))
        });
        groups.skip(usize::from(before > 0)).flatten().collect()
    })
}

#[test]
fn a_canary_is_found_in_every_spelling() {
    let spelt = [
        "the canary-said-note",
        "63616e6172792d736169642d6e6f7465",
        "dGhlIGNhbmFyeS1zYWlkLW5vdGU=",
    ];
    for text in spelt {
        assert_eq!(found(text.as_bytes(), &STATED), ["canary-said-note"], "{text}");
    }
    assert_eq!(found(b"canary-said-not", &STATED), Vec::<&str>::new());
}
