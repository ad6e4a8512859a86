//! Recorded effects (X2) and questions to a person.

use perihelion_engine::checkpoint::Fence;
use perihelion_engine::{
    checkpoint::{EffectRow, EffectSettlement, EffectStatus, Error, NewThread},
    ids::InterruptId,
};
use serde_json::json;

use super::{
    on_every_store_sealed_too,
    stores::Fixture,
    writer::{Writer, encoded, new_thread},
};

on_every_store_sealed_too!(
    effects_read_back_in_order_of_step_task_and_number,
    the_first_record_under_a_key_wins,
    effects_of_one_task_are_one_write,
    a_started_effect_is_settled_once,
    a_failed_effect_can_be_tried_again_and_a_done_one_cannot,
    effects_from_a_step_on_are_read_without_the_older_ones,
    a_further_attempt_is_recorded_before_it_is_sent,
    settling_an_unrecorded_effect_is_refused,
    an_interrupt_is_answered_once,
    of_two_answers_at_once_exactly_one_wins,
    open_interrupts_include_interrupts_of_subgraphs,
    an_answer_to_an_unknown_interrupt_is_refused,
    an_answer_changes_the_thread_at_the_top,
);

fn settlement(effect: &EffectRow, status: EffectStatus, text: &str) -> EffectSettlement {
    EffectSettlement {
        step: effect.step,
        task: effect.task,
        key: effect.key.clone(),
        status,
        outcome: (status != EffectStatus::Started).then(|| encoded(&json!(text))),
        attempt: effect.attempt,
    }
}

async fn effects_read_back_in_order_of_step_task_and_number(on: &Fixture) {
    let mut writer = Writer::new(&on.store).await;
    let mut rows = Vec::new();
    for step in 0..2 {
        for (task, number) in [(1, 0), (0, 1), (0, 0)] {
            // Keys descend, so that an order by key would be seen.
            let mut row = writer.tool_call(200 - step * 10 - task * 2 - number);
            (row.task, row.number) = (task, number);
            on.store
                .record_effects(Fence::new(writer.thread, writer.fence), std::slice::from_ref(&row))
                .await
                .unwrap();
            rows.push(row);
        }
        writer.steps(1).await;
    }
    let mut finished = rows[0].clone();
    finished.key = vec![1; 32];
    finished.number = 9;
    finished.status = EffectStatus::Failed;
    finished.outcome = Some(encoded(&json!({"error": "429"})));
    finished.ended_at = Some(finished.started_at + chrono::Duration::seconds(1));
    on.store
        .record_effects(Fence::new(writer.thread, writer.fence), std::slice::from_ref(&finished))
        .await
        .unwrap();
    rows.push(finished);

    rows.sort_by_key(|row| (row.step, row.task, row.number));
    assert_eq!(on.store.effects(writer.thread, None).await.unwrap(), rows);
    let second: Vec<_> = rows.iter().filter(|row| row.step == 2).cloned().collect();
    assert_eq!(on.store.effects(writer.thread, Some(2)).await.unwrap(), second);
    assert!(on.store.effects(writer.thread, Some(u64::MAX)).await.unwrap().is_empty());
}

async fn the_first_record_under_a_key_wins(on: &Fixture) {
    let writer = Writer::new(&on.store).await;
    let first = writer.tool_call(0);
    let second = EffectRow { name: "files.delete".to_owned(), ..first.clone() };
    on.store
        .record_effects(Fence::new(writer.thread, writer.fence), std::slice::from_ref(&first))
        .await
        .unwrap();
    on.store
        .record_effects(Fence::new(writer.thread, writer.fence), std::slice::from_ref(&second))
        .await
        .unwrap();
    assert_eq!(on.store.effects(writer.thread, None).await.unwrap(), [first]);
}

async fn effects_of_one_task_are_one_write(on: &Fixture) {
    let writer = Writer::new(&on.store).await;
    let thread = writer.thread;
    let fence = writer.fence;
    let rows: Vec<EffectRow> = (0..40).map(|number| writer.tool_call(number)).collect();
    on.store.record_effects(Fence::new(thread, fence), &rows[..1]).await.unwrap();
    on.store
        .record_effects(Fence::new(thread, fence), &rows)
        .await
        .expect("what is there already stays");
    assert_eq!(on.store.effects(thread, None).await.unwrap(), rows);

    let stranger = [writer.tool_call(50), writer.tool_call(51)];
    let refused = on.store.record_effects(Fence::new(thread, fence - 1), &stranger).await;
    assert!(matches!(refused, Err(Error::Fenced { .. })), "{refused:?}");
    assert_eq!(on.store.effects(thread, None).await.unwrap(), rows);
}

