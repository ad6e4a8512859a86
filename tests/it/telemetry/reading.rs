//! What a reader sees beside the spans: cost, loops, changes between attempts, differences between runs.

use std::collections::BTreeMap;

use perihelion::checkpoint::{ThreadInfo, ThreadStatus};
use perihelion::config::Price;
use perihelion::runtime::is_under_way;
use perihelion::telemetry::reading::{NoteKind, PairKind};
use perihelion::telemetry::{About, Span};

use super::{Demo, settings};

fn price(input_per_mtok: f64, output_per_mtok: f64) -> Price {
    Price { input_per_mtok, output_per_mtok, cached_per_mtok: None }
}

fn cost(span: &Span) -> Option<u64> {
    span.spent.and_then(|spent| spent.nano_usd)
}

/// S1.12
#[tokio::test]
async fn cost_is_rolled_up_from_the_call_to_round_agent_hop_and_run() {
    let mut settings = settings(&[]);
    settings.models.prices = BTreeMap::from([("scripted".to_owned(), price(2.0, 8.0))]);
    let demo = Demo::open(settings).await;
    let report = demo.ask(demo.runtime.run_options()).await;
    let trace = demo.trace(None).await;
    demo.runtime.close().await;
    let root = &trace.spans[0];
    let expected =
        price(2.0, 8.0).nano_usd(report.usage.input_tokens, 0, report.usage.output_tokens);
    assert_eq!(cost(root), Some(expected));
    assert_eq!(root.spent.unwrap().unpriced, 0);
    for parent in &trace.spans {
        let children = trace.spans.iter().filter(|span| span.parent == Some(parent.span_id));
        let below: u64 = children.filter_map(cost).sum();
        if !matches!(parent.about, About::Chat { .. }) {
            assert_eq!(cost(parent).unwrap_or(0), below, "{}", parent.name);
        }
    }
    let shares: u64 =
        trace.head.overview.agents.iter().filter_map(|share| share.spent?.nano_usd).sum();
    assert_eq!(shares, expected, "every call is in somebody's share");
    let round = trace.spans.iter().find(|span| matches!(span.about, About::Reflection { .. }));
    assert!(cost(round.unwrap()).is_some_and(|cost| cost > 0));
}

#[tokio::test]
async fn a_call_without_a_price_makes_the_sum_a_lower_bound() {
    let demo = Demo::open(settings(&[])).await;
    demo.ask(demo.runtime.run_options()).await;
    let spent = demo.trace(None).await.spans[0].spent.unwrap();
    demo.runtime.close().await;
    assert_eq!((spent.nano_usd, spent.unpriced), (None, spent.calls));
}

#[tokio::test]
async fn changes_between_attempts_are_shown_at_the_later_one() {
    let demo = Demo::open(settings(&[])).await;
    demo.ask(demo.runtime.run_options()).await;
    let trace = demo.trace(None).await;
    demo.runtime.close().await;
    let second = trace.spans.iter().find(
        |span| matches!(&span.about, About::Reflection { agent, attempt: 2, .. } if agent == "mcp_agent_sql"),
    );
    let note =
        trace.head.notes.iter().find(|note| note.span_id == second.unwrap().span_id).unwrap();
    assert_eq!(note.kind, NoteKind::Changed);
    insta::assert_snapshot!(note.text);
    let hops: Vec<_> =
        trace.head.overview.hops.iter().map(|hop| (&*hop.from, &*hop.to, hop.count)).collect();
    assert!(hops.contains(&("supervisor", "mcp_agent_sql", 1)), "{hops:?}");
}

