//! Values of every kind and size.

use perihelion_engine::checkpoint::{Codec, Encoded, Fence, SnapshotRow, chain_hash};
use serde_json::json;

use super::{
    on_every_store_sealed_too,
    stores::Fixture,
    writer::{Writer, encoded, prose},
};

on_every_store_sealed_too!(
    values_of_every_kind_read_back_the_same,
    values_of_every_size_read_back_the_same,
    a_frontier_may_be_any_bytes,
);

async fn values_of_every_kind_read_back_the_same(on: &Fixture) {
    let mut writer = Writer::new(&on.store).await;
    let values = [
        json!(null),
        json!(true),
        json!(-1.5e300),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(""),
        json!("\u{0}\u{1}\n\"\\ ‏שלום 日本 👩‍👩‍👧"),
        json!([]),
        json!({}),
        json!({"b": 1, "a": {"": [[[[]]]]}, "a b": [1, null]}),
    ];
    for value in &values {
        let commit = writer.next(encoded(value));
        writer.commit(&commit).await.unwrap();
    }
    let steps = on.store.load(writer.thread, None).await.unwrap().steps;
    for (step, value) in steps.iter().zip(&values) {
        assert_eq!(&step.delta.decode::<serde_json::Value>().unwrap(), value);
    }
}

async fn values_of_every_size_read_back_the_same(on: &Fixture) {
    let mut writer = Writer::new(&on.store).await;
    let five_megabytes = 5 << 20;
    let mut deltas: Vec<Encoded> =
        [0, 1, 100, 1900, 2000, 2100, 4000, 4100, 8200, 70_000, five_megabytes].map(prose).into();
    deltas.push(Encoded {
        codec: Codec::JsonZstd,
        ..Encoded::json(&"packed ".repeat(1 << 20), 0).unwrap()
    });
    for delta in &deltas {
        let commit = writer.next(delta.clone());
        writer.commit(&commit).await.unwrap();
    }
    let snapshot =
        SnapshotRow { seq: 1, schema_version: u32::MAX, state: prose(five_megabytes), blobs: None };
    on.store.put_snapshot(writer.thread, &snapshot).await.unwrap();
    let mut call = writer.tool_call(0);
    call.request = prose(five_megabytes);
    call.outcome = Some(prose(five_megabytes));
    call.attempt = u32::MAX;
    on.store
        .record_effects(Fence::new(writer.thread, writer.fence), std::slice::from_ref(&call))
        .await
        .unwrap();

    let other = on.another().await;
    let loaded = other.load(writer.thread, None).await.unwrap();
    assert_eq!(loaded.snapshot, Some(snapshot));
    let found: Vec<&Encoded> = loaded.steps.iter().map(|step| &step.delta).collect();
    assert!(found == deltas.iter().skip(1).collect::<Vec<_>>());
    assert!(other.effects(writer.thread, None).await.unwrap() == [call]);
}

async fn a_frontier_may_be_any_bytes(on: &Fixture) {
    let mut writer = Writer::new(&on.store).await;
    for frontier in [vec![], vec![0, 255, 10, 13], vec![7; 9000]] {
        let mut commit = writer.next(encoded(&json!([])));
        commit.step.frontier = frontier.clone();
        let delta = commit.step.delta.to_json_bytes().unwrap();
        commit.step.hash = chain_hash(&writer.hash, commit.step.seq, &delta, &frontier);
        writer.commit(&commit).await.unwrap();
        let newest = on.store.history(writer.thread, None, 1).await.unwrap().remove(0);
        assert_eq!(newest.frontier, frontier);
    }
}
