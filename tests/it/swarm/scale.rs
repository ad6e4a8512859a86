//! Many servers and many tools: a hundred cached ones in a small menu, agents that are searched for, tools that are (S1.09).

use perihelion::llm::Role;
use perihelion::llm::scripted::{RecordedRequest, Reply, Script};
use perihelion::mcp::PoolOptions;
use perihelion::runtime::Runtime;
use perihelion::swarm::Request;
use serde_json::{Value, json};

use super::{Asked, Room, assert_done, assert_nothing_worked, decide, finish, script, task};
use crate::support::catalogue::{self, SERVERS};

/// What a supervisor's whole request may cost.
const TOKENS: usize = 4_000;

/// Bounds the tokens of a whole request from above, JSON schema and all: of English and JSON, as here, a token has more
/// than three bytes on average in every vocabulary in use, and above four in those of current models.
fn tokens(request: &RecordedRequest) -> usize {
    request.body.to_string().len() / 3
}

/// A room with the whole catalogue.
async fn with_catalogue(script: Script) -> Room {
    let mut room = Room::in_memory(script).await;
    room.servers = catalogue::all(room.directory.path());
    room
}

fn started(room: &Room) -> usize {
    catalogue::noted(room.directory.path(), "started").len()
}

/// Opens a runtime that keeps what the servers say of themselves, as the program does.
async fn open(room: &Room) -> Runtime {
    let cache = Some(room.directory.path().join("definitions"));
    room.open_with(PoolOptions { cache, ..PoolOptions::default() }).await
}

/// Asks in a runtime whose servers are known from an earlier one.
async fn ask(room: &Room, request: Request) -> perihelion::runtime::RunReport {
    let runtime = open(room).await;
    let report = runtime.ask(room.thread, None, request, runtime.run_options()).await.unwrap();
    room.close(runtime).await;
    report
}

fn question(text: &str) -> Request {
    Request { question: text.into(), ..Request::default() }
}

fn find(query: &str) -> Reply {
    decide(&["look around"], &["find_agent"], json!([task("f", "find_agent", query, &[])]))
}

/// How many searches a supervisor's prompt tells of.
fn searches(asked: &Asked<'_>) -> usize {
    let shown_tools = asked
        .text
        .split_once("<searches>\n")
        .and_then(|(_, rest)| rest.split_once("\n</searches>"));
    shown_tools.map_or(0, |(shown_tools, _)| shown_tools.lines().count())
}

fn menu(request: &RecordedRequest) -> Vec<String> {
    let text = request.last_text();
    let agents = text.split_once("<agents>\n").unwrap().1.split_once("\n</agents>").unwrap().0;
    agents.lines().map(|line| line[2..].split(':').next().unwrap().to_owned()).collect()
}

/// Three searches, three agents, one of them named by heart, and QA.
fn exploring() -> Script {
    let paragraph = "The parcel left the depot in the morning and is due on Thursday. ".repeat(10);
    script(move |asked| match (asked.role, searches(asked), asked.results) {
        ("supervisor", 0, _) => Some(find("air quality")),
        ("supervisor", 1, _) => Some(find("job interviews")),
        ("supervisor", 2, _) => Some(find("fuel for vehicles")),
        ("supervisor", _, 0) => {
            let tasks = json!([
                task("a", "mcp_agent_weather_asia", "Find the air quality in Asia.", &[]),
                task("b", "mcp_agent_shipping_europe", "Find the parcel.", &[]),
                task("c", "mcp_agent_payroll_america", "List the bonuses.", &[]),
            ]);
            Some(decide(&["ask three", "answer"], &[], tasks))
        }
        ("agent", ..) => Some(Reply::text(&paragraph)),
        _ => None,
    })
}