/// S2.10
#[tokio::test]
async fn the_events_of_a_run_come_in_order_with_who_did_what() {
    let demo = Demo::open(settings(&[])).await;
    let report = demo.ask(demo.runtime.run_options()).await;
    let trace = demo.trace(None).await;
    demo.runtime.close().await;
    assert!(trace.events.is_sorted_by_key(|event| event.timestamp));
    // Two agents at once: who comes first differs from run to run.
    let of = |agent: &str| {
        let theirs = trace.events.iter().filter(|event| event.agent == agent);
        theirs.map(|event| format!("{:?}", event.kind)).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(of("supervisor"), "Message Decision Message Decision");
    assert_eq!(of("mcp_agent_files"), "Message Tool Tool Message Message Result");
    assert_eq!(
        of("mcp_agent_sql"),
        "Message Tool Message Error Message Tool Message Message Message Tool Message Message Result"
    );
    let last = trace.events.last().unwrap();
    assert_eq!((&*last.agent, Some(&last.message)), ("qa", report.answer.as_ref()));
}

#[tokio::test]
async fn two_runs_of_the_same_question_differ_only_in_their_observations() {
    let demo = Demo::open(settings(&[])).await;
    demo.ask(demo.runtime.run_options()).await;
    demo.ask(demo.runtime.run_options()).await;
    let first = demo.trace(Some(1)).await;
    let second = demo.trace(Some(2)).await;
    demo.runtime.close().await;
    assert!(first.compare(&first).is_same());
    let diff = first.compare(&second);
    let both = diff.pairs.iter().filter(|pair| pair.a.is_some() && pair.b.is_some()).count();
    assert!(both * 2 > diff.pairs.len(), "most is aligned: {diff:#?}");
    let sides = |kind| diff.count(kind);
    assert_eq!(both + sides(PairKind::OnlyA), first.spans.len());
    assert_eq!(both + sides(PairKind::OnlyB), second.spans.len());
}

/// X7: A model or a tool may write anything; the page shows it and runs none of it.
#[tokio::test]
async fn the_page_holds_the_trace_and_names_no_address_outside_it() {
    let demo = Demo::open(settings(&[])).await;
    demo.ask(demo.runtime.run_options()).await;
    let mut trace = demo.trace(None).await;
    demo.runtime.close().await;
    let hostile = "</script><img src=x onerror=alert(1)><!-- {{script}}";
    for span in &mut trace.spans {
        if let About::Tool { result, .. } = &mut span.about {
            *result = Some(hostile.to_owned());
        }
    }
    let page = trace.to_page().unwrap();
    assert!(!page.contains("</script><img"), "the data stays in its element");
    let mut spans = Vec::new();
    let mut own = String::new();
    for part in page.split("<script type=\"application/json\"") {
        let (data, rest) = part.split_once("</script>").unwrap_or(("", part));
        if let Some((_, data)) = data.split_once("class=\"spans\">") {
            spans.extend(serde_json::from_str::<Vec<serde_json::Value>>(data).unwrap());
        }
        own.push_str(rest);
    }
    assert_eq!(spans.len(), trace.spans.len());
    assert!(spans.iter().any(|span| span["result"] == hostile));
    assert_eq!(own.matches("<script").count(), 1);
    for word in ["http:", "https:", "//cdn", "@import", "url(\"", "src="] {
        assert!(!own.contains(word), "{word}");
    }
}

/// A holder elsewhere is believed as long as its lease says.
#[tokio::test]
async fn a_running_run_is_distinguished_from_a_run_whose_process_is_gone() {
    let demo = Demo::open(settings(&[])).await;
    demo.ask(demo.runtime.run_options()).await;
    let idle = demo.store().info(demo.thread).await.unwrap();
    demo.runtime.close().await;
    assert!(!is_under_way(&idle));
    let locked_until = |hours| ThreadInfo {
        status: ThreadStatus::Busy,
        owner: Some("elsewhere".to_owned()),
        lease_until: Some(idle.updated_at + chrono::TimeDelta::hours(hours)),
        ..idle.clone()
    };
    assert!(is_under_way(&locked_until(1)));
    assert!(!is_under_way(&locked_until(-1)));
}
