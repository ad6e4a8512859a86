//! A graph of a known state behind the interface that hides the state's type.

use std::any::Any;
use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use super::{About, Drawing, Edit, Ended, FoldedStep, Options, Served, ThreadState, Wrote};
use crate::Error;
use perihelion_engine::checkpoint::{
    StepKind, StepRow, ThreadInfo, ThreadStatus, forked_to, read_delta,
};
use perihelion_engine::graph::{END, State, Target, Written};
use perihelion_engine::ids::{RunId, ThreadId};
use perihelion_engine::runner::{
    self, AfterEdit, INPUT, ReplayReport, RunOptions, RunOutcome, Runner, compact,
};
use perihelion_settings::config::strict::suggestion;

pub type ReadInput<S> = dyn Fn(Value) -> serde_json::Result<<S as State>::Update> + Send + Sync;

/// Returns the displayed state after a step, if it differs from the stored one.
type Show<S> = fn(&S, &[Written<S>], u64) -> Option<S>;

pub struct Typed<S: State> {
    pub(super) runner: Runner<S>,
    pub(super) about: Arc<About>,
    /// How it reads inputs, if not as updates of its state.
    pub(super) input: Option<Arc<ReadInput<S>>>,
    pub(super) show: Option<Show<S>>,
}

impl<S: State> Typed<S> {
    fn shown(&self, state: Arc<S>) -> ThreadState {
        ThreadState::new(&self.about, state)
    }

    fn read_input(&self, input: Value) -> Result<S::Update, Error> {
        match &self.input {
            Some(read) => read(input)
                .map_err(|why| Error::Change(format!("the input does not fit: {why}").into())),
            None => read_update::<S>(&input),
        }
    }

    /// Gives a thread an input as if it had not been under way.
    async fn start_over(
        &self,
        thread: ThreadId,
        input: S::Update,
        mut options: RunOptions<S>,
    ) -> Result<RunOutcome<S>, runner::Error> {
        self.runner.update_state(thread, input, INPUT).await?;
        options.pauses.at_start = true;
        self.runner.resume(thread, options).await
    }
}

/// Reads the fields of an update; a misspelled one is corrected in the refusal.
pub(super) fn read_update<S: State>(given: &Value) -> Result<S::Update, Error> {
    let empty = json!({});
    let given = if given.is_null() { &empty } else { given };
    S::Update::deserialize(given).map_err(|error| {
        let known = json!(S::default());
        let wrong = given.as_object().into_iter().flat_map(Map::keys);
        let wrong = wrong.into_iter().find(|field| known.get(field.as_str()).is_none());
        let known = known.as_object().into_iter().flat_map(Map::keys).map(String::as_str);
        let hint = wrong.and_then(|wrong| suggestion(wrong, known)).unwrap_or_default();
        Error::Change(format!("{error}{hint}").into())
    })
}

/// Returns a value as one of type `B`, if that is the type of the value.
fn same<A: Any, B: Any>(given: A) -> Option<B> {
    (Box::new(given) as Box<dyn Any>).downcast().ok().map(|same| *same)
}

/// Converts the options of a run to another state, whose events are available only on the bus.
fn retyped<S: State>(options: Options) -> RunOptions<S> {
    RunOptions {
        durability: options.durability,
        limits: options.limits,
        deadline: options.deadline,
        wants: options.wants,
        events: same(options.events).flatten(),
        publish: options.publish,
        pauses: options.pauses,
        cancel: options.cancel,
        hands_over: options.hands_over,
        withdrawn: options.withdrawn,
        max_crashes: options.max_crashes,
        request: options.request,
    }
}

fn ended<S: State>(outcome: RunOutcome<S>) -> Ended {
    let RunOutcome { thread, tenant, run, result, state, head, steps } = outcome;
    RunOutcome { thread, tenant, run, result, state: same(state).unwrap_or_default(), head, steps }
}

#[async_trait]
impl<S: State> Served for Typed<S> {
    fn about(&self) -> &Arc<About> {
        &self.about
    }

    fn drawing(&self) -> Drawing {
        let graph = self.runner.graph();
        let nodes = graph.node_names().map(str::to_owned).collect();
        Drawing { entry: graph.entry().to_vec(), nodes, edges: graph.edges() }
    }

    fn empty(&self) -> ThreadState {
        self.shown(Arc::new(S::default()))
    }

    fn check_input(&self, input: &Value) -> Result<(), Error> {
        self.read_input(input.clone()).map(|_| ())
    }

    fn check_update(&self, update: &Value) -> Result<(), Error> {
        read_update::<S>(update).map(|_| ())
    }

    async fn state(&self, thread: ThreadId, at: Option<u64>) -> Result<ThreadState, Error> {
        if at == Some(0) {
            return Ok(self.empty());
        }
        Ok(self.shown(self.runner.state(thread, at).await?.state))
    }

    async fn fold(
        &self,
        thread: ThreadId,
        before: &ThreadState,
        row: &StepRow,
    ) -> Result<FoldedStep, Error> {
        let written = read_delta::<S>(thread, row)?;
        let returned_to = forked_to(row, &written);
        // Step 0 has no row. As the parent of the first question it lets clients ask that question in another way.
        let parent = returned_to.unwrap_or(row.seq.saturating_sub(1));
        let mut state = match before.of::<S>() {
            Some(_) if returned_to.is_none() => before.clone(),
            // The step that a return leads to may have been dropped.
            _ => self.state(thread, Some(returned_to.map_or(parent, |_| row.seq))).await?,
        };
        if !written.is_empty() {
            let mut merged = state.of::<S>().cloned().unwrap_or_default();
            written.iter().for_each(|one| merged.apply(one.update.clone()));
            state = self.shown(Arc::new(merged));
        }
        let show = self.show.zip(state.of::<S>());
        let changed = show.and_then(|(show, state)| show(state, &written, row.seq));
        let shown = changed.map_or_else(|| state.clone(), |changed| self.shown(Arc::new(changed)));
        let wrote = |one: Written<S>| Wrote::new(&self.about, one.node, one.update);
        let written = written.into_iter().map(wrote).collect();
        Ok(FoldedStep { shown, state, written, parent })
    }