/// S1.04, S1.09, X3: nothing is started for the menu, what is kept is read once, and the run can be replayed.
#[tokio::test]
async fn a_hundred_cached_servers_make_a_small_prompt_that_grows_by_search_results() {
    let room = with_catalogue(exploring()).await;
    room.close(open(&room).await).await;
    assert_eq!(started(&room), SERVERS, "each is asked once for its tools");

    let runtime = open(&room).await;
    assert_eq!(runtime.agents().list().len(), SERVERS);
    assert_eq!(
        runtime.agents().list().iter().map(|agent| agent.server.tools.len()).sum::<usize>(),
        2_000
    );
    std::fs::remove_dir_all(room.directory.path().join("definitions")).unwrap();
    let ask = question("Where is the parcel that our European customer waits for?");
    let report = runtime.ask(room.thread, None, ask, runtime.run_options()).await.unwrap();
    room.close(runtime).await;
    assert_done(&report);
    assert_eq!(started(&room), SERVERS, "no agent called a tool");

    let requests = room.requests(Role::Supervisor);
    assert_eq!(requests.len(), 5);
    for request in &requests {
        assert!(tokens(request) < TOKENS, "{} tokens: {}", tokens(request), request.last_text());
    }
    let first = menu(&requests[0]);
    assert_eq!(first.len(), 12 + 2, "the best, qa and find_agent");
    let best = "mcp_agent_shipping_europe".to_owned();
    assert!(requests.iter().all(|request| menu(request).contains(&best)), "{first:?}");
    assert!(requests[0].contains("- find_agent: searches the 88 agents that are not shown here."));
    let last = menu(&requests[3]);
    for (round, found) in [(1, "weather_asia"), (3, "hiring_asia"), (3, "fleet_asia")] {
        let found = format!("mcp_agent_{found}");
        let now = menu(&requests[round]);
        assert!(!first.contains(&found) && now.contains(&found), "{found} {now:?}");
    }
    assert!(
        requests[3].contains("- air quality: mcp_agent_weather_"),
        "what was found first is told"
    );
    assert!(!last.iter().any(|name| name == "mcp_agent_payroll_america"), "{last:?}");
    assert!(
        menu(&requests[4]).iter().any(|name| name == "mcp_agent_payroll_america"),
        "it has worked"
    );
    assert!(
        requests[1].contains("- air quality: mcp_agent_weather_"),
        "{}",
        requests[1].last_text()
    );
    assert_eq!(report.results.len(), 3);
    assert_eq!(room.state().await.routing.searches.len(), 3);

    let replayed = room.replay().await;
    assert!(replayed.divergence.is_none(), "{replayed:?}");
}

/// S1.05: what finds nothing new counts, and there is an end to what does.
#[tokio::test]
async fn endless_searching_ends_at_qa() {
    let stuck = with_catalogue(script(|asked| match asked.role {
        "supervisor" => Some(find("telepathy")),
        _ => None,
    }))
    .await;
    let report = ask(&stuck, question("Read my mind")).await;
    assert_nothing_worked(&report);
    let requests = stuck.requests(Role::Supervisor);
    assert_eq!(requests.len(), 3, "the third in a row is one too many");
    assert!(requests[1].contains("- telepathy: no agent was found"), "{}", requests[1].last_text());
    let reason = "searches for agents found no further one, several times in a row";
    let answer = report.answer.unwrap();
    assert!(answer.contains(reason), "{answer}");
}

#[tokio::test]
async fn a_turn_has_eight_searches_and_preferred_agents_stay_in_the_catalog() {
    let fields = catalogue::FIELDS.map(|(_, about, _)| about);
    let room = with_catalogue(script(move |asked| match (asked.role, searches(asked)) {
        ("supervisor", shown_tools) if shown_tools < fields.len() => {
            Some(find(fields[shown_tools]))
        }
        _ => None,
    }))
    .await;
    let prefer_agents = vec!["legal_asia".to_owned()];
    let report = ask(&room, Request { prefer_agents, ..question("Anything at all") }).await;
    assert_nothing_worked(&report);
    let requests = room.requests(Role::Supervisor);
    assert_eq!(requests.len(), 8 + 2, "eight searches, and two that were refused");
    assert!(requests.iter().all(|request| menu(request).contains(&"mcp_agent_legal_asia".into())));
    let last = requests.last().unwrap();
    assert!(
        last.contains("find_agent may be asked 8 times for one request, 0 more"),
        "{}",
        last.last_text()
    );
    assert!(!menu(last).contains(&"find_agent".to_owned()));
    assert!(tokens(last) < TOKENS, "{}", tokens(last));
}

/// X3: each search of a decision is read back as it was.
#[tokio::test]
async fn two_searches_of_one_decision_find_separate_results() {
    let both = |asked: &Asked<'_>| match (asked.role, searches(asked)) {
        ("supervisor", 0) => {
            let tasks = json!([
                task("f", "find_agent", "air quality", &[]),
                task("g", "find_agent", "job interviews", &[]),
            ]);
            Some(decide(&["look around"], &["find_agent"], tasks))
        }
        ("supervisor", _) => Some(decide(&["done: look around"], &["qa"], json!([]))),
        _ => None,
    };
    let room = with_catalogue(script(both)).await;
    assert_done(&ask(&room, question("Where is the parcel?")).await);
    let found = room.state().await.routing.searches.clone();
    assert_eq!(found.len(), 2);
    assert!(found[0].found[0].contains("weather") && found[1].found[0].contains("hiring"));
    let replayed = room.replay().await;
    assert!(replayed.divergence.is_none(), "{replayed:?}");
}

