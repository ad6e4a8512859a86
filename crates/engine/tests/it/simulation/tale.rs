//! The graph that a plan stands for: its state, its nodes, and the world they touch.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::FutureExt;
use perihelion_engine::graph::{
    Context, Dict, EffectClass, EffectFailure, EffectRequest, Graph, GraphBuilder, Log, NodeEntry,
    NodeError, NodeOutput, Outcome, Resolver, RetryPolicy, Target, node_fn,
};
use serde_json::{Value, json};

use super::flaw::Flaw;
use super::plan::{Act, Next, NodePlan, Plan};
use super::record::{AskedOfModel, Delivered, OfModel, Sent, Start};
use super::sim::{Sim, Verdict};

fn add(current: &mut u64, more: u64) {
    *current = current.wrapping_mul(31).wrapping_add(more);
}

perihelion_engine::graph_state! {
    /// What is told, so that any change of order, any loss and any repetition shows.
    pub struct Tale, update TaleUpdate, version 1 {
        lines: Log<String> => append,
        sum: u64 => with(add),
        last: String => overwrite,
        steps: Dict<u64> => merge,
    }
}

pub fn input(turn: usize) -> TaleUpdate {
    TaleUpdate::new().lines(vec![format!("input {turn}")]).sum(turn as u64)
}

/// Brings the node that comes and goes.
struct Guest {
    sim: Arc<Sim>,
    name: String,
    entry: Arc<NodeEntry<Tale>>,
}

impl Resolver<Tale> for Guest {
    fn resolve(&self, name: &str) -> Option<Arc<NodeEntry<Tale>>> {
        (name == self.name && self.sim.board().is_guest_there).then(|| Arc::clone(&self.entry))
    }
}

/// Builds the graph as one process has it.
pub fn graph(sim: &Arc<Sim>, process: usize) -> Arc<Graph<Tale>> {
    let plan = &sim.plan;
    let mut graph = GraphBuilder::new("tale");
    for (index, node) in plan.nodes.iter().enumerate() {
        let mut entry = NodeEntry::new(node_fn({
            let sim = Arc::clone(sim);
            move |ctx| {
                let sim = Arc::clone(&sim);
                async move { Visit { sim, process, ctx }.run(index).await }
            }
        }));
        if node.retries {
            entry = entry.retry(RetryPolicy { max_attempts: 2, ..RetryPolicy::NONE });
        }
        if let Next::Edges(edges) = &node.next {
            entry = edges.iter().fold(entry, |entry, to| entry.then(format!("n{to}")));
        }
        if plan.guest == Some(index) {
            // It has no routes of its own: those are declared with fixed nodes.
            let sim = Arc::clone(sim);
            let name = node.name.clone();
            let entry = Arc::new(entry);
            graph = graph.resolver(Arc::new(Guest { sim, name, entry }));
            continue;
        }
        graph = graph.entry_node(node.name.clone(), entry);
        if let Next::Route(options) = &node.next {
            let options = options.clone();
            graph = graph.route(&node.name, move |state: &Tale| targets(&options, state.sum));
        }
    }
    for index in &plan.entry {
        graph = graph.entry(format!("n{index}"));
    }
    if let Some((from, to)) = &plan.join {
        let from: Vec<String> = from.iter().map(|index| format!("n{index}")).collect();
        graph = graph.join(from.iter().map(String::as_str), format!("n{to}"));
    }
    graph.build().unwrap()
}

fn targets(options: &[Vec<usize>], sum: u64) -> Vec<Target> {
    let option = &options[(sum % options.len() as u64) as usize];
    option.iter().map(|to| Target::node(format!("n{to}"))).collect()
}

/// One run of one node.
struct Visit {
    sim: Arc<Sim>,
    process: usize,
    ctx: Context<Tale>,
}

impl Visit {
    async fn run(&self, index: usize) -> Result<NodeOutput<Tale>, NodeError> {
        let plan = Arc::clone(&self.sim.plan);
        let place = self.ctx.place();
        let node = &plan.nodes[index];
        self.sim.tell(|| {
            format!(
                "  {}: {} runs as task {} of step {}",
                self.process, node.name, place.task, place.step
            )
        });
        {
            let mut board = self.sim.board();
            let claimed_at = board.lives[self.process].claimed_at.unwrap_or_default();
            let start = Start { step: place.step, task: place.task, claimed_at };
            board.record.starts.push(start);
        }
        let mut text = node.name.clone();
        if self.ctx.has_input() {
            text += &format!(" of {}", self.ctx.input::<u64>()?);
        }
        for (number, act) in node.acts.iter().enumerate() {
            text += &self.act(node, number, act).await?;
        }
        Ok(self.output(&plan, node, text))
    }

    fn output(&self, plan: &Plan, node: &NodePlan, text: String) -> NodeOutput<Tale> {
        let state = self.ctx.state();
        let step = self.ctx.place().step;
        let sum = text.bytes().fold(7, |sum: u64, byte| sum.wrapping_mul(131) + u64::from(byte));
        let update = TaleUpdate::new()
            .lines(vec![text.clone()])
            .sum(sum & 0xffff)
            .last(text)
            .steps(BTreeMap::from([(node.name.clone(), step)]));
        if state.lines.len() >= plan.fuel {
            return NodeOutput::goto(update, []);
        }
        match &node.next {
            Next::Goto(options) => NodeOutput::goto(update, targets(options, state.sum)),
            Next::Sends(to, count) => NodeOutput::goto(
                update,
                (0..*count).map(|input| Target::send(format!("n{to}"), json!(input))),
            ),
            Next::Route(options) if plan.guest.is_some_and(|g| plan.nodes[g].name == node.name) => {
                NodeOutput::goto(update, targets(options, state.sum))
            }
            _ => NodeOutput::update(update),
        }
    }

