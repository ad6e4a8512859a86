//! Who may write: leases and fencing tokens.

use perihelion_engine::checkpoint::{Claim, Fence};
use std::time::Duration;

use perihelion_engine::{
    checkpoint::{EffectSettlement, EffectStatus, Error, RunEnd, RunStatus, ThreadStatus},
    ids::{RunId, ThreadId},
};
use serde_json::json;

use super::{
    on_every_store_sealed_too,
    stores::Fixture,
    writer::{TTL, Writer, encoded, new_thread},
};

on_every_store_sealed_too!(
    a_lease_refuses_other_processes_and_names_the_holder,
    a_lease_that_has_run_out_is_free,
    a_forced_claim_takes_a_held_lease,
    a_renewal_extends_the_lease,
    a_renewal_after_the_end_of_a_run_locks_no_row,
    a_stale_writer_changes_no_row_by_any_method,
    an_ended_run_gives_the_lease_back,
    a_very_long_lease_is_accepted,
    claiming_an_unknown_thread_is_refused,
    of_many_claims_at_once_exactly_one_wins,
);

async fn a_lease_refuses_other_processes_and_names_the_holder(on: &Fixture) {
    let thread = on.store.create(new_thread()).await.unwrap().id;
    let claimed = on.store.claim(Claim::new(thread, "host-a:17", TTL)).await.unwrap();
    assert_eq!((claimed.fence, claimed.status), (1, ThreadStatus::Busy));
    assert_eq!(claimed.owner.as_deref(), Some("host-a:17"));
    match on.store.claim(Claim::new(thread, "host-b:18", TTL)).await {
        Err(Error::Busy { owner, until, .. }) => {
            assert_eq!(owner, "host-a:17");
            assert_eq!(Some(until), claimed.lease_until);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(on.store.info(thread).await.unwrap(), claimed, "a refused claim changes nothing");
}

async fn a_lease_that_has_run_out_is_free(on: &Fixture) {
    let thread = on.store.create(new_thread()).await.unwrap().id;
    on.store.claim(Claim::new(thread, "a", Duration::ZERO)).await.unwrap();
    let taken = on.store.claim(Claim::new(thread, "b", TTL)).await.unwrap();
    assert_eq!((taken.fence, taken.owner.as_deref()), (2, Some("b")));
}

async fn a_forced_claim_takes_a_held_lease(on: &Fixture) {
    let thread = on.store.create(new_thread()).await.unwrap().id;
    on.store.claim(Claim::new(thread, "a", TTL)).await.unwrap();
    assert_eq!(on.store.claim(Claim::new(thread, "b", TTL).forced()).await.unwrap().fence, 2);
}

async fn a_renewal_extends_the_lease(on: &Fixture) {
    let thread = on.store.create(new_thread()).await.unwrap().id;
    let claimed = on.store.claim(Claim::new(thread, "a", Duration::ZERO)).await.unwrap();
    on.store.renew(Fence::new(thread, claimed.fence), TTL).await.unwrap();
    let renewed = on.store.info(thread).await.unwrap();
    assert!(renewed.lease_until.unwrap() > claimed.lease_until.unwrap() + TTL / 2);
    assert!(matches!(on.store.claim(Claim::new(thread, "b", TTL)).await, Err(Error::Busy { .. })));
}

/// S1.03
async fn a_renewal_after_the_end_of_a_run_locks_no_row(on: &Fixture) {
    let writer = Writer::new(&on.store).await;
    let end = RunEnd::new(RunStatus::Done, ThreadStatus::Idle);
    on.store.end_run(Fence::new(writer.thread, writer.fence), writer.run, end).await.unwrap();
    on.store.renew(Fence::new(writer.thread, writer.fence), TTL).await.unwrap();
    assert_eq!(on.store.info(writer.thread).await.unwrap().lease_until, None);
    on.store.claim(Claim::new(writer.thread, "b", TTL)).await.unwrap();
}

async fn a_stale_writer_changes_no_row_by_any_method(on: &Fixture) {
    let mut zombie = Writer::with_steps(&on.store, 2).await;
    on.store.begin_run(Fence::new(zombie.thread, zombie.fence), zombie.run, false).await.unwrap();
    let call = zombie.tool_call(0);
    on.store
        .record_effects(Fence::new(zombie.thread, zombie.fence), std::slice::from_ref(&call))
        .await
        .unwrap();
    let heir = Writer::claim(&on.store, zombie.thread).await;
    let before = on.store.export(zombie.thread).await.unwrap();

    let thread = zombie.thread;
    let fence = zombie.fence;
    let commit = zombie.next(encoded(&json!([])));
    let end = EffectSettlement {
        step: call.step,
        task: call.task,
        key: call.key.clone(),
        status: EffectStatus::Done,
        outcome: Some(encoded(&json!("ok"))),
        attempt: 1,
    };
    let refusals = [
        zombie.commit(&commit).await,
        on.store.renew(Fence::new(thread, fence), TTL).await,
        on.store.begin_run(Fence::new(thread, fence), RunId::new(), false).await.map(drop),
        on.store
            .end_run(
                Fence::new(thread, fence),
                zombie.run,
                RunEnd::new(RunStatus::Done, ThreadStatus::Idle),
            )
            .await,
        on.store.save_pending(Fence::new(thread, fence), &zombie.pending(0), &[]).await,
        on.store
            .record_effects(Fence::new(thread, fence), std::slice::from_ref(&zombie.tool_call(1)))
            .await,
        on.store.settle_effect(Fence::new(thread, fence), &end).await,
    ];
    for refusal in refusals {
        match refusal {
            Err(Error::Fenced { token, current, .. }) => {
                assert_eq!((token, current), (fence, heir.fence));
            }
            other => panic!("{other:?}"),
        }
    }
    let after = on.store.export(thread).await.unwrap();
    assert_eq!(format!("{after:?}"), format!("{before:?}"));
}

async fn an_ended_run_gives_the_lease_back(on: &Fixture) {
    let writer = Writer::new(&on.store).await;
    let thread = writer.thread;
    let fence = writer.fence;
    on.store.begin_run(Fence::new(thread, fence), writer.run, false).await.unwrap();
    let error = Some("the model said \0 nothing");
    on.store
        .end_run(
            Fence::new(thread, fence),
            writer.run,
            RunEnd { error, ..RunEnd::new(RunStatus::Failed, ThreadStatus::Failed) },
        )
        .await
        .unwrap();
    let info = on.store.info(thread).await.unwrap();
    assert_eq!((info.owner, info.lease_until), (None, None));
    assert_eq!(info.status, ThreadStatus::Failed);
    assert!(info.error.unwrap().starts_with("the model said"), "no text is too odd to be kept");
    let next = on.store.claim(Claim::new(thread, "b", TTL)).await.unwrap();
    assert_eq!((next.fence, next.error), (fence + 1, None));
}

async fn a_very_long_lease_is_accepted(on: &Fixture) {
    let thread = on.store.create(new_thread()).await.unwrap().id;
    on.store.claim(Claim::new(thread, "a", Duration::MAX)).await.unwrap();
    assert!(matches!(on.store.claim(Claim::new(thread, "b", TTL)).await, Err(Error::Busy { .. })));
}

async fn claiming_an_unknown_thread_is_refused(on: &Fixture) {
    let thread = ThreadId::new();
    let refused = on.store.claim(Claim::new(thread, "a", TTL)).await;
    assert!(matches!(refused, Err(Error::UnknownThread(id)) if id == thread));
}

async fn of_many_claims_at_once_exactly_one_wins(on: &Fixture) {
    let thread = on.store.create(new_thread()).await.unwrap().id;
    let others = [on.another().await, on.another().await];
    let claims = (0..16).map(|n| {
        let store = others[n % 2].clone();
        tokio::spawn(async move { store.claim(Claim::new(thread, &format!("p{n}"), TTL)).await })
    });
    let mut won = Vec::new();
    for claim in futures::future::join_all(claims).await {
        match claim.unwrap() {
            Ok(info) => won.push(info.owner),
            Err(error) => assert!(matches!(error, Error::Busy { .. }), "{error}"),
        }
    }
    assert_eq!(won.len(), 1);
    assert_eq!(on.store.info(thread).await.unwrap().owner, won[0]);
}