/// X2
async fn a_started_effect_is_settled_once(on: &Fixture) {
    let writer = Writer::new(&on.store).await;
    let thread = writer.thread;
    let fence = writer.fence;
    let call = writer.tool_call(0);
    on.store.record_effects(Fence::new(thread, fence), std::slice::from_ref(&call)).await.unwrap();
    let done = settlement(&call, EffectStatus::Done, "written");
    on.store.settle_effect(Fence::new(thread, fence), &done).await.unwrap();
    let found = on.store.effects(thread, None).await.unwrap().remove(0);
    assert_eq!((found.status, &found.outcome), (EffectStatus::Done, &done.outcome));
    assert!(found.ended_at.unwrap() > found.started_at);

    on.store
        .settle_effect(Fence::new(thread, fence), &done)
        .await
        .expect("a repetition changes nothing");
    let other = settlement(&call, EffectStatus::Done, "something else");
    let refused = on.store.settle_effect(Fence::new(thread, fence), &other).await;
    assert!(matches!(refused, Err(Error::UnknownEffect { step: 1, task: 0, .. })), "{refused:?}");
    assert_eq!(on.store.effects(thread, None).await.unwrap(), [found]);
}

/// X2
async fn a_further_attempt_is_recorded_before_it_is_sent(on: &Fixture) {
    let writer = Writer::new(&on.store).await;
    let call = writer.tool_call(0);
    on.store
        .record_effects(Fence::new(writer.thread, writer.fence), std::slice::from_ref(&call))
        .await
        .unwrap();
    let again = EffectSettlement { attempt: 2, ..settlement(&call, EffectStatus::Started, "") };
    on.store.settle_effect(Fence::new(writer.thread, writer.fence), &again).await.unwrap();
    let found = on.store.effects(writer.thread, None).await.unwrap().remove(0);
    assert_eq!((found.attempt, found.status), (2, EffectStatus::Started));
    assert_eq!((found.outcome, found.ended_at), (None, None));
}

async fn a_failed_effect_can_be_tried_again_and_a_done_one_cannot(on: &Fixture) {
    let writer = Writer::new(&on.store).await;
    let thread = writer.thread;
    let fence = writer.fence;
    let call = writer.tool_call(0);
    on.store.record_effects(Fence::new(thread, fence), std::slice::from_ref(&call)).await.unwrap();
    let failed = settlement(&call, EffectStatus::Failed, "refused");
    on.store.settle_effect(Fence::new(thread, fence), &failed).await.unwrap();
    on.store
        .settle_effect(Fence::new(thread, fence), &failed)
        .await
        .expect("a repetition changes nothing");
    let mut again = EffectSettlement { attempt: 2, ..settlement(&call, EffectStatus::Started, "") };
    again.outcome = None;
    on.store.settle_effect(Fence::new(thread, fence), &again).await.unwrap();
    let found = on.store.effects(thread, None).await.unwrap().remove(0);
    assert_eq!((found.attempt, found.status, found.outcome), (2, EffectStatus::Started, None));
    let done = EffectSettlement { attempt: 2, ..settlement(&call, EffectStatus::Done, "ok") };
    on.store.settle_effect(Fence::new(thread, fence), &done).await.unwrap();
    let refused = on.store.settle_effect(Fence::new(thread, fence), &again).await;
    assert!(matches!(refused, Err(Error::UnknownEffect { .. })), "{refused:?}");
}

async fn effects_from_a_step_on_are_read_without_the_older_ones(on: &Fixture) {
    let writer = Writer::new(&on.store).await;
    for step in [1, 2, 4] {
        let call = EffectRow { step, ..writer.tool_call(0) };
        on.store
            .record_effects(Fence::new(writer.thread, writer.fence), std::slice::from_ref(&call))
            .await
            .unwrap();
    }
    let found = on.store.effects_from(writer.thread, 2).await.unwrap();
    assert_eq!(found.iter().map(|row| row.step).collect::<Vec<_>>(), [2, 4]);
}

async fn settling_an_unrecorded_effect_is_refused(on: &Fixture) {
    let writer = Writer::new(&on.store).await;
    let end = settlement(&writer.tool_call(0), EffectStatus::Done, "ok");
    let refused = on.store.settle_effect(Fence::new(writer.thread, writer.fence), &end).await;
    assert!(matches!(refused, Err(Error::UnknownEffect { .. })), "{refused:?}");
}

