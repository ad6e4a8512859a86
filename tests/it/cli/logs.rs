//! Log lines, and where in a trace they belong.

use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Rule};
use serde_json::Value;

use super::world::{World, first, reading};

/// S1.12: a person pastes the trace id of a line into any viewer.
#[tokio::test]
async fn each_json_line_of_a_run_names_the_trace_and_the_span_that_the_viewers_have() {
    let refused = Rule::new(Reply::status(503, "busy")).role(Role::Agent).nth(1);
    let mut world = World::new(first(refused, reading())).await;
    world.set("PERIHELION_LOG_FORMAT", "json");
    world.set("PERIHELION_LOG", "perihelion=debug,info");
    world.set("PERIHELION_MODELS_MAX_RETRIES", "1");
    let run = world.run(&["run", "What is it?", "--thread", "t", "-q"]).await.code(0);
    let trace = world.run(&["trace", "t", "--json"]).await.code(0).json();
    let lines: Vec<Value> =
        run.stderr.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let again = "asking the model again";
    let warned = lines.iter().find(|line| line["fields"]["message"] == again).unwrap();
    assert_eq!(warned["trace_id"], trace["trace_id"]);
    assert_eq!((&warned["thread"], &warned["run"]), (&trace["thread_id"], &Value::from(1)));
    let spans = trace["spans"].as_array().unwrap();
    let agent = spans.iter().find(|span| span["name"] == "invoke_agent mcp_agent_files").unwrap();
    assert_eq!(warned["span_id"], agent["span_id"], "it was the agent that asked");
    for line in lines.iter().filter(|line| !line["trace_id"].is_null()) {
        assert_eq!(line["trace_id"], trace["trace_id"]);
        assert!(spans.iter().any(|span| span["span_id"] == line["span_id"]), "{line}");
    }

    // A resume of what was finished is a run, and a trace, of its own.
    world.set("PERIHELION_LOG_FORMAT", "text");
    let plain = world.run(&["run", "And now?", "--thread", "t", "-q"]).await.code(0);
    assert!(!plain.stderr.contains("trace_id"), "{plain:?}");
}

/// X6: text of people, models and tools is in lines for people alone, which are told apart by their target.
#[tokio::test]
async fn json_lines_for_people_have_their_own_target_and_logs_have_no_text_of_a_run() {
    let texts = ["What is it?", "The answer is 42", "a.txt says 42"];
    let has_text = |line: &&Value| texts.iter().any(|text| line.to_string().contains(text));
    for quiet in [false, true] {
        let refused = Rule::new(Reply::status(503, "busy")).role(Role::Agent).nth(1);
        let mut world = World::new(first(refused, reading())).await;
        world.set("PERIHELION_LOG_FORMAT", "json");
        world.set("PERIHELION_LOG", "perihelion=trace");
        world.set("PERIHELION_MODELS_MAX_RETRIES", "1");
        let args = ["run", "What is it?", "-q"];
        let run = world.run(if quiet { &args } else { &args[..2] }).await.code(0);
        let lines: Vec<Value> =
            run.stderr.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let is_for_people = |line: &&Value| line["target"] == "perihelion::terminal";
        let (shown, logged): (Vec<&Value>, Vec<&Value>) = lines.iter().partition(is_for_people);
        assert_eq!(shown.iter().any(has_text), !quiet, "{shown:?}");
        assert!(!logged.iter().any(has_text), "{logged:?}");
        assert!(shown.iter().all(|line| line["trace_id"].is_null()), "{shown:?}");
        assert!(logged.iter().any(|line| !line["trace_id"].is_null()), "{logged:?}");
    }
}

/// S1.12: also what goes wrong before the settings are read.
#[tokio::test]
async fn with_json_logs_an_early_error_is_one_line_of_json() {
    let mut world = World::new(reading()).await;
    world.set("PERIHELION_LOG_FORMAT", "json");
    let message = |stderr: &str| {
        let lines: Vec<Value> =
            stderr.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let [line] = lines.as_slice() else { panic!("{stderr}") };
        assert_eq!(line["level"], "ERROR");
        line["fields"]["message"].as_str().unwrap().to_owned()
    };
    let unknown = world.run(&["run", "--no-such-option"]).await.code(2);
    assert!(message(&unknown.stderr).starts_with("unexpected argument '--no-such-option'"));
    world.write("perihelion.toml", "[limits]\nmax_step = 3\n");
    let broken = world.run(&["threads", "list"]).await.code(2);
    assert!(message(&broken.stderr).contains("did you mean `max_steps`?"));
}

/// X6: what a server writes, or has in its address, is told in our words and cannot pass for them.
#[tokio::test]
async fn server_output_forges_no_log_line_and_addresses_are_logged_without_keys() {
    let mut world = World::new(reading()).await;
    world.set("SEARCH_KEY", "key-of-the-operator");
    let stderr = r"printf 'a\033]0;t\007\033[2K\342\200\256b\nWARN forged: yes\n' >&2; exit 1";
    world.write(
        "mcp-servers.toml",
        &format!(
            "[mcp_servers.loud]\ncommand = \"sh\"\nargs = [\"-c\", {stderr:?}]\nbreaker_failures = 1\n\
             [mcp_servers.web]\nurl = \"http://127.0.0.1:1/mcp?key=${{SEARCH_KEY}}\"\n"
        ),
    );
    let list = world.run(&["agents"]).await;
    assert!(!list.stderr.contains("key-of-the-operator"), "{list:?}");
    assert!(!list.stderr.contains("rmcp"), "{list:?}");
    assert!(list.stderr.contains(r"a\u{1b}]0;t\u{7}\u{1b}[2K\u{202e}b\nWARN forged"), "{list:?}");
    let odd = |letter: char| letter.is_control() && letter != '\n' || letter == '\u{202e}';
    assert!(!list.stderr.contains(odd), "{list:?}");
    assert!(!list.stderr.lines().any(|line| line.starts_with("WARN forged")), "{list:?}");
}
