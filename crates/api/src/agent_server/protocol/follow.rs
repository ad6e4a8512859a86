//! Follows a thread over all its runs, from the first on or from where a client heard of it last.

use std::collections::VecDeque;

use serde_json::Value;

use super::super::wire;
use super::events::{Event, Shown};
use super::stream::Wanted;
use perihelion_engine::ids::ThreadId;
use perihelion_service::kept::Run;
use perihelion_service::{BegunRuns, Error, Listener, Next, Service};

/// Follows one thread for one client.
pub(super) struct Follower {
    service: Service,
    thread: ThreadId,
    wanted: Wanted,
    /// The run that is followed, and how it is shown.
    now: Option<(Listener, Shown)>,
    runs: BegunRuns,
    /// The newest run that was passed over because the client has heard it.
    passed: Option<Run>,
    /// The run that was found after it.
    next: Option<Run>,
    /// The questions that the run before was left with.
    asked: Vec<String>,
    ready: VecDeque<Event>,
}

impl Follower {
    pub(super) fn new(service: &Service, thread: ThreadId, wanted: Wanted) -> Self {
        Self {
            service: service.clone(),
            thread,
            wanted,
            now: None,
            runs: service.begun_runs(thread),
            passed: None,
            next: None,
            asked: Vec::new(),
            ready: VecDeque::new(),
        }
    }

    /// Waits for the next event that the client wants.
    ///
    /// It may be dropped at any moment, and loses nothing by that.
    ///
    /// # Errors
    /// Whatever the store reports.
    pub(super) async fn next(&mut self) -> Result<Event, Error> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(event);
            }
            match &mut self.now {
                None => self.await_run().await?,
                Some((listener, shown)) => match listener.next().await? {
                    Next::Change(heard) => {
                        let events = shown.of(&heard);
                        self.put(events);
                    }
                    Next::Ended(run) => self.end(*run).await?,
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
        let wanted = &self.wanted;
        self.ready.extend(events.into_iter().filter(|event| wanted.wants(event)));
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

    /// Looks for the run after the last one, and waits for a sign of it where there is none.
    async fn await_run(&mut self) -> Result<(), Error> {
        let run = match self.next.take() {
            Some(run) => run,
            None => {
                let Some(run) = self.runs.next().await? else { return Ok(()) };
                run
            }
        };
        // Nothing is waited for from here on, so that no run is taken and lost.
        if self.wanted.has_heard(&run) {
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
