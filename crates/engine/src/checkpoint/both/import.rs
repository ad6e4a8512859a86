//! Whole threads, in.

use perihelion_database::{self as database, Dialect, Query, Transaction, query};

use super::{
    super::{
        EffectRow, Error, ThreadDump, checksum,
        limits::{big, text},
    },
    bind_effect,
    columns::effect_columns,
    parts::Insert,
    steps::bind_snapshot,
};

const THREAD: &str = "INSERT INTO thread (id, root_id, head, base, fence, created_at, updated_at,
        runs, status, graph, title, namespace, tenant, error)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)";

const STEPS: Insert = Insert {
    into: "INSERT INTO step
        (thread_id, run, seq, at, schema_version, codec, kind, hash, frontier, delta)",
    columns: 10,
    on_conflict: "",
};

const SNAPSHOTS: Insert = Insert {
    into: "INSERT INTO snapshot
        (thread_id, seq, schema_version, codec, state, checksum, blobs_codec, blobs)",
    columns: 8,
    on_conflict: "",
};

const PENDING: Insert = Insert {
    into: "INSERT INTO pending (thread_id, step, task, codec, body, checksum)",
    columns: 6,
    on_conflict: "",
};

const EFFECTS: Insert = Insert {
    into: concat!("INSERT INTO effect (thread_id, ", effect_columns!(), ")"),
    columns: 17,
    on_conflict: "",
};

const RUNS: Insert = Insert {
    into: "INSERT INTO run (thread_id, id, number, status, started_at, ended_at, finish_reason)",
    columns: 7,
    on_conflict: "",
};

/// Of a text that is there already the earlier step counts.
const BLOBS: Insert = Insert {
    into: "INSERT INTO blob (thread_id, hash, step, codec, body)",
    columns: 5,
    on_conflict: " ON CONFLICT (thread_id, hash) DO UPDATE SET step = excluded.step
        WHERE blob.step > excluded.step",
};

/// SQLite counts by a trigger as they come.
const COUNT_EFFECTS: &str = "INSERT INTO effect_count (thread_id, step, task, effects)
     SELECT thread_id, step, task, count(*) FROM effect WHERE thread_id = $1
     GROUP BY thread_id, step, task";

/// Writes a thread and its subgraphs' threads.
pub(super) async fn write_family(
    transaction: &mut Transaction<'_>,
    dump: &ThreadDump,
) -> Result<(), Error> {
    for one in std::iter::once(dump).chain(&dump.children) {
        write_one(transaction, one).await.map_err(|error| {
            if error.is_duplicate() { Error::ThreadExists(one.info.id) } else { error.into() }
        })?;
    }
    let mut blobs: Vec<_> = dump.blobs.iter().collect();
    blobs.sort_by_key(|row| (row.owner, row.hash, row.step));
    blobs.dedup_by_key(|row| (row.owner, row.hash));
    let written = BLOBS.all(
        transaction,
        &blobs,
        |row| row.body.bytes.len(),
        |query, row| {
            query
                .bind(row.owner.0)
                .bind(&row.hash[..])
                .bind(big(row.step))
                .bind(row.body.codec as i16)
                .bind(&row.body.bytes[..])
        },
    );
    Ok(written.await?)
}

async fn write_one(
    transaction: &mut Transaction<'_>,
    dump: &ThreadDump,
) -> Result<(), database::Error> {
    let id = dump.info.id.0;
    transaction.execute(&thread(dump)).await?;
    let steps = STEPS.all(
        transaction,
        &dump.steps,
        |step| step.delta.bytes.len() + step.frontier.len(),
        |query, step| {
            query
                .bind(id)
                .bind(step.run.0)
                .bind(big(step.seq))
                .bind(step.at)
                .bind(step.schema_version as i32)
                .bind(step.delta.codec as i16)
                .bind(step.kind.as_str())
                .bind(&step.hash[..])
                .bind(&step.frontier[..])
                .bind(&step.delta.bytes[..])
        },
    );
    steps.await?;
    let snapshots: Vec<_> = dump.snapshot.iter().chain(&dump.returned).collect();
    let written = SNAPSHOTS.all(
        transaction,
        &snapshots,
        |snapshot| snapshot.state.bytes.len(),
        |query, snapshot| bind_snapshot(query.bind(id), snapshot),
    );
    written.await?;
    write_journal(transaction, dump).await
}

fn thread(dump: &ThreadDump) -> Query {
    let info = &dump.info;
    let (status, error) = info.imported();
    let runs = dump.runs.iter().map(|run| run.number).max().unwrap_or(0);
    query(THREAD)
        .bind(info.id.0)
        .bind(info.root.map(|id| id.0))
        .bind(big(info.head))
        .bind(dump.snapshot.as_ref().map_or(0, |snapshot| big(snapshot.seq)))
        .bind(big(info.fence))
        .bind(info.created_at)
        .bind(info.updated_at)
        .bind(runs as i32)
        .bind(status.as_str())
        .bind(text(&info.graph))
        .bind(info.title.as_deref().map(text))
        .bind(text(&info.namespace))
        .bind(text(&info.tenant))
        .bind(error.map(text))
}

async fn write_journal(
    transaction: &mut Transaction<'_>,
    dump: &ThreadDump,
) -> Result<(), database::Error> {
    let id = dump.info.id.0;
    let pending = PENDING.all(
        transaction,
        &dump.pending,
        |row| row.body.bytes.len(),
        |query, row| {
            query
                .bind(id)
                .bind(big(row.step))
                .bind(row.task as i32)
                .bind(row.body.codec as i16)
                .bind(&row.body.bytes[..])
                .bind(&checksum::pending(row)[..])
        },
    );
    pending.await?;
    let size = |row: &EffectRow| {
        row.request.bytes.len() + row.outcome.as_ref().map_or(0, |outcome| outcome.bytes.len())
    };
    let bind = |query: Query, row: &EffectRow| bind_effect(query.bind(id), dump.info.id, row);
    EFFECTS.all(transaction, &dump.effects, size, bind).await?;
    if transaction.dialect() == Dialect::Postgres {
        transaction.execute(&query(COUNT_EFFECTS).bind(id)).await?;
    }
    let runs = RUNS.all(
        transaction,
        &dump.runs,
        |_| 0,
        |query, run| {
            query
                .bind(id)
                .bind(run.id.0)
                .bind(run.number as i32)
                .bind(run.status.as_str())
                .bind(run.started_at)
                .bind(run.ended_at)
                .bind(run.finish_reason.as_deref().map(text))
        },
    );
    runs.await
}
