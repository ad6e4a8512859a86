//! The log of a store: ids, fences, and what becomes of a batch that does not fit.

use perihelion_engine::checkpoint::{Error, EventPosition, EventRow, Fence};
use serde_json::json;

use super::bus;
use crate::store_suite::stores::Fixture;
use crate::store_suite::writer::{Writer, encoded, new_thread};

crate::store_suite::on_every_store_sealed_too!(
    batches_are_returned_as_they_were_published,
    a_process_that_lost_the_thread_publishes_no_event,
    a_batch_that_does_not_follow_the_newest_is_refused_and_a_repeated_one_is_not,
    events_go_with_their_thread,
);

fn batch(writer: &Writer, first: u64, count: u32) -> EventRow {
    let events: Vec<_> = (first..first + u64::from(count)).map(|id| json!({ "n": id })).collect();
    let body = encoded(&json!(events));
    EventRow { first, count, run: writer.run, step: first, body, at: chrono::DateTime::UNIX_EPOCH }
}

async fn batches_are_returned_as_they_were_published(on: &Fixture) {
    let writer = Writer::new(&on.store).await;
    let bus = bus(on, &on.store);
    let mut first = 1;
    for count in [1, 3, 2] {
        let batch = batch(&writer, first, count);
        bus.publish(Fence::new(writer.thread, writer.fence), &batch).await.unwrap();
        first += u64::from(count);
    }
    let mark = on.store.event_position(writer.thread).await.unwrap();
    assert_eq!(mark, EventPosition { last: 6, step: 5 });
    for after in 0..=7 {
        let heard_events = bus.read(writer.thread, after).await.unwrap();
        let numbers: Vec<u64> = heard_events
            .iter()
            .map(|heard_events| heard_events.event["n"].as_u64().unwrap())
            .collect();
        assert_eq!(numbers, (after + 1..=6).collect::<Vec<_>>());
        assert!(heard_events.iter().all(|heard_events| heard_events.run == writer.run
            && heard_events.event["n"] == heard_events.id));
    }
    let rows = on.store.events_after(writer.thread, 2, 1).await.unwrap();
    assert_eq!((rows.len(), rows[0].first, rows[0].last()), (1, 2, 4));
}

async fn a_process_that_lost_the_thread_publishes_no_event(on: &Fixture) {
    let zombie = Writer::new(&on.store).await;
    let bus = bus(on, &on.store);
    bus.publish(Fence::new(zombie.thread, zombie.fence), &batch(&zombie, 1, 2)).await.unwrap();
    let heir = Writer::claim(&on.store, zombie.thread).await;
    let heard_events =
        bus.publish(Fence::new(zombie.thread, zombie.fence), &batch(&zombie, 3, 1)).await;
    assert!(matches!(heard_events, Err(Error::Fenced { .. })), "{heard_events:?}");
    // Not even what it told before it lost the thread.
    let heard_events =
        bus.publish(Fence::new(zombie.thread, zombie.fence), &batch(&zombie, 1, 2)).await;
    assert!(matches!(heard_events, Err(Error::Fenced { .. })), "{heard_events:?}");
    assert_eq!(bus.read(zombie.thread, 2).await.unwrap(), []);
    bus.publish(Fence::new(heir.thread, heir.fence), &batch(&heir, 3, 1)).await.unwrap();
    let heard_events = bus.read(heir.thread, 2).await.unwrap();
    assert_eq!((heard_events.len(), heard_events[0].run), (1, heir.run));
}

async fn a_batch_that_does_not_follow_the_newest_is_refused_and_a_repeated_one_is_not(
    on: &Fixture,
) {
    let writer = Writer::new(&on.store).await;
    let thread = writer.thread;
    let fence = writer.fence;
    let store = &on.store;
    store.append_events(Fence::new(thread, fence), &batch(&writer, 1, 2)).await.unwrap();
    store.append_events(Fence::new(thread, fence), &batch(&writer, 1, 2)).await.unwrap();
    for (first, count) in [(4, 1), (2, 1), (1, 3)] {
        let heard_events =
            store.append_events(Fence::new(thread, fence), &batch(&writer, first, count)).await;
        assert!(matches!(heard_events, Err(Error::EventGap { last: 2, .. })), "{heard_events:?}");
    }
    assert_eq!(store.event_position(thread).await.unwrap(), EventPosition { last: 2, step: 1 });
    assert_eq!(store.events_after(thread, 0, 9).await.unwrap().len(), 1);
}

async fn events_go_with_their_thread(on: &Fixture) {
    let writer = Writer::new(&on.store).await;
    let thread = writer.thread;
    let store = &on.store;
    store.append_events(Fence::new(thread, writer.fence), &batch(&writer, 1, 1)).await.unwrap();
    store.delete(thread).await.unwrap();
    let gone = store.events_after(thread, 0, 9).await;
    assert!(matches!(gone, Err(Error::UnknownThread(_))), "{gone:?}");
    let gone = store.event_position(thread).await;
    assert!(matches!(gone, Err(Error::UnknownThread(_))), "{gone:?}");
    let again = perihelion_engine::checkpoint::NewThread { id: thread, ..new_thread() };
    store.create(again).await.unwrap();
    assert_eq!(store.event_position(thread).await.unwrap(), EventPosition::default());
    assert_eq!(store.events_after(thread, 0, 9).await.unwrap(), []);
}
