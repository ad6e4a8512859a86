//! Several models on one data set, each at an endpoint of its own: figures, judge, store, and data sets from threads.

use perihelion::config::{Overrides, Settings};
use perihelion::ids::ThreadId;
use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Rule, Script, ScriptedModel, ScriptedServer};
use perihelion::runtime::open_rows;
use perihelion::service::kept::{ItemFilter, Kept};
use perihelion_database::{Database, query};
use perihelion_test_database::TestDatabase;
use serde_json::{Value, json};

use crate::{Shelf, rules, script, words};

const DATA: &str = r#"{"input": "What is the answer?", "expected": "42", "tags": ["sums"]}
{"input": "Which answer is it?"}
"#;

const PRICES: &str = "[models.prices.good]\ninput_per_mtok = 1000.0\noutput_per_mtok = 1000.0\n";

/// Runs a test on both stores, with a shelf whose model is `good`.
async fn on_both(test: impl AsyncFn(Shelf)) {
    let mut databases = vec![("sqlite:threads.db".to_owned(), None)];
    databases.extend(TestDatabase::make().await.map(|made| (made.url.clone(), Some(made))));
    for (url, _made) in databases {
        let mut shelf = Shelf::open("It is 42 [1].", true).await;
        shelf.database = url;
        std::fs::write(shelf.path("set.jsonl"), DATA).unwrap();
        std::fs::write(shelf.path("perihelion.toml"), PRICES).unwrap();
        test(shelf).await;
    }
}

async fn start(script: Script) -> ScriptedServer {
    ScriptedModel::start(script).await.unwrap()
}

/// A model whose first decision in a thread is no JSON, and whose answer is wrong.
async fn bad() -> ScriptedServer {
    let broken = Rule::new(Reply::text("I choose the shelf.")).role(Role::Supervisor).nth(1);
    start(rules(Script::new().rule(broken), "It is 41.", true)).await
}

/// A judge that prefers what contains a text, or else the first answer.
async fn judge(preferred: &'static str) -> ScriptedServer {
    let verdict = move |request: &perihelion::llm::scripted::RecordedRequest| {
        let text = request.last_text();
        let second = text.split_once("<second>").map_or("", |(_, second)| second);
        let better = if second.contains(preferred) { "second" } else { "first" };
        let criterion = json!({ "passed": false, "reason": "it is another number" });
        Some(match request.stage.as_deref() {
            Some("judge_pair") => Reply::json(json!({ "reason": "why", "better": better })),
            _ => Reply::json(criterion),
        })
    };
    start(Script::new().respond_with(verdict)).await
}

fn address(shelf: &Shelf) -> String {
    match shelf.database.strip_prefix("sqlite:") {
        Some(file) => format!("sqlite:{}", shelf.path(file).display()),
        None => shelf.database.clone(),
    }
}

async fn rows(shelf: &Shelf) -> Kept {
    let overrides = Overrides { database: Some(address(shelf)), ..Overrides::default() };
    open_rows(&Settings::load(overrides, None, &|_| None).unwrap()).await.unwrap()
}

