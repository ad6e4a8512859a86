//! What can be told of a server at any time, without waiting for it.

use std::sync::Arc;

use crate::catalog::listing::Listing;
use crate::types::{Error, Phase};

/// What can be told of a server at any time, without waiting for it.
#[derive(Default)]
pub(super) struct View {
    tools: Tools,
    attempt: Attempt,
}

/// What is known of its tools.
#[derive(Default)]
enum Tools {
    #[default]
    Unknown,
    /// Those of the server before it under this name, until it has told its own.
    Before(Arc<Listing>),
    /// Its own, as it told them last, here or at an earlier time.
    Own(Arc<Listing>),
}

/// What became of its connection.
#[derive(Default)]
enum Attempt {
    #[default]
    Untried,
    Running,
    /// It was running, and ended or was stopped.
    Stopped,
    /// It could not be started, or is not to be called; why.
    Failed(String),
}

impl View {
    /// Returns the tools that it told itself.
    pub fn own_tools(&self) -> Option<&Arc<Listing>> {
        match &self.tools {
            Tools::Own(listing) => Some(listing),
            Tools::Before(_) | Tools::Unknown => None,
        }
    }

    /// Returns the tools under which it stands in the menu: its own, or until then those of the server before it.
    pub fn shown(&self) -> Option<&Arc<Listing>> {
        match &self.tools {
            Tools::Own(listing) | Tools::Before(listing) => Some(listing),
            Tools::Unknown => None,
        }
    }

    /// Takes tools that it told at an earlier time.
    pub fn remember(&mut self, listing: Arc<Listing>) {
        self.tools = Tools::Own(listing);
    }

    /// Takes the tools of the server before it under this name.
    pub fn stand_in(&mut self, before: Arc<Listing>) {
        if self.own_tools().is_none() {
            self.tools = Tools::Before(before);
        }
    }

    /// Notes that it is connected and has told its tools.
    pub fn run(&mut self, listing: Arc<Listing>) {
        self.tools = Tools::Own(listing);
        self.attempt = Attempt::Running;
    }

    /// Notes that its connection ended; of one that failed the reason stays.
    pub fn stop(&mut self) {
        if matches!(self.attempt, Attempt::Running) {
            self.attempt = Attempt::Stopped;
        }
    }

    /// Notes that it could not be started, or is not to be called.
    pub fn fail(&mut self, error: &Error) {
        self.attempt = Attempt::Failed(error.to_string());
        let is_known = matches!(self.tools, Tools::Own(_));
        // What it was trusted to say is not what would be called.
        if !is_known || error.is_quarantine() {
            self.tools = Tools::Unknown;
        }
    }

    /// Returns why it could not be started, or is not to be called.
    pub fn failure(&self) -> Option<&str> {
        match &self.attempt {
            Attempt::Failed(reason) => Some(reason),
            Attempt::Untried | Attempt::Running | Attempt::Stopped => None,
        }
    }

    /// Returns whether the connection stands; none before it was tried, and while it is stopped on purpose.
    pub fn stands(&self) -> Option<bool> {
        match self.attempt {
            Attempt::Running => Some(true),
            Attempt::Failed(_) => Some(false),
            Attempt::Untried | Attempt::Stopped => None,
        }
    }

    /// Returns what it is doing.
    pub fn phase(&self) -> Phase {
        match &self.attempt {
            Attempt::Running => Phase::Running,
            Attempt::Failed(_) => Phase::Failed,
            _ if self.own_tools().is_none() => Phase::New,
            Attempt::Stopped => Phase::Stopped,
            Attempt::Untried => Phase::Cached,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::listing_tests::empty as listing;

    fn failure() -> Error {
        Error::Start { server: "x".into(), reason: "it is not there".into() }
    }

    #[test]
    fn a_server_stands_as_what_became_of_its_connection_and_one_that_failed_until_it_runs_again() {
        let mut view = View::default();
        assert_eq!((view.phase(), view.stands()), (Phase::New, None));
        view.remember(listing());
        assert_eq!((view.phase(), view.stands()), (Phase::Cached, None));
        view.stop();
        assert_eq!(view.phase(), Phase::Cached, "it never ran");
        view.run(listing());
        assert_eq!((view.phase(), view.stands()), (Phase::Running, Some(true)));
        view.stop();
        assert_eq!((view.phase(), view.stands()), (Phase::Stopped, None));
        view.fail(&failure());
        view.stop();
        assert_eq!((view.phase(), view.stands()), (Phase::Failed, Some(false)));
        assert!(view.failure().is_some_and(|reason| reason.contains("not there")));
        assert!(view.own_tools().is_some(), "its agent stays");
        view.run(listing());
        assert_eq!((view.phase(), view.failure()), (Phase::Running, None));
    }

    #[test]
    fn the_tools_of_the_server_before_it_stand_in_the_menu_until_it_told_its_own_or_failed() {
        let mut view = View::default();
        view.stand_in(listing());
        assert!(view.shown().is_some() && view.own_tools().is_none());
        assert_eq!(view.phase(), Phase::New);
        view.fail(&failure());
        assert!(view.shown().is_none());
        view.remember(listing());
        view.stand_in(listing());
        assert!(view.own_tools().is_some(), "its own go before");
        let quarantined = Error::Quarantined { server: "x".into(), reason: "other tools".into() };
        view.fail(&quarantined);
        assert!(view.shown().is_none(), "what it was trusted to say is not what would be called");
    }
}