    async fn act(&self, node: &NodePlan, number: usize, act: &Act) -> Result<String, NodeError> {
        let place = self.ctx.place();
        let spot = (place.step, place.task, number);
        Ok(match act {
            Act::Pause => {
                self.sim.gate(self.process, "pause").await;
                String::new()
            }
            Act::Inquire { what, fails } => self.inquire(what, *fails).await?,
            Act::Send { what, repeatable, fails } => {
                let what = format!("{}.{number}.{what}", node.name);
                self.send(what, *repeatable, *fails).await?
            }
            Act::Both { one, other } => {
                let name = |what: &str| format!("{}.{number}.both.{what}", node.name);
                let one = name(one);
                let other = name(other);
                let both =
                    futures::join!(self.send(one, false, false), self.send(other, false, false));
                both.0? + &both.1?
            }
            Act::Ask { what } => {
                let payload = json!({ "which": what, "number": number, "step": place.step });
                let answer = self.ctx.interrupt("clarification", &payload).await?;
                let text = format!(" asked {answer}");
                let mut board = self.sim.board();
                board.record.delivered.push(Delivered { payload, answer });
                text
            }
            Act::Draw => {
                let drawn = self.ctx.random().await?;
                self.sim.board().record.draws.entry(spot).or_default().push(drawn);
                String::new()
            }
            Act::Trip { times } => {
                let tripped = {
                    let mut board = self.sim.board();
                    let trips = board.trips.entry(spot).or_default();
                    *trips += 1;
                    *trips <= *times
                };
                if tripped {
                    return Err(NodeError::retryable("trip", "it tripped"));
                }
                String::new()
            }
            Act::Doom => return Err(NodeError::failed("doom", "it always fails")),
        })
    }

    /// Asks something whose answer follows from the question alone.
    async fn inquire(&self, what: &str, fails: bool) -> Result<String, NodeError> {
        let mut request = json!({ "what": what });
        if self.sim.has(Flaw::ChangesRequests) {
            request["process"] = json!(self.process);
        }
        let request = EffectRequest { class: EffectClass::Inquiry, name: "model".into(), request };
        let answer = format!("answer {what}");
        let place = self.ctx.place().clone();
        let perform = Box::new(move |key: String| {
            let sim = Arc::clone(&self.sim);
            let process = self.process;
            let answer = answer.clone();
            let thread = place.thread;
            let step = place.step;
            let task = place.task;
            async move {
                {
                    let mut board = sim.board();
                    let at = board.tick();
                    let claimed_at = board.lives[process].claimed_at.unwrap_or_default();
                    let about = OfModel { at, process, thread, step, task, key };
                    board.record.asked_of_models.push(AskedOfModel { claimed_at, about });
                }
                sim.gate(process, "model").await;
                if fails {
                    Err(EffectFailure::NoEffect("no model".into()))
                } else {
                    Ok(json!(answer))
                }
            }
            .boxed()
        });
        Ok(lines(&self.ctx.effect(request, perform).await?))
    }

    /// Sends an action whose result follows from the request alone.
    async fn send(
        &self,
        mut what: String,
        repeatable: bool,
        fails: bool,
    ) -> Result<String, NodeError> {
        if self.sim.has(Flaw::ChangesRequests) {
            what += &format!(" by {}", self.process);
        }
        let name = if repeatable { "often" } else { "once" };
        let class = EffectClass::Action { repeatable };
        let request = json!({ "what": what });
        let request = EffectRequest { class, name: name.into(), request };
        let place = self.ctx.place().clone();
        let perform = Box::new(move |key: String| {
            let sim = Arc::clone(&self.sim);
            let process = self.process;
            let thread = place.thread;
            let step = place.step;
            let task = place.task;
            let sent = Sent { key, thread, step, task, what: what.clone(), repeatable };
            async move {
                if sim.gate(process, "send").await == Verdict::Dead || fails {
                    return Err(EffectFailure::NoEffect("refused by the receiver".into()));
                }
                let result = result_of(&sent.what);
                let is_reply_lost = {
                    let mut board = sim.board();
                    let board = &mut *board;
                    let may = sim.plan.loses_replies && !board.is_calm && board.rng.chance(30);
                    let key = sent.key.clone();
                    sim.tell(|| format!("  {process}: sends {}", sent.what));
                    board.record.sent.push(sent);
                    may && board.lost_replies.insert(key)
                };
                sim.gate(process, "reply").await;
                if is_reply_lost {
                    Err(EffectFailure::Unknown("no reply".into()))
                } else {
                    Ok(result)
                }
            }
            .boxed()
        });
        Ok(lines(&self.ctx.effect(request, perform).await?))
    }
}

/// What the receiver of an action answers.
pub fn result_of(what: &str) -> Value {
    json!(format!("did {what}"))
}

fn lines(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Value(value) => format!(" got {value}"),
        Outcome::Failed(message) => format!(" failed {message}"),
    }
}
