//! Moves of a server's connection.

use std::sync::Arc;
use std::time::Duration;

use super::opening::{Connection, FreeSlot, SessionSlot};
use crate::catalog::listing_tests::empty as listing;
use crate::transport::silent_tests::session;
use crate::types::Error;

fn free(connection: &mut Connection) -> FreeSlot<'_> {
    match connection.place() {
        SessionSlot::Free(place) => place,
        SessionSlot::Taken(_) => panic!("a session stands"),
    }
}

#[tokio::test]
async fn a_second_session_waits_until_the_first_one_is_closed() {
    let mut connection = Connection::default();
    let (session, server) = session().await;
    free(&mut connection).greeted(session.clone());
    assert!(
        matches!(connection.place(), SessionSlot::Taken(taken) if Arc::ptr_eq(&taken, &session))
    );
    assert!(connection.opened().is_none(), "nothing is called before it told its tools");
    assert!(connection.listed(&session, listing()) && connection.opened().is_some());
    assert!(matches!(connection.place(), SessionSlot::Taken(_)));
    connection.close(Duration::ZERO).await;
    assert!(!session.is_open(), "it was closed, not only forgotten");
    server.await.unwrap();
    free(&mut connection);
}

#[tokio::test]
async fn tools_of_a_closed_session_are_ignored() {
    let mut connection = Connection::default();
    let (first, _one) = session().await;
    let (second, _two) = session().await;
    free(&mut connection).greeted(first.clone());
    connection.close(Duration::ZERO).await;
    assert!(!connection.listed(&first, listing()) && connection.opened().is_none());
    free(&mut connection).greeted(second.clone());
    assert!(!connection.listed(&first, listing()) && connection.opened().is_none());
    assert!(connection.is_on(&second) && !connection.is_on(&first));
}

#[tokio::test]
async fn a_session_that_was_left_ends_with_its_last_call() {
    let mut connection = Connection::default();
    let (session, server) = session().await;
    free(&mut connection).greeted(session.clone());
    connection.leave(&session);
    assert!(session.is_open());
    free(&mut connection);
    drop(session);
    server.await.unwrap();
}

#[tokio::test]
async fn a_failure_reaches_all_waiting_callers_and_is_cleared_by_the_next_session() {
    let mut connection = Connection::default();
    let error = Error::Start { server: "x".into(), reason: "it is not there".into() };
    connection.failed(error.clone());
    assert_eq!(connection.failure(), Some(&error));
    let (session, _server) = session().await;
    free(&mut connection).greeted(session.clone());
    assert_eq!(connection.failure(), None);
    connection.failed(error);
    assert!(connection.is_on(&session), "a session that stands, stands all the same");
}
