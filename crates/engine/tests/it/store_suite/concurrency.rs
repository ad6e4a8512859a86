//! Many writers at once, through several connections.

use std::sync::Arc;

use perihelion_engine::checkpoint::{Claim, Error, Fence, Store};
use serde_json::json;

use super::{
    on_every_store,
    stores::Fixture,
    writer::{TTL, Writer, encoded, new_thread},
};

on_every_store!(
    of_writers_racing_for_one_head_exactly_one_wins_each_step,
    takeovers_leave_no_gap_and_no_foreign_step,
    threads_advance_side_by_side,
    parallel_tasks_record_their_effects_side_by_side,
);

async fn several(on: &Fixture) -> Vec<Arc<dyn Store>> {
    vec![on.another().await, on.another().await, on.another().await]
}

async fn of_writers_racing_for_one_head_exactly_one_wins_each_step(on: &Fixture) {
    let writer = Writer::new(&on.store).await;
    let thread = writer.thread;
    let fence = writer.fence;
    let racers = several(on).await.into_iter().cycle().take(9).map(|store| {
        tokio::spawn(async move {
            let mut won = Vec::new();
            while won.len() < 100 {
                let head = store.info(thread).await.unwrap().head;
                if head >= 20 {
                    break;
                }
                let mut racer = Writer::claimed(&store, thread, fence, head);
                let commit = racer.next(encoded(&json!([])));
                match racer.commit(&commit).await {
                    Ok(()) => won.push((head + 1, racer.run)),
                    Err(error) => assert!(matches!(error, Error::Conflict { .. }), "{error}"),
                }
            }
            won
        })
    });
    let mut won = Vec::new();
    for racer in futures::future::join_all(racers).await {
        won.extend(racer.unwrap());
    }
    won.sort_unstable();
    let steps = on.store.load(thread, None).await.unwrap().steps;
    let stored: Vec<_> = steps.iter().map(|step| (step.seq, step.run)).collect();
    assert_eq!(stored, won, "each step was acknowledged to exactly the one who wrote it");
    assert!(stored.len() >= 20);
}

/// X4
async fn takeovers_leave_no_gap_and_no_foreign_step(on: &Fixture) {
    let thread = on.store.create(new_thread()).await.unwrap().id;
    let all_claimed = Arc::new(tokio::sync::Barrier::new(3));
    let robbers = several(on).await.into_iter().enumerate().map(|(n, store)| {
        let all_claimed = Arc::clone(&all_claimed);
        tokio::spawn(async move {
            let mut acknowledged = Vec::new();
            let mut fenced = 0;
            for round in 0..8 {
                let info =
                    store.claim(Claim::new(thread, &format!("p{n}"), TTL).forced()).await.unwrap();
                // However they are scheduled, two of the three have been robbed before they write.
                if round == 0 {
                    all_claimed.wait().await;
                }
                let mut writer = Writer::claimed(&store, thread, info.fence, info.head);
                for _ in 0..4 {
                    let commit = writer.next(encoded(&json!([n])));
                    match writer.commit(&commit).await {
                        Ok(()) => acknowledged.push((commit.step.seq, commit.step.run)),
                        Err(Error::Fenced { .. }) => {
                            fenced += 1;
                            break;
                        }
                        Err(other) => panic!("{other}"),
                    }
                }
            }
            (acknowledged, fenced)
        })
    });
    let mut acknowledged = Vec::new();
    let mut fenced = 0;
    for robber in futures::future::join_all(robbers).await {
        let (steps, refused) = robber.unwrap();
        acknowledged.extend(steps);
        fenced += refused;
    }
    assert!((2..24).contains(&fenced), "{fenced} of 24 holders were refused; the last is not");
    let whole = 4 * (24 - fenced);
    assert!(acknowledged.len() >= whole, "who was not robbed wrote all that it had: {whole}");
    acknowledged.sort_unstable();
    let steps = on.store.load(thread, None).await.unwrap().steps;
    let stored: Vec<_> = steps.iter().map(|step| (step.seq, step.run)).collect();
    assert_eq!(stored, acknowledged);
    assert_eq!(on.store.info(thread).await.unwrap().fence, 24);
}

async fn threads_advance_side_by_side(on: &Fixture) {
    let stores = several(on).await;
    let writers = (0..24).map(|n: usize| {
        let store = stores[n % 3].clone();
        tokio::spawn(async move { Writer::with_steps(&store, 10).await.thread })
    });
    for writer in futures::future::join_all(writers).await {
        let thread = writer.unwrap();
        assert_eq!(on.store.load(thread, None).await.unwrap().steps.len(), 10);
    }
}

async fn parallel_tasks_record_their_effects_side_by_side(on: &Fixture) {
    let writer = Arc::new(Writer::new(&on.store).await);
    let tasks = (0..12).map(|task| {
        let writer = Arc::clone(&writer);
        tokio::spawn(async move {
            let mut call = writer.tool_call(task);
            call.task = task;
            writer
                .store
                .record_effects(
                    Fence::new(writer.thread, writer.fence),
                    std::slice::from_ref(&call),
                )
                .await
                .unwrap();
            let row = writer.pending(task);
            writer
                .store
                .save_pending(Fence::new(writer.thread, writer.fence), &row, &[])
                .await
                .unwrap();
        })
    });
    for task in futures::future::join_all(tasks).await {
        task.unwrap();
    }
    assert_eq!(on.store.effects(writer.thread, Some(1)).await.unwrap().len(), 12);
    assert_eq!(on.store.load(writer.thread, None).await.unwrap().pending.len(), 12);
}
