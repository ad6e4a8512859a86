//! Guarantees to users of the library: typed effects that happen once, typed questions, threads that `start` creates.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test ends at what it did not expect")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use futures::StreamExt as _;
use perihelion_engine::checkpoint::MemoryStore;
use perihelion_engine::graph::{
    Context, END, EffectError, GraphBuilder, NodeError, NodeOutput, RetryPolicy, RunEvent, Target,
    Wants, node_with, try_node_fn,
};
use perihelion_engine::ids::ThreadId;
use perihelion_engine::runner::{Error, RunOptions, RunOutcome, RunResult, Runner};
use serde_json::json;

perihelion_engine::graph_state! {
    pub struct Order, update OrderUpdate, version 1 {
        cents: u64 => overwrite,
        receipt: Option<String> => overwrite,
    }
}

/// A shop that counts its charges.
#[derive(Clone, Default)]
struct Shop(Arc<AtomicU32>);

impl Shop {
    fn charge(&self, cents: u64) -> Result<String, std::num::ParseIntError> {
        let times = self.0.fetch_add(1, Ordering::SeqCst) + 1;
        // Fails for no cents at all, as an error of somebody else's.
        if cents == 0 {
            "none".parse::<u64>().map(|_| String::new())
        } else {
            Ok(format!("{cents} cents, call {times}"))
        }
    }
}

async fn pay(shop: Shop, ctx: Context<Order>) -> Result<NodeOutput<Order>, NodeError> {
    let cents = ctx.state().cents;
    let receipt: String = ctx.once("charge", &cents, async |_| Ok(shop.charge(cents)?)).await?;
    let keep: bool = ctx.ask("approval of the receipt", &json!({ "receipt": receipt })).await?;
    Ok(OrderUpdate::new().receipt(keep.then_some(receipt)).into())
}

fn runner(node: Arc<dyn perihelion_engine::graph::Node<Order>>) -> Runner<Order> {
    let graph = GraphBuilder::new("order").node("pay", node).entry("pay").edge("pay", END).build();
    Runner::new(graph.unwrap(), Arc::new(MemoryStore::new()))
}

async fn start(runner: &Runner<Order>, thread: ThreadId, cents: u64) -> RunOutcome<Order> {
    let input = OrderUpdate::new().cents(cents);
    runner.start(thread, input, RunOptions::default()).await.unwrap()
}

fn question(outcome: &RunOutcome<Order>) -> perihelion_engine::graph::Interrupt {
    match &outcome.result {
        RunResult::Interrupted(questions) => questions[0].clone(),
        other => panic!("nobody was asked: {other:?}"),
    }
}

#[tokio::test]
async fn start_creates_the_thread_and_an_effect_happens_once_in_all_runs_of_its_node() {
    let shop = Shop::default();
    let runner = runner(node_with(shop.clone(), pay));
    let thread = ThreadId::new();
    let asked = start(&runner, thread, 900).await;
    runner.answer(thread, question(&asked).id, &json!(true)).await.unwrap();
    let paid = runner.resume(thread, RunOptions::default()).await.unwrap();
    assert_eq!(paid.result, RunResult::Done);
    assert_eq!(paid.state.receipt.as_deref(), Some("900 cents, call 1"));
    assert_eq!(shop.0.load(Ordering::SeqCst), 1, "the node ran twice, the charge was made once");
}

#[tokio::test]
async fn an_answer_that_does_not_fit_is_followed_by_the_question_and_the_problem() {
    let runner = runner(node_with(Shop::default(), pay));
    let thread = ThreadId::new();
    let first = question(&start(&runner, thread, 900).await);
    runner.answer(thread, first.id, &json!("certainly")).await.unwrap();
    let again = question(&runner.resume(thread, RunOptions::default()).await.unwrap());
    assert_ne!(again.id, first.id);
    assert_eq!(again.payload["question"], first.payload);
    assert!(again.payload["problem"].as_str().unwrap().contains("expected a boolean"), "{again:?}");
    runner.answer(thread, again.id, &json!(false)).await.unwrap();
    let paid = runner.resume(thread, RunOptions::default()).await.unwrap();
    assert_eq!((paid.result, paid.state.receipt.clone()), (RunResult::Done, None));
}