async fn an_interrupt_is_answered_once(on: &Fixture) {
    let writer = Writer::with_steps(&on.store, 1).await;
    let (id, question) = writer.question(0);
    on.store
        .record_effects(Fence::new(writer.thread, writer.fence), std::slice::from_ref(&question))
        .await
        .unwrap();
    let open = on.store.open_interrupts(writer.thread).await.unwrap().remove(0);
    assert_eq!((open.id, open.thread, open.step, open.task), (id, writer.thread, 2, 0));
    assert_eq!((open.kind, open.payload), ("clarification".to_owned(), question.request));

    assert_eq!(on.store.asked_below(id).await.unwrap(), Some(writer.thread));

    on.store.answer(id, &encoded(&json!("2024"))).await.unwrap();
    assert!(on.store.open_interrupts(writer.thread).await.unwrap().is_empty());
    assert_eq!(on.store.asked_below(id).await.unwrap(), None);
    let refused = on.store.answer(id, &encoded(&json!("2025"))).await;
    assert!(matches!(refused, Err(Error::InterruptClosed(closed)) if closed == id), "{refused:?}");
    let row = on.store.effects(writer.thread, None).await.unwrap().remove(0);
    assert_eq!(row.outcome, Some(encoded(&json!("2024"))));
}

async fn of_two_answers_at_once_exactly_one_wins(on: &Fixture) {
    let writer = Writer::new(&on.store).await;
    let stores = [on.another().await, on.another().await];
    for number in 0..5 {
        let (id, question) = writer.question(number);
        on.store
            .record_effects(
                Fence::new(writer.thread, writer.fence),
                std::slice::from_ref(&question),
            )
            .await
            .unwrap();
        let answers = (0..8).map(|n: usize| {
            let store = stores[n % 2].clone();
            tokio::spawn(async move { store.answer(id, &encoded(&json!(n))).await.map(|()| n) })
        });
        let mut won = Vec::new();
        for answer in futures::future::join_all(answers).await {
            match answer.unwrap() {
                Ok(n) => won.push(n),
                Err(error) => assert!(matches!(error, Error::InterruptClosed(_)), "{error}"),
            }
        }
        assert_eq!(won.len(), 1, "exactly one answer wins");
        let rows = on.store.effects(writer.thread, None).await.unwrap();
        assert_eq!(rows[number as usize].outcome, Some(encoded(&json!(won[0]))));
    }
}

async fn open_interrupts_include_interrupts_of_subgraphs(on: &Fixture) {
    let top = Writer::new(&on.store).await;
    let namespace = "team:1:0";
    let child = NewThread {
        id: top.thread.child(namespace),
        root: Some(top.thread),
        namespace: namespace.to_owned(),
        ..new_thread()
    };
    let child = on.store.create(child).await.unwrap();
    assert_eq!((child.root, child.namespace.as_str()), (Some(top.thread), namespace));
    let below = Writer::claim(&on.store, child.id).await;
    let (second, mut late) = top.question(0);
    late.started_at += chrono::Duration::seconds(5);
    let (first, early) = below.question(0);
    on.store
        .record_effects(Fence::new(top.thread, top.fence), std::slice::from_ref(&late))
        .await
        .unwrap();
    on.store
        .record_effects(Fence::new(below.thread, below.fence), std::slice::from_ref(&early))
        .await
        .unwrap();
    let ids = |open: Vec<perihelion_engine::checkpoint::OpenInterrupt>| {
        open.into_iter().map(|it| it.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(on.store.open_interrupts(top.thread).await.unwrap()), [first, second]);
    assert_eq!(ids(on.store.open_interrupts(below.thread).await.unwrap()), [first]);
    assert_eq!(on.store.asked_below(first).await.unwrap(), Some(top.thread));
}

async fn an_answer_to_an_unknown_interrupt_is_refused(on: &Fixture) {
    let writer = Writer::new(&on.store).await;
    let call = writer.tool_call(0);
    on.store
        .record_effects(Fence::new(writer.thread, writer.fence), std::slice::from_ref(&call))
        .await
        .unwrap();
    let id = InterruptId::derive(writer.thread, 9, 0, b"0");
    let refused = on.store.answer(id, &encoded(&json!("?"))).await;
    assert!(matches!(refused, Err(Error::UnknownInterrupt(unknown)) if unknown == id));
}

async fn an_answer_changes_the_thread_at_the_top(on: &Fixture) {
    let writer = Writer::with_steps(&on.store, 1).await;
    let (id, question) = writer.question(0);
    on.store.record_effects(Fence::new(writer.thread, writer.fence), &[question]).await.unwrap();
    let seen = on.store.info(writer.thread).await.unwrap();
    perihelion_engine::clock::sleep(std::time::Duration::from_millis(2)).await;
    on.store.answer(id, &encoded(&json!("2024"))).await.unwrap();
    let now = on.store.info(writer.thread).await.unwrap();
    assert_eq!(now.status, seen.status, "it is busy");
    assert!(now.updated_at > seen.updated_at);
    let refused = on.store.delete_as_seen(&seen).await;
    assert!(matches!(refused, Err(Error::Moved { .. })), "{refused:?}");
}
