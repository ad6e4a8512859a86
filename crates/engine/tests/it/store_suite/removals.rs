//! Deleting and shortening threads, with forks that share their steps.

use perihelion_engine::checkpoint::{Claim, Fence};
use perihelion_engine::{
    checkpoint::{Error, NewThread, RunEnd, RunStatus, ThreadFilter, ThreadStatus},
    ids::ThreadId,
};

use super::{
    forks::fork,
    histories::seqs,
    on_every_store_sealed_too,
    stores::Fixture,
    writer::{Writer, new_thread},
};

on_every_store_sealed_too!(
    a_deleted_thread_is_gone_with_everything_of_it_and_its_subgraphs,
    deleting_a_thread_leaves_its_forks_whole,
    deleting_the_middle_of_three_generations_joins_the_outer_two,
    deleting_a_whole_family_but_the_youngest_keeps_its_history,
    a_fork_of_a_subgraphs_thread_survives_the_deletion_of_the_top,
    a_truncated_thread_preserves_the_steps_after_the_snapshot,
    truncating_needs_a_snapshot_at_that_step,
    truncating_a_thread_leaves_its_forks_whole,
    truncating_a_fork_leaves_its_source_whole,
    a_truncated_thread_can_be_forked_from_its_remaining_steps,
    a_thread_that_was_claimed_since_it_was_seen_is_not_deleted,
    a_run_that_begins_during_a_deletion_finds_no_thread_or_preserves_its_writes,
);

/// Everything a reader sees of a thread's steps.
async fn reading(on: &Fixture, thread: ThreadId) -> String {
    let mut seen = String::new();
    let head = on.store.info(thread).await.unwrap().head;
    for at in 0..=head {
        let loaded = on.store.load(thread, Some(at)).await.unwrap();
        seen += &format!("{at}: {:?} {:?}\n", loaded.snapshot, loaded.steps);
    }
    seen + &format!("{:?}", on.store.history(thread, None, 1000).await.unwrap())
}

async fn child_of(on: &Fixture, top: ThreadId, namespace: &str) -> Writer {
    let new = NewThread {
        id: top.child(namespace),
        root: Some(top),
        namespace: namespace.to_owned(),
        ..new_thread()
    };
    let mut child = Writer::claim(&on.store, on.store.create(new).await.unwrap().id).await;
    child.steps(3).await;
    child
}

async fn a_deleted_thread_is_gone_with_everything_of_it_and_its_subgraphs(on: &Fixture) {
    let top = Writer::with_steps(&on.store, 3).await;
    let child = child_of(on, top.thread, "team:1:0").await;
    let bystander = Writer::with_steps(&on.store, 3).await;
    on.store.put_snapshot(top.thread, &top.snapshot(2)).await.unwrap();
    on.store.begin_run(Fence::new(top.thread, top.fence), top.run, false).await.unwrap();
    on.store.save_pending(Fence::new(top.thread, top.fence), &top.pending(0), &[]).await.unwrap();
    let (id, question) = top.question(0);
    on.store
        .record_effects(Fence::new(top.thread, top.fence), std::slice::from_ref(&question))
        .await
        .unwrap();

    on.store.delete(top.thread).await.unwrap();
    for thread in [top.thread, child.thread] {
        let gone = on.store.load(thread, None).await;
        assert!(matches!(gone, Err(Error::UnknownThread(_))), "{gone:?}");
    }
    let answered = on.store.answer(id, &question.request).await;
    assert!(matches!(answered, Err(Error::UnknownInterrupt(_))), "{answered:?}");
    let all = ThreadFilter { with_children: true, ..ThreadFilter::default() };
    let listed = on.store.list(&all).await.unwrap();
    assert!(listed.iter().all(|info| info.id != top.thread && info.id != child.thread));
    assert_eq!(on.store.load(bystander.thread, None).await.unwrap().steps.len(), 3);

    // The id is free again, and nothing of the old thread shines through.
    on.store.create(NewThread { id: top.thread, ..new_thread() }).await.unwrap();
    let fresh = on.store.export(top.thread).await.unwrap();
    assert!(fresh.steps.is_empty() && fresh.effects.is_empty() && fresh.runs.is_empty());
    assert!(fresh.pending.is_empty() && fresh.children.is_empty());
}

async fn deleting_a_thread_leaves_its_forks_whole(on: &Fixture) {
    let mut source = Writer::with_steps(&on.store, 8).await;
    on.store.put_snapshot(source.thread, &source.snapshot(3)).await.unwrap();
    on.store.put_snapshot(source.thread, &source.snapshot(7)).await.unwrap();
    let mut late = fork(on, source.thread, 6).await;
    late.steps(2).await;
    let early = fork(on, source.thread, 2).await;
    let empty = fork(on, source.thread, 0).await;
    source.steps(1).await;
    let forks = [late.thread, early.thread, empty.thread];
    let mut before = Vec::new();
    for thread in forks {
        before.push(reading(on, thread).await);
    }
    on.store.delete(source.thread).await.unwrap();
    for (thread, before) in forks.into_iter().zip(before) {
        assert_eq!(reading(on, thread).await, before);
        assert_eq!(on.store.info(thread).await.unwrap().forked_from, None);
    }
    late.steps(1).await;
    assert_eq!(on.store.load(late.thread, None).await.unwrap().info.head, 9);
}

