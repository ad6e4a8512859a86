//! How well agents are found among a hundred: requests as people make them, and who must be among the first.

use std::sync::Arc;

use crate::{
    AGENT_PREFIX, Agent, Kinds, Menu, MenuSize, Roster, ServerAgent, ToolLoop,
    directory::Directory, menu::MenuQuery,
};
use perihelion_mcp::{ServerInfo, ToolDefinition};

#[path = "../../../tests/fixtures/catalogue_mcp_server/catalogue.rs"]
mod catalogue;
#[path = "../../../tests/fixtures/catalogue_mcp_server/names.rs"]
mod names;

use names::SERVERS;

/// A request, and the agent for it.
const REQUESTS: &[(&str, &str)] = &[
    ("Where is the parcel that our European customer is waiting for?", "shipping_europe"),
    ("Print shipping labels for the freight leaving Asia tomorrow", "shipping_asia"),
    ("Refund the second payment of invoice 4711 in America", "billing_america"),
    ("Which subscriptions were cancelled in Europe last month?", "billing_europe"),
    ("Book me a hotel for the trip to the Asia office", "travel_asia"),
    ("Find flights and a rental car, charged to headquarters", "travel_headquarters"),
    ("What was the exchange rate of the currency in Asia yesterday?", "markets_asia"),
    ("How did the share price and the dividend develop in America?", "markets_america"),
    ("Will there be a storm in Europe this week?", "weather_europe"),
    ("Temperature and rainfall in Asia, please", "weather_asia"),
    ("Open an issue for the next sprint of the headquarters team", "issues_headquarters"),
    ("Merge the pull request of the American repository after review", "code_america"),
    ("Why did the build pipeline fail in Europe?", "builds_europe"),
    ("Restart the pods of the ingress deployment in Asia", "cluster_asia"),
    ("Who is on call for the incident at headquarters?", "alerts_headquarters"),
    ("Send a message with the signed attachment from the American mailbox", "mail_america"),
    ("Move the meeting and find a room to be booked in Europe", "calendar_europe"),
    ("Post it to the chat channel of the Asia team", "chat_asia"),
    ("Compare two revisions of the document at headquarters", "documents_headquarters"),
    ("What does the wiki of the American colleagues say in its glossary?", "wiki_america"),
    ("How many pallets are on stock in Europe, by bin location?", "warehouse_europe"),
    ("Ask suppliers for quotations and raise a purchase order in Asia", "procurement_asia"),
    ("Submit my taxi receipt and mileage to headquarters", "expenses_headquarters"),
    ("Schedule interviews with the candidates in America", "hiring_america"),
    ("Which courses lead to the safety certificate in Europe?", "training_europe"),
    ("Check the contract clause on liability for Asia", "legal_asia"),
    ("When is the maintenance of the vehicle with the fuel card due, America?", "fleet_america"),
    ("Enter the bonus into the payslip of the headquarters staff", "payroll_headquarters"),
    (
        "Escalate the support ticket and look at the satisfaction survey in America",
        "tickets_america",
    ),
    ("Create a lead and an opportunity for the European campaign", "crm_europe"),
    ("shipping", "shipping_america"),
    ("customsForm europe", "shipping_europe"),
];

fn agents() -> Vec<Arc<dyn Agent>> {
    let info = |server: usize| ServerInfo {
        name: names::name(server),
        description: catalogue::instructions(server),
        tools: catalogue::tools(server, 20)
            .into_iter()
            .map(|tool| ToolDefinition {
                name: tool["name"].as_str().unwrap_or_default().to_owned(),
                description: tool["description"].as_str().unwrap_or_default().to_owned(),
                input_schema: tool["inputSchema"].clone().into(),
                ..ToolDefinition::default()
            })
            .collect(),
        ..ServerInfo::default()
    };
    let kinds = Arc::new(Kinds::new(Arc::new(ToolLoop)));
    let agent = |info| -> Arc<dyn Agent> { Arc::new(ServerAgent::new(info, &kinds)) };
    (0..SERVERS).map(info).map(agent).collect()
}

/// S1.04: The agent must be in the catalog at once, and nearly always among the first two.
#[test]
fn the_agent_that_is_made_for_a_request_is_among_the_first() {
    let agents = agents();
    let directory = Directory::of(agents.iter().map(|agent| agent.card()));
    let mut first = 0;
    let mut places = Vec::new();
    for (request, agent) in REQUESTS {
        let found = directory.find(&[(1.0, request)]);
        let place = found.iter().position(|fit| fit.agent == format!("{AGENT_PREFIX}{agent}"));
        first += usize::from(place.is_some_and(|place| place < 2));
        if place.is_none_or(|place| place >= 5) {
            places.push(format!("{request} → {place:?}, first {:?}", found.first()));
        }
    }
    assert!(places.is_empty(), "{places:#?}");
    assert!(first * 10 >= REQUESTS.len() * 9, "{first} of {} among the first two", REQUESTS.len());
}

/// S1.04: the catalog has twelve lines instead of a hundred, with the tools that fit.
#[test]
fn the_catalog_of_a_request_shows_the_matching_tools() {
    let roster = Roster::default();
    roster.set(agents());
    let wanted = MenuQuery {
        tenant: "",
        disabled: &[],
        kept: Default::default(),
        found: Default::default(),
        searched: Vec::new(),
        query: vec![(1.0, "Which contract clauses mention a power of attorney in Asia?")],
    };
    let menu: Menu = roster.menu(&wanted, MenuSize { all: 30, fitting: 12 }, |_| None);
    assert_eq!((menu.shown.len(), menu.hidden.len()), (12, SERVERS - 12));
    let line = menu.shown.iter().find(|(name, _)| name == "mcp_agent_legal_asia");
    let line = &line.unwrap_or_else(|| panic!("{menu:?}")).1;
    let tools = line.split_once("tools: ").unwrap_or_default().1;
    assert!(tools.split(", ").take(4).any(|tool| tool.ends_with("power_of_attorney")), "{line}");
    let whole = roster.menu(&wanted, MenuSize { all: SERVERS, fitting: 12 }, |_| None);
    assert_eq!((whole.shown.len(), whole.hidden.len()), (SERVERS, 0));
}
