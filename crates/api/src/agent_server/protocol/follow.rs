//! Follows a thread over all its runs, from the first one or from the client's last event.

use std::collections::{BTreeMap, VecDeque};

use serde_json::Value;

use super::super::wire;
use super::events::{Event, PLACES, Shown};
use super::stream::Wanted;
use perihelion_engine::ids::ThreadId;
use perihelion_service::kept::Run;
use perihelion_service::{BegunRuns, Error, Listener, Next, Service};

/// Follows one thread for all subscriptions of one connection, whose client therefore gets the end of a run after all
/// other events of it.
pub(super) struct Follower {
    service: Service,
    thread: ThreadId,
    wanted: BTreeMap<String, Wanted>,
    /// The last returned event since the newest subscription, by its `seq`.
    at: u64,
    /// The run that is followed, and how it is shown.
    now: Option<(Listener, Shown)>,
    runs: BegunRuns,
    /// The newest run that was skipped because the client has its events.
    passed: Option<Run>,
    next: Option<Run>,
    /// The questions that the run before was left with.
    asked: Vec<String>,
    ready: VecDeque<Event>,
}

impl Follower {
    pub(super) fn new(service: &Service, thread: ThreadId) -> Self {
        Self {
            service: service.clone(),
            thread,
            wanted: BTreeMap::new(),
            at: 0,
            now: None,
            runs: service.begun_runs(thread, 0),
            passed: None,
            next: None,
            asked: Vec::new(),
            ready: VecDeque::new(),
        }
    }

    /// Adds a subscription: it gets what has happened so far, and the others miss and repeat nothing.
    pub(super) fn subscribe(&mut self, id: String, wanted: Wanted) {
        let mut all = std::mem::take(&mut self.wanted);
        // One that was further on before this pass stays there.
        all.values_mut().for_each(|one| one.after(self.at));
        all.insert(id, wanted);
        // Runs of which each subscription has all events are not read again.
        let since = all.values().map(|one| one.since.unwrap_or_default()).min();
        let runs = self.service.begun_runs(self.thread, since.unwrap_or_default() / PLACES);
        *self = Self { wanted: all, runs, ..Self::new(&self.service, self.thread) };
    }

    /// Ends a subscription; returns whether there was one with this ID.
    pub(super) fn unsubscribe(&mut self, id: &str) -> bool {
        self.wanted.remove(id).is_some()
    }

    pub(super) fn len(&self) -> usize {
        self.wanted.len()
    }

    /// Waits for the next event that the client wants.
    ///
    /// It can be dropped at any time without losing events.
    pub(super) async fn next(&mut self) -> Result<Event, Error> {
        loop {
            if self.wanted.is_empty() {
                std::future::pending::<()>().await;
            }
            if let Some(event) = self.ready.pop_front() {
                self.at = event.seq;
                return Ok(event);
            }
            match &mut self.now {
                None => self.await_run().await?,
                // On the heap, as the end is: otherwise each idle stream has room for it.
                Some((listener, shown)) => match Box::pin(listener.next()).await? {
                    Next::Change(heard) => {
                        let events = shown.of(&heard);
                        self.put(events);
                    }
                    Next::Ended(run) => Box::pin(self.end(*run)).await?,
                    Next::Gone => {
                        let gone = shown.gone();
                        self.put(vec![gone]);
                        self.now = None;
                    }
                },
            }
        }
    }

    fn put(&mut self, events: Vec<Event>) {
        let is_wanted = |event: &Event| self.wanted.values().any(|one| one.wants(event));
        self.ready.extend(events.into_iter().filter(is_wanted));
    }

    async fn end(&mut self, run: Run) -> Result<(), Error> {
        let has_heard = self.now.as_ref().is_some_and(|(_, shown)| shown.has_heard());
        let mut values: Option<Value> = None;
        // What the log no longer has: of the newest run the state is known.
        if !has_heard
            && run.last_event > run.first_event
            && self.service.step_after(&run).await?.is_none()
        {
            let state = self.service.thread(self.thread).await?.state;
            values = state.as_ref().map(wire::values);
        }
        if let Some((_, mut shown)) = self.now.take() {
            let events = shown.ended(&run, values);
            self.put(events);
            self.asked = shown.into_asked();
        }
        Ok(())
    }

    /// Looks for the run after the last one, and waits for a sign of it if there is none.
    async fn await_run(&mut self) -> Result<(), Error> {
        let run = match self.next.take() {
            Some(run) => run,
            None => {
                let Some(run) = self.runs.next().await? else { return Ok(()) };
                run
            }
        };
        // Nothing is waited for from here on, so that no run is taken and lost.
        if self.wanted.values().all(|one| one.has_heard(&run)) {
            self.passed = Some(run);
            return Ok(());
        }
        let shown = Shown::new(run.clone());
        match self.passed.take() {
            // What it was left with is what this one answers.
            Some(passed) if shown.answers() => {
                self.next = Some(run);
                self.follow(Shown::new(passed.clone()), passed);
            }
            _ => self.follow(shown, run),
        }
        Ok(())
    }

    fn follow(&mut self, shown: Shown, run: Run) {
        let begun = shown.begun(&self.asked);
        self.now = Some((self.service.listen_from_beginning(run), shown));
        self.put(begun);
    }
}