#[tokio::test]
async fn an_error_in_an_effect_that_must_happen_once_asks_a_person() {
    let runner = runner(node_with(Shop::default(), pay));
    let asked = question(&start(&runner, ThreadId::new(), 0).await);
    assert_eq!(asked.kind, "outcome_unknown");
}

#[tokio::test]
async fn an_effect_that_certainly_did_not_happen_is_tried_again_under_the_nodes_policy() {
    let calls = Arc::new(AtomicU32::new(0));
    let node = node_with(Arc::clone(&calls), async |calls: Arc<AtomicU32>, ctx: Context<Order>| {
        let receipt =
            ctx.once("charge", &1, async |_| match calls.fetch_add(1, Ordering::SeqCst) {
                0 => Err(EffectError::no_effect("the shop is closed")),
                _ => Ok("paid".to_owned()),
            });
        Ok(OrderUpdate::new().receipt(Some(receipt.await?)).into())
    });
    let policy = RetryPolicy { initial: std::time::Duration::ZERO, ..RetryPolicy::default() };
    let entry = perihelion_engine::graph::NodeEntry::new(node).retry(policy);
    let graph = GraphBuilder::new("order").entry_node("pay", entry).entry("pay").build().unwrap();
    let runner = Runner::new(graph, Arc::new(MemoryStore::new()));
    let paid = start(&runner, ThreadId::new(), 1).await;
    assert_eq!(paid.state.receipt.as_deref(), Some("paid"));
    assert_eq!(calls.load(Ordering::SeqCst), 2);
}

async fn parse(
    ctx: Context<Order>,
) -> Result<OrderUpdate, Box<dyn std::error::Error + Send + Sync>> {
    let _: bool = ctx.ask("approval of the parse", "Parse it?").await?;
    let cents: u64 = "nine".parse()?;
    Ok(OrderUpdate::new().cents(cents))
}

#[tokio::test]
async fn a_function_with_any_error_is_a_node_and_its_questions_stay_questions() {
    let runner = runner(try_node_fn(parse));
    let thread = ThreadId::new();
    let asked = question(&start(&runner, thread, 1).await);
    runner.answer(thread, asked.id, &json!(true)).await.unwrap();
    let failed = runner.resume(thread, RunOptions::default()).await.unwrap();
    let RunResult::Failed(error) = failed.result else { panic!("{failed:?}") };
    assert!(error.to_string().contains("invalid digit"), "{error}");
}

#[test]
fn an_end_is_the_same_in_every_spelling() {
    assert_eq!(Target::node(END), Target::End);
}

#[tokio::test]
async fn a_thread_whose_stream_was_dropped_resumes_at_once_and_its_stream_ends_with_the_outcome() {
    let is_first = Arc::new(AtomicBool::new(true));
    let node = node_with(is_first, async |is_first, _: Context<Order>| {
        if is_first.swap(false, Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        Ok::<_, NodeError>(NodeOutput::from(OrderUpdate::new().receipt(Some("paid".to_owned()))))
    });
    let graph = GraphBuilder::new("order").node("pay", node).entry("pay").build().unwrap();
    let runner = Runner::new(graph, Arc::new(MemoryStore::new()));
    let thread = ThreadId::new();
    let options = || RunOptions { wants: Wants::ALL, ..RunOptions::default() };

    let mut events = runner.stream(thread, Some(OrderUpdate::new().cents(5)), options());
    let started = events.next().await;
    assert!(matches!(started, Some(RunEvent::TaskStarted { .. })), "{started:?}");
    drop(events);

    let mut events = runner.stream(thread, None, options());
    let all: Vec<RunEvent<Order>> = events.by_ref().collect().await;
    assert!(matches!(all.last(), Some(RunEvent::Values { step: 2, .. })), "{all:?}");
    let outcome = events.outcome().await.unwrap();
    assert_eq!((outcome.result, outcome.state.cents), (RunResult::Done, 5));

    let finished = runner.stream(thread, None, options()).outcome().await;
    assert!(matches!(finished, Err(Error::Finished { .. })), "{finished:?}");
}