/// X9
#[tokio::test]
async fn models_are_compared_by_passes_cost_latency_repairs_and_a_judge() {
    on_both(async |shelf| {
        let bad = bad().await;
        let judge = judge("42").await;
        let second = format!("bad@{}", bad.url());
        let third = format!("judge@{}", judge.url());
        let models = ["set.jsonl", "--model", "good", "--model", &second, "--judge", &third];
        let output = shelf.eval(&[&models[..], &["--json", "--seed", "7"]].concat()).await;
        assert_eq!(output.status.code(), Some(1), "{}", words(&output));
        let evaluation: Value = serde_json::from_slice(&output.stdout).unwrap();
        let [good, other] = [&evaluation["models"][0], &evaluation["models"][1]];
        assert_eq!((&good["passed"]["mean"], &other["passed"]["mean"]), (&json!(1.0), &json!(0.5)));
        assert_eq!((&good["repairs"], &other["repairs"]), (&json!(0), &json!(2)), "{other}");
        assert_eq!(other["calls"], bad.requests().len(), "each call is in the journal");
        assert!(good["cost_usd"]["low"].as_f64().unwrap() > 0.0, "{good}");
        assert_eq!(other["cost_usd"]["mean"], 0.0, "it has no price");
        let p50 = other["latency_p50_ms"].as_f64().unwrap();
        assert!(other["latency_p95_ms"].as_f64().unwrap() >= p50, "{other}");
        let beside = &other["beside_first"];
        assert_eq!(
            (&beside["lost"], &beside["score"]["mean"]),
            (&json!(2), &json!(0.0)),
            "{beside}"
        );
        assert_eq!(good["beside_first"], Value::Null);
        // It judged two answers of the second model alone, and then both pairs in both orders.
        let judging = |one: &Value| one["judging"]["calls"].as_u64().unwrap();
        assert_eq!(judging(good) + judging(other), judge.requests().len() as u64);
        assert!(judging(other) >= 4 && judging(good) < judging(other), "{evaluation}");
        assert!(other["judging"]["tokens"].as_u64().unwrap() > 0, "{other}");
        let run = &evaluation["records"][1]["cases"][0]["runs"][0];
        assert_eq!(run["findings"], json!(["not as expected: it is another number"]));

        // Each pair was shown in both orders.
        let asked: Vec<String> = judge
            .requests()
            .iter()
            .filter(|request| request.stage.as_deref() == Some("judge_pair"))
            .map(|request| request.last_text().to_owned())
            .collect();
        let first_is = |answer: &str| {
            asked.iter().filter(|text| text.contains(&format!("<first>\n{answer}"))).count()
        };
        assert_eq!((asked.len(), first_is("It is 42"), first_is("It is 41")), (4, 2, 2));

        // The figures are stored, and the runs without their answers.
        let kept = rows(&shelf).await;
        let stored = async |name: &str| {
            let prefix = vec![name.to_owned()];
            let filter = ItemFilter { prefix, limit: 9, ..ItemFilter::default() };
            kept.items(&filter, perihelion::clock::now()).await.unwrap()
        };
        let figures = stored("evaluations").await;
        let records = stored("evaluation_records").await;
        assert_eq!((figures.len(), records.len()), (1, 1));
        assert_eq!(figures[0].key, records[0].key);
        assert_eq!(figures[0].value["models"], evaluation["models"]);
        assert_eq!(figures[0].value["seed"], 7);
        let runs = &records[0].value["records"][0]["cases"][0]["runs"];
        assert_eq!((&runs[0]["passed"], &runs[0]["answer"]), (&json!(true), &Value::Null));
        // Lists of conversations can leave the threads out.
        let thread = runs[0]["thread_id"].as_str().unwrap().parse().unwrap();
        let noted = kept.thread_meta(thread).await.unwrap().metadata;
        assert_eq!(noted, json!({ "graph_id": "swarm", "evaluation": true }));
        kept.close().await;

        let output = shelf.eval(&[&models[..], &["--tag", "sums"]].concat()).await;
        for part in [
            "MODEL",
            "JUDGE TOKENS",
            "good",
            "0 won, 0 tied, 1 lost",
            "100 % (21 to 100)",
            "seed 1",
        ] {
            assert!(words(&output).contains(part), "{part}: {}", words(&output));
        }
    })
    .await;
}

#[tokio::test]
async fn a_judge_that_prefers_a_position_decides_nothing() {
    let shelf = Shelf::open("It is 42 [1].", true).await;
    std::fs::write(shelf.path("set.jsonl"), DATA).unwrap();
    let other = start(script("It is 42, I think [1].", true)).await;
    let judge = judge("in neither").await;
    let second = format!("other@{}", other.url());
    let third = format!("judge@{}", judge.url());
    let given = ["set.jsonl", "--model", "m", "--model", &second, "--judge", &third, "--json"];
    let output = shelf.eval(&given).await;
    let evaluation: Value = serde_json::from_slice(&output.stdout).unwrap();
    let beside = &evaluation["models"][1]["beside_first"];
    assert_eq!((&beside["tied"], &beside["score"]["mean"]), (&json!(2), &json!(0.5)), "{beside}");
}

#[tokio::test]
async fn a_model_for_one_role_leaves_the_others_as_they_are() {
    let shelf = Shelf::open("It is 42 [1].", true).await;
    std::fs::write(shelf.path("set.jsonl"), DATA).unwrap();
    let other = start(script("It is 42, I think [1].", true)).await;
    let second = format!("other@{}", other.url());
    let given = ["set.jsonl", "--role", "qa", "--model", "m", "--model", &second, "--json"];
    let output = shelf.eval(&given).await;
    assert_eq!(output.status.code(), Some(0), "{}", words(&output));
    let evaluation: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(evaluation["role"], "qa");
    assert_eq!(evaluation["models"][0]["calls"], 2, "the calls of the role alone are measured");
    let roles: Vec<String> = other.requests().into_iter().map(|request| request.role).collect();
    assert_eq!(roles, ["qa", "qa"]);
}

#[tokio::test]
async fn a_data_set_that_cannot_be_used_is_refused_with_line_and_field() {
    let shelf = Shelf::open("It is 42.", true).await;
    for (line, part) in [
        ("{\"input\": 7}", "line 2: field `input`: invalid type: integer `7`"),
        ("{\"input\": \"q\", \"contain\": [\"a\"]}", "line 2: field `contain`: unknown field"),
        ("{\"input\": \"q\"", "line 2: no valid JSON from column 13 on"),
        ("{\"expected\": \"a\"}", "line 2: the case has neither `question` (or `input`)"),
    ] {
        std::fs::write(shelf.path("set.jsonl"), format!("{{\"input\": \"q\"}}\n{line}\n")).unwrap();
        let output = shelf.eval(&["set.jsonl"]).await;
        assert_eq!(output.status.code(), Some(2), "{}", words(&output));
        assert!(words(&output).contains(part), "{part}: {}", words(&output));
    }
    assert!(shelf.model.requests().is_empty());
}