    async fn create(
        &self,
        tenant: &str,
        thread: ThreadId,
        title: Option<String>,
    ) -> Result<ThreadInfo, Error> {
        Ok(self.runner.create_for(tenant, thread, title).await?)
    }

    /// Edits a thread's state as if a node had written it; without a node, as if the one had that ran last.
    ///
    /// If there is no next node either and the thread is between two steps, the nodes run that would have run without
    /// the edit.
    async fn edit(&self, thread: ThreadId, edit: Edit) -> Result<u64, Error> {
        let Edit { update, as_node, goto, at, mut head } = edit;
        let as_node = as_node.as_deref();
        let update = read_update::<S>(&update)?;
        if let Some(at) = at {
            if at < self.runner.store().info(thread).await?.head {
                let node = self.writer(thread, as_node, Some(at)).await?;
                let after = as_node.map_or(AfterEdit::Unchanged, |_| AfterEdit::Routes);
                self.runner.check_update(thread, at, update.clone(), &node, &after).await?;
            }
            let returned = self.runner.go_back(thread, at).await?;
            head = head.map(|_| returned.seq);
        }
        let node = self.writer(thread, as_node, None).await?;
        let target = |to: &str| if to == END { Target::End } else { Target::node(to) };
        let goto = goto.unwrap_or_default();
        let goto: Vec<Target> = goto.iter().filter_map(Value::as_str).map(target).collect();
        let after = if !goto.is_empty() {
            AfterEdit::Goto(goto)
        } else if as_node.is_none() && self.stands_between_steps(thread).await? {
            AfterEdit::Unchanged
        } else {
            AfterEdit::Routes
        };
        Ok(self.runner.update_state_and_go(thread, head, update, &node, after).await?.seq)
    }

    async fn go_back(&self, thread: ThreadId, to: u64) -> Result<u64, Error> {
        Ok(self.runner.go_back(thread, to).await?.seq)
    }

    async fn compact(&self, thread: ThreadId, keep: u64) -> Result<Option<u64>, Error> {
        Ok(compact::<S>(self.runner.store().as_ref(), thread, keep).await?)
    }

    async fn start(
        &self,
        thread: ThreadId,
        input: Value,
        options: Options,
    ) -> Result<Ended, Error> {
        let input = self.read_input(input)?;
        let options = retyped(options);
        let outcome = match self.runner.start(thread, input.clone(), options.clone()).await {
            Err(runner::Error::Unfinished { .. }) => {
                self.start_over(thread, input, options).await?
            }
            other => other?,
        };
        Ok(ended(outcome))
    }

    async fn resume(&self, thread: ThreadId, options: Options) -> Result<Ended, Error> {
        Ok(ended(self.runner.resume(thread, retyped(options)).await?))
    }

    async fn wake(&self, thread: ThreadId, options: Options) -> Result<Option<Ended>, Error> {
        Ok(self.runner.wake(thread, retyped(options)).await?.map(ended))
    }

    async fn replay(&self, thread: ThreadId, run: Option<RunId>) -> Result<ReplayReport, Error> {
        Ok(self.runner.replay(thread, run).await?)
    }
}

impl<S: State> Typed<S> {
    /// Returns the author node of an edit: the named one, or the one that ran last at a step, or at the head.
    async fn writer(
        &self,
        thread: ThreadId,
        as_node: Option<&str>,
        at: Option<u64>,
    ) -> Result<String, Error> {
        match as_node {
            Some("__start__") => Ok(INPUT.to_owned()),
            Some(node) => Ok(node.to_owned()),
            None => self.last_node(thread, at.map(|at| at.saturating_add(1))).await,
        }
    }

    /// Returns whether a thread pauses, or was just returned to a step or edited: then its next step has not started.
    async fn stands_between_steps(&self, thread: ThreadId) -> Result<bool, Error> {
        let store = self.runner.store();
        let info = store.info(thread).await?;
        if info.status == ThreadStatus::Interrupted {
            return Ok(self.runner.open_interrupts(thread).await?.is_empty());
        }
        let newest = store.history(thread, None, 1).await?.pop();
        let is_still =
            newest.is_some_and(|row| matches!(row.kind, StepKind::Fork | StepKind::Edit));
        Ok(is_still && store.effects(thread, Some(info.head + 1)).await?.is_empty())
    }

    /// Returns the node that ran last in a thread, or last before a step.
    async fn last_node(&self, thread: ThreadId, before: Option<u64>) -> Result<String, Error> {
        let mut before = before;
        loop {
            let row = self.runner.store().history(thread, before, 1).await?.pop();
            let Some(row) = row else { return Ok(INPUT.to_owned()) };
            let written = read_delta::<S>(thread, &row)?;
            before = match (forked_to(&row, &written), written.last()) {
                // It stands where that step left it.
                (Some(to), _) => Some(to + 1),
                (None, Some(one)) => return Ok(one.node.clone()),
                // It only fills the number of a step.
                (None, None) => Some(row.seq),
            };
        }
    }
}
