//! Teams over HTTP: a process that runs already designs them, and its next run routes to them.

use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Rule};
use serde_json::{Value, json};

use crate::office::{BOTH, Kept, Office, design, working};
use crate::world::first;

fn client() -> reqwest::Client {
    perihelion::config::tls::install();
    reqwest::Client::builder().no_proxy().build().unwrap()
}

/// S1.10
#[tokio::test(flavor = "multi_thread")]
async fn a_team_is_designed_over_http_and_the_next_run_of_the_same_process_routes_to_it() {
    for kept in BOTH {
        let architect = Rule::new(Reply::json(design())).role(Role::Architect);
        let office = Office::open(kept, first(architect, working())).await;
        let (mut server, url) = office.serve().await;
        let http = client();
        let post = async |path: &str, body: Value| {
            let asked = http.post(format!("{url}{path}")).body(body.to_string());
            let answer = asked.header("content-type", "application/json").send().await.unwrap();
            let code = answer.status().as_u16();
            (code, serde_json::from_str::<Value>(&answer.text().await.unwrap()).unwrap())
        };
        let get = async |path: &str| {
            let answer = http.get(format!("{url}{path}")).send().await.unwrap();
            serde_json::from_str::<Value>(&answer.text().await.unwrap()).unwrap()
        };

        let (code, shown) = post("/v1/teams", json!({ "goal": "Find answers" })).await;
        assert_eq!((code, &shown["version"]), (200, &Value::Null), "{shown:#}");
        assert_eq!(get("/v1/teams").await, json!([]), "it is shown, not kept");
        let (code, kept) = post("/v1/teams", json!({ "design": shown["design"] })).await;
        assert_eq!((code, &kept["version"]), (200, &json!(1)), "{kept:#}");
        assert_eq!(get("/v1/teams/research").await["design"], design());
        let (code, refused) = post("/v1/teams", json!({ "design": { "name": "x" } })).await;
        assert_eq!(code, 422, "{refused:#}");

        let input =
            json!({ "assistant_id": "swarm", "input": { "question": "What is the answer?" } });
        let (code, state) = post("/runs/wait", input).await;
        assert_eq!((code, &state["answer"]), (200, &json!("It is 42 [1].")), "{state:#}");
        assert_eq!(office.notes(), 1);

        // The team is an assistant by itself.
        let (_, found) = post("/assistants/search", json!({ "graph_id": "team_research" })).await;
        let [team] = found.as_array().unwrap().as_slice() else { panic!("{found:#}") };
        assert_eq!((&team["name"], &team["version"]), (&json!("team_research"), &json!(1)));
        let (_, all) = post("/assistants/search", json!({})).await;
        let graphs: Vec<_> = all.as_array().unwrap().iter().map(|one| &one["graph_id"]).collect();
        assert_eq!(graphs, ["swarm", "team_research"]);
        for id in [&team["assistant_id"], &json!("team_research")] {
            let before = office.world.asked(Role::Supervisor);
            let input =
                json!({ "assistant_id": id, "input": { "question": "What is the answer?" } });
            let (code, state) = post("/runs/wait", input).await;
            assert_eq!((code, &state["answer"]), (200, &json!("It is 42 [1].")), "{state:#}");
            assert_eq!(office.world.asked(Role::Supervisor) - before, 3, "the team's own alone");
        }
        let drawn = get("/assistants/team_research/graph").await.to_string();
        assert!(drawn.contains("keeper") && !drawn.contains("mcp_agent_files"), "{drawn}");

        let mut edited = design();
        edited["description"] = json!("Finds all answers");
        assert_eq!(post("/v1/teams", json!({ "design": edited })).await.1["version"], 2);
        assert_eq!(get("/v1/teams/research").await["design"], edited);
        let first = get("/v1/teams/research?version=1").await;
        assert_eq!((&first["version"], &first["design"]), (&json!(1), &design()));
        let missing = http.get(format!("{url}/v1/teams/research?version=3")).send().await.unwrap();
        assert_eq!(missing.status(), 404);

        let gone = http.delete(format!("{url}/v1/teams/research")).send().await.unwrap();
        assert_eq!(gone.status(), 204);
        assert_eq!(get("/v1/teams").await, json!([]));
        server.kill().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_designs_no_team_is_a_bad_gateway() {
    let words = Rule::new(Reply::text("I would rather not.")).role(Role::Architect);
    let office = Office::open(Kept::Sqlite, first(words, working())).await;
    let (mut server, url) = office.serve().await;
    let http = client();
    let asked = http.post(format!("{url}/v1/teams")).header("content-type", "application/json");
    let answer = asked.body(json!({ "goal": "Find answers" }).to_string()).send().await.unwrap();
    let code = answer.status().as_u16();
    let why = answer.text().await.unwrap();
    assert!(code == 502 && why.contains("architect"), "{code} {why}");
    server.kill().await.unwrap();
}