/// X9: what people think of answers goes from the threads into a data set, on which models are evaluated.
#[tokio::test]
async fn rated_answers_become_a_data_set() {
    on_both(async |shelf| {
        for thread in ["rated", "other"] {
            shelf.perihelion(&["run", "What is the answer?", "--thread", thread, "-q"]).await;
        }
        shelf.perihelion(&["run", "And why?", "--thread", "rated", "-q"]).await;
        let none = shelf.perihelion(&["threads", "export", "--data"]).await;
        assert!(words(&none).contains("no rated answers"), "{}", words(&none));
        let kept = rows(&shelf).await;
        let feedback = json!({ "feedback": {
            "1": { "score": 1, "labels": ["sums"], "note": "short" }, "2": { "score": -1 },
        } });
        let (thread, _) = ThreadId::from_name("rated");
        kept.note_thread(thread.0, &feedback, None, perihelion::clock::now()).await.unwrap();
        kept.close().await;
        let written = shelf.perihelion(&["threads", "export", "--data", "-o", "rated.jsonl"]).await;
        assert!(words(&written).contains("2 cases"), "{}", words(&written));
        let lines = std::fs::read_to_string(shelf.path("rated.jsonl")).unwrap();
        let cases: Vec<Value> =
            lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(cases[0]["tags"], json!(["good", "sums"]));
        assert_eq!(
            (&cases[0]["expected"], &cases[0]["note"]),
            (&json!("It is 42 [1]."), &json!("short"))
        );
        assert_eq!(cases[0]["expect"]["agents"]["used"], json!(["mcp_agent_shelf"]));
        assert_eq!((&cases[1]["tags"], &cases[1]["expected"]), (&json!(["bad"]), &Value::Null));
        assert_eq!(cases[1]["turns"].as_array().unwrap().len(), 2);
        let same = shelf.eval(&["rated.jsonl"]).await;
        assert_eq!(same.status.code(), Some(0), "{}", words(&same));
        let all = shelf.perihelion(&["threads", "export", "other", "--data"]).await;
        assert_eq!(String::from_utf8(all.stdout).unwrap().lines().count(), 1);
        // A thread has its own tenant's ratings.
        let ask = ["run", "What is the answer?", "--thread", "theirs", "--tenant", "acme", "-q"];
        shelf.perihelion(&ask).await;
        let theirs = ThreadId::from_name_of("acme", "theirs").0;
        let kept = rows(&shelf).await;
        let good = json!({ "feedback": { "1": { "score": 1 } } });
        let now = perihelion::clock::now();
        kept.for_tenant("acme").note_thread(theirs.0, &good, None, now).await.unwrap();
        kept.close().await;
        let rated = shelf.perihelion(&["threads", "export", &theirs.to_string(), "--data"]).await;
        let case: Value = serde_json::from_slice(&rated.stdout).unwrap();
        assert_eq!(case["tags"], json!(["good"]));
    })
    .await;
}

/// X9: a thread that cannot be read is named, and costs the others nothing.
#[tokio::test]
async fn a_rated_thread_that_cannot_be_read_is_named() {
    on_both(async |shelf| {
        let [whole, damaged] = ["whole", "damaged"].map(|name| ThreadId::from_name(name).0);
        let kept = rows(&shelf).await;
        for (name, thread) in [("whole", whole), ("damaged", damaged)] {
            shelf.perihelion(&["run", "What is the answer?", "--thread", name, "-q"]).await;
            let feedback = json!({ "feedback": { "1": { "score": 1 } } });
            kept.note_thread(thread.0, &feedback, None, perihelion::clock::now()).await.unwrap();
        }
        kept.close().await;
        let database = Database::open(&address(&shelf)).await.unwrap();
        let delete = query("DELETE FROM step WHERE thread_id = $1").bind(damaged.0);
        database.of_all_tenants().execute(&delete).await.unwrap();
        database.close().await;
        let written = shelf.perihelion(&["threads", "export", "--data", "-o", "all.jsonl"]).await;
        assert_eq!(written.status.code(), Some(0), "{}", words(&written));
        for part in ["wrote 1 case to", "a rated thread is not in the data set"] {
            assert!(words(&written).contains(part), "{part}: {}", words(&written));
        }
        assert!(words(&written).contains(&damaged.to_string()), "{}", words(&written));
        let lines = std::fs::read_to_string(shelf.path("all.jsonl")).unwrap();
        assert!(lines.contains(&whole.to_string()), "{lines}");
    })
    .await;
}