async fn deleting_the_middle_of_three_generations_joins_the_outer_two(on: &Fixture) {
    let first = Writer::with_steps(&on.store, 6).await;
    let mut second = fork(on, first.thread, 4).await;
    second.steps(4).await;
    let mut above = fork(on, second.thread, 7).await;
    above.steps(1).await;
    let below = fork(on, second.thread, 2).await;
    let before = [reading(on, above.thread).await, reading(on, below.thread).await];
    on.store.delete(second.thread).await.unwrap();
    assert_eq!([reading(on, above.thread).await, reading(on, below.thread).await], before);
    let origin = on.store.info(above.thread).await.unwrap().forked_from;
    assert_eq!(origin, Some((first.thread, 4)));
    let origin = on.store.info(below.thread).await.unwrap().forked_from;
    assert_eq!(origin, Some((first.thread, 2)));
    if let Some(own) = on.own_steps(above.thread).await {
        assert_eq!(own, 4, "three handed over, one of its own");
        assert_eq!(on.own_steps(below.thread).await, Some(0));
    }
}

async fn deleting_a_whole_family_but_the_youngest_keeps_its_history(on: &Fixture) {
    let mut line = vec![Writer::with_steps(&on.store, 3).await];
    for _ in 0..4 {
        let parent = line.last().unwrap();
        let mut next = fork(on, parent.thread, parent.head - 1).await;
        next.steps(3).await;
        line.push(next);
    }
    let youngest = line.pop().unwrap().thread;
    let before = reading(on, youngest).await;
    for doomed in [2, 0, 1, 0].map(|at| line.remove(at).thread) {
        on.store.delete(doomed).await.unwrap();
        assert_eq!(reading(on, youngest).await, before);
    }
}

async fn a_fork_of_a_subgraphs_thread_survives_the_deletion_of_the_top(on: &Fixture) {
    let top = Writer::with_steps(&on.store, 1).await;
    let one = child_of(on, top.thread, "team:1:0").await;
    let sibling =
        NewThread { root: Some(top.thread), namespace: "team:1:1".to_owned(), ..new_thread() };
    let sibling = on.store.fork(one.thread, 2, sibling).await.unwrap().id;
    let mut sibling = Writer::claim(&on.store, sibling).await;
    sibling.steps(3).await;
    let free = fork(on, sibling.thread, 4).await;
    let before = reading(on, free.thread).await;
    on.store.delete(top.thread).await.unwrap();
    assert_eq!(reading(on, free.thread).await, before);
    assert!(on.store.info(sibling.thread).await.is_err());
}

async fn a_truncated_thread_preserves_the_steps_after_the_snapshot(on: &Fixture) {
    let mut writer = Writer::new(&on.store).await;
    for seq in 1..=8 {
        let call = writer.tool_call(seq);
        on.store
            .record_effects(Fence::new(writer.thread, writer.fence), std::slice::from_ref(&call))
            .await
            .unwrap();
        writer.steps(1).await;
    }
    for seq in [2, 5, 7] {
        on.store.put_snapshot(writer.thread, &writer.snapshot(seq)).await.unwrap();
    }
    on.store.truncate(writer.thread, 5).await.unwrap();
    for at in 5..=8 {
        let loaded = on.store.load(writer.thread, Some(at)).await.unwrap();
        assert_eq!(loaded.snapshot.unwrap().seq, if at < 7 { 5 } else { 7 });
    }
    for at in [0, 1, 4] {
        let refused = on.store.load(writer.thread, Some(at)).await;
        assert!(matches!(refused, Err(Error::UnknownStep { head: 8, .. })), "{refused:?}");
    }
    let history = on.store.history(writer.thread, None, 100).await.unwrap();
    assert_eq!(seqs(&history), [8, 7, 6]);
    let effects = on.store.effects(writer.thread, None).await.unwrap();
    assert_eq!(effects.iter().map(|it| it.step).collect::<Vec<_>>(), [6, 7, 8]);
    // A snapshot that was still being written for a dropped step is of no use.
    on.store.put_snapshot(writer.thread, &writer.snapshot(3)).await.unwrap();
    assert!(on.store.load(writer.thread, Some(4)).await.is_err());
    writer.steps(1).await;
    on.store.truncate(writer.thread, 7).await.unwrap();
    assert_eq!(seqs(&on.store.load(writer.thread, None).await.unwrap().steps), [8, 9]);
}

async fn truncating_needs_a_snapshot_at_that_step(on: &Fixture) {
    let writer = Writer::with_steps(&on.store, 4).await;
    on.store.put_snapshot(writer.thread, &writer.snapshot(2)).await.unwrap();
    let branch = fork(on, writer.thread, 3).await;
    for seq in [0, 1, 3, 5] {
        let refused = on.store.truncate(writer.thread, seq).await;
        assert!(matches!(refused, Err(Error::UnknownStep { .. })), "{refused:?}");
    }
    assert_eq!(on.store.history(writer.thread, None, 10).await.unwrap().len(), 4);
    let origin = on.store.info(branch.thread).await.unwrap().forked_from;
    assert_eq!(origin, Some((writer.thread, 3)), "a refused truncation changes nothing");
}