/// S1.06: 200 tools, of which the model sees few.
#[tokio::test]
async fn an_agent_with_many_tools_searches_inside_itself() {
    let wanted = "report_energy_123";
    let mut room = Room::in_memory(script(move |asked| match (asked.role, asked.tools) {
        ("supervisor", _) if asked.results == 0 => {
            Some(decide(&["x"], &["mcp_agent_crm_europe"], json!([])))
        }
        ("agent", 0) => {
            Some(Reply::call("perihelion_find_tool", json!({ "query": "energy report 123" })))
        }
        ("agent", 1) => Some(Reply::call(wanted, json!({}))),
        ("agent", _) => Some(Reply::text("Done.")),
        _ => None,
    }))
    .await;
    room.servers = catalogue::table(0, 200, room.directory.path());
    let report = room.ask("Search for the contact of a lead").await;
    assert_done(&report);
    assert_eq!(catalogue::noted(room.directory.path(), "called"), [wanted]);

    let requests = room.agent_requests("mcp_agent_crm_europe");
    let names = |request: &RecordedRequest| -> Vec<String> {
        let tools = request.body["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
    };
    let first = names(&requests[0]);
    assert_eq!(first.len(), 25 + 2);
    assert!(first.contains(&"search_contact".to_owned()) && !first.contains(&wanted.to_owned()));
    assert!(requests[0].contains("The server has more tools than you see"));
    let second = names(&requests[1]);
    assert!(second.contains(&wanted.to_owned()) && second.len() <= first.len() + 8, "{second:?}");
    assert!(first.iter().all(|name| second.contains(name)), "what was shown stays");
    assert!(requests[1].contains(&format!("- {wanted}: Draws up the energy report number 123")));

    let used: Vec<&str> = report.results[0].tools.iter().map(|call| call.tool.as_str()).collect();
    assert_eq!(used, ["perihelion_find_tool", "crm_europe.report_energy_123"]);
    let sources: Vec<&str> = report.citations.iter().map(|one| one.source.as_str()).collect();
    assert_eq!(sources, ["crm_europe.report_energy_123"], "a search is no source");
    let replayed = room.replay().await;
    assert!(replayed.divergence.is_none(), "{replayed:?}");
}

/// S1.09
#[tokio::test]
async fn few_tools_and_catalogs_of_thirty_agents_have_no_search() {
    let mut room = Room::in_memory(script(|asked| match (asked.role, asked.tools) {
        ("supervisor", _) if asked.results == 0 => {
            Some(decide(&["x"], &["mcp_agent_crm_europe"], json!([])))
        }
        ("agent", 0) => Some(Reply::call("perihelion_find_tool", json!({ "query": "anything" }))),
        ("agent", _) => Some(Reply::text("Done.")),
        _ => None,
    }))
    .await;
    room.servers = (0..30)
        .map(|server| {
            catalogue::table(server, 20 + 5 * usize::from(server == 0), room.directory.path())
        })
        .collect();
    assert_done(&room.ask("Search").await);
    let supervisor = &room.requests(Role::Supervisor)[0];
    assert_eq!(menu(supervisor).len(), 30 + 1);
    assert!(!supervisor.contains("find_agent"), "{supervisor:?}");
    let requests = room.agent_requests("mcp_agent_crm_europe");
    assert_eq!(requests[0].body["tools"].as_array().map(Vec::len), Some(25 + 1));
    assert!(!requests[0].contains("perihelion_find_tool"));
    assert!(requests[1].contains("there is no tool named perihelion_find_tool"));
}

/// X6: without a cache all are started, a bounded number at a time, and one that fails is left out.
#[tokio::test]
async fn the_catalog_of_a_hundred_servers_survives_a_failing_one() {
    let mut room = with_catalogue(script(|_| Some(finish()))).await;
    room.close(open(&room).await).await;
    room.servers = room.servers.replace("args = [\"7\", \"20\"]", "args = [\"none\", \"20\"]");
    let runtime = open(&room).await;
    assert_eq!(runtime.agents().list().len(), SERVERS - 1);
    let problems: Vec<Value> =
        runtime.agents().problems().iter().map(|one| json!(one.server)).collect();
    assert_eq!(problems, [catalogue::name(7)]);
    room.close(runtime).await;
    assert_eq!(started(&room), SERVERS, "the changed one did not get so far");
}