async fn truncating_a_thread_leaves_its_forks_whole(on: &Fixture) {
    let source = Writer::with_steps(&on.store, 8).await;
    on.store.put_snapshot(source.thread, &source.snapshot(2)).await.unwrap();
    on.store.put_snapshot(source.thread, &source.snapshot(5)).await.unwrap();
    let mut late = fork(on, source.thread, 7).await;
    late.steps(1).await;
    let early = fork(on, source.thread, 3).await;
    let before = [reading(on, late.thread).await, reading(on, early.thread).await];
    on.store.truncate(source.thread, 5).await.unwrap();
    assert_eq!([reading(on, late.thread).await, reading(on, early.thread).await], before);
    assert_eq!(seqs(&on.store.load(source.thread, None).await.unwrap().steps), [6, 7, 8]);
}

async fn truncating_a_fork_leaves_its_source_whole(on: &Fixture) {
    let source = Writer::with_steps(&on.store, 8).await;
    on.store.put_snapshot(source.thread, &source.snapshot(4)).await.unwrap();
    let mut branch = fork(on, source.thread, 6).await;
    branch.steps(2).await;
    let before = reading(on, source.thread).await;
    on.store.truncate(branch.thread, 4).await.unwrap();
    assert_eq!(reading(on, source.thread).await, before);
    let loaded = on.store.load(branch.thread, None).await.unwrap();
    assert_eq!(loaded.snapshot.unwrap().seq, 4);
    assert_eq!(seqs(&loaded.steps), [5, 6, 7, 8]);
    on.store.delete(source.thread).await.unwrap();
    assert_eq!(seqs(&on.store.load(branch.thread, Some(7)).await.unwrap().steps), [5, 6, 7]);
}

async fn a_truncated_thread_can_be_forked_from_its_remaining_steps(on: &Fixture) {
    let source = Writer::with_steps(&on.store, 6).await;
    on.store.put_snapshot(source.thread, &source.snapshot(3)).await.unwrap();
    on.store.truncate(source.thread, 3).await.unwrap();
    let refused = on.store.fork(source.thread, 2, new_thread()).await;
    assert!(matches!(refused, Err(Error::UnknownStep { seq: 2, .. })), "{refused:?}");
    let mut branch = fork(on, source.thread, 4).await;
    branch.steps(1).await;
    on.store.delete(source.thread).await.unwrap();
    let loaded = on.store.load(branch.thread, None).await.unwrap();
    assert_eq!(loaded.snapshot.unwrap().seq, 3);
    assert_eq!(seqs(&loaded.steps), [4, 5]);
    assert!(on.store.load(branch.thread, Some(2)).await.is_err());
}

/// X4
async fn a_thread_that_was_claimed_since_it_was_seen_is_not_deleted(on: &Fixture) {
    let thread = on.store.create(new_thread()).await.unwrap().id;
    let mut seen = on.store.info(thread).await.unwrap();
    let mut writer = Writer::claim(&on.store, thread).await;
    for change in 0..4 {
        match change {
            0 => {}
            1 => writer.steps(1).await,
            2 => {
                let run = RunStatus::Done;
                let status = ThreadStatus::Idle;
                let end = on.store.end_run(
                    Fence::new(thread, writer.fence),
                    writer.run,
                    RunEnd::new(run, status),
                );
                end.await.unwrap();
            }
            _ => drop(Writer::claim(&on.store, thread).await),
        }
        let refused = on.store.delete_as_seen(&seen).await;
        assert!(
            matches!(refused, Err(Error::Moved { thread: it }) if it == thread),
            "{change}: {refused:?}"
        );
        seen = on.store.info(thread).await.unwrap();
    }
    on.store.delete_as_seen(&seen).await.unwrap();
    let gone = on.store.delete_as_seen(&seen).await;
    assert!(matches!(gone, Err(Error::UnknownThread(_))), "{gone:?}");
}

async fn a_run_that_begins_during_a_deletion_finds_no_thread_or_preserves_its_writes(on: &Fixture) {
    for _ in 0..20 {
        let seen = on.store.create(new_thread()).await.unwrap();
        let run = async {
            let info = on.store.claim(Claim::new(seen.id, "tester", super::writer::TTL)).await?;
            let mut writer = Writer::claimed(&on.store, seen.id, info.fence, 0);
            writer.steps(1).await;
            Ok(())
        };
        let (deleted, run): (_, Result<(), Error>) =
            tokio::join!(on.store.delete_as_seen(&seen), run);
        match (&deleted, &run) {
            (Ok(()), Err(Error::UnknownThread(_))) => {}
            (Err(Error::Moved { .. }), Ok(())) => {
                assert_eq!(on.store.load(seen.id, None).await.unwrap().steps.len(), 1);
            }
            other => panic!("{other:?}"),
        }
    }
}
