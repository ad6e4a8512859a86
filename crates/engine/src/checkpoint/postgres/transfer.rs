//! Whole threads, out and in.

use perihelion_database::postgres::{Connections, code};
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use super::{
    super::{
        Error, ThreadDump,
        blobs::keep_named,
        chain, checksum,
        decode::{
            self, effect_columns, run_columns, snapshot_columns, step_columns, thread_columns,
        },
        limits::{big, text},
    },
    blobs, recording,
};
use crate::ids::ThreadId;

/// Reads a thread and its subgraphs' threads as they are at one moment, and checks its hash chain.
pub(super) async fn export(
    connections: &Connections,
    thread: ThreadId,
) -> Result<ThreadDump, Error> {
    let mut connection = connections.take_tested().await?;
    let read = connections.long(read_all(&mut connection, thread)).await;
    let dump = connection.settle(read)??;
    chain::verify(&dump)?;
    Ok(dump)
}

async fn read_all(
    connection: &mut PgConnection,
    thread: ThreadId,
) -> Result<Result<ThreadDump, Error>, sqlx::Error> {
    let mut transaction =
        connection.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
    let dump = read_family(&mut transaction, thread).await;
    transaction.rollback().await?;
    Ok(dump)
}

async fn read_family(connection: &mut PgConnection, thread: ThreadId) -> Result<ThreadDump, Error> {
    let mut dump = read_one(connection, thread).await?;
    let children: Vec<Uuid> =
        sqlx::query_scalar("SELECT id FROM thread WHERE root_id = $1 ORDER BY namespace, id")
            .bind(thread.0)
            .fetch_all(&mut *connection)
            .await?;
    for child in children {
        dump.children.push(read_one(connection, ThreadId(child)).await?);
    }
    dump.blobs = blobs::all(connection, thread).await?;
    keep_named(&mut dump)?;
    Ok(dump)
}

const THREAD: &str = concat!("SELECT ", thread_columns!(), " FROM thread WHERE id = $1");
const STEPS: &str = concat!(
    "WITH RECURSIVE line (id, upto) AS (
        SELECT id, head FROM thread WHERE id = $1
        UNION ALL
        SELECT t.parent_id, least(l.upto, t.parent_seq)
        FROM line l JOIN thread t ON t.id = l.id WHERE t.parent_id IS NOT NULL
     )
     SELECT ",
    step_columns!(),
    " FROM line JOIN step ON step.thread_id = line.id AND step.seq <= line.upto
     WHERE step.seq > $2 ORDER BY step.seq"
);
const OLDEST_SNAPSHOT: &str = concat!(
    "WITH RECURSIVE line (id, upto) AS (
        SELECT id, head FROM thread WHERE id = $1
        UNION ALL
        SELECT t.parent_id, least(l.upto, t.parent_seq)
        FROM line l JOIN thread t ON t.id = l.id WHERE t.parent_id IS NOT NULL
     )
     SELECT ",
    snapshot_columns!(),
    " FROM line JOIN snapshot s ON s.thread_id = line.id AND s.seq <= line.upto
     WHERE s.seq = $2"
);
const PENDING: &str = "SELECT step AS seq, task, codec, body, checksum FROM pending
     WHERE thread_id = $1 AND step = $2 ORDER BY task";
const COUNTS: &str = "SELECT step, task, effects FROM effect_count WHERE thread_id = $1";
const EFFECTS: &str = concat!(
    "SELECT ",
    effect_columns!(),
    " FROM effect WHERE thread_id = $1 ORDER BY step, task, number"
);
const RUNS: &str =
    concat!("SELECT ", run_columns!(), " FROM run WHERE thread_id = $1 ORDER BY number");

async fn read_one(connection: &mut PgConnection, thread: ThreadId) -> Result<ThreadDump, Error> {
    let row = sqlx::query(THREAD).bind(thread.0).fetch_optional(&mut *connection).await?;
    let decode::ThreadRow { info, base } =
        decode::thread(&row.ok_or(Error::UnknownThread(thread))?)?;
    let snapshot = match base {
        0 => None,
        base => {
            let row = sqlx::query(OLDEST_SNAPSHOT)
                .bind(thread.0)
                .bind(big(base))
                .fetch_optional(&mut *connection)
                .await?;
            row.as_ref().map(|row| decode::snapshot(thread, row)).transpose()?
        }
    };
    let steps =
        sqlx::query(STEPS).bind(thread.0).bind(big(base)).fetch_all(&mut *connection).await?;
    let pending = sqlx::query(PENDING)
        .bind(thread.0)
        .bind(big(info.head + 1))
        .fetch_all(&mut *connection)
        .await?;
    let counted = sqlx::query(COUNTS).bind(thread.0).fetch_all(&mut *connection).await?;
    let effects = sqlx::query(EFFECTS).bind(thread.0).fetch_all(&mut *connection).await?;
    let runs = sqlx::query(RUNS).bind(thread.0).fetch_all(&mut *connection).await?;
    Ok(ThreadDump {
        info,
        snapshot,
        steps: steps.iter().map(decode::step).collect::<Result<_, _>>()?,
        pending: pending
            .iter()
            .map(|row| decode::pending(thread, row))
            .collect::<Result<_, _>>()?,
        effects: decode::effects(thread, &counted, &effects)?,
        runs: runs.iter().map(decode::run).collect::<Result<_, _>>()?,
        blobs: Vec::new(),
        children: Vec::new(),
    })
}

/// Writes a thread and its subgraphs' threads, all or nothing, after checking its hash chain.
pub(super) async fn import(connections: &Connections, dump: &ThreadDump) -> Result<(), Error> {
    chain::verify(dump)?;
    let mut connection = connections.take_tested().await?;
    let written = connections.long(write_all(&mut connection, dump)).await;
    connection.settle(written)?
}

async fn write_all(
    connection: &mut PgConnection,
    dump: &ThreadDump,
) -> Result<Result<(), Error>, sqlx::Error> {
    let mut transaction = connection.begin().await?;
    for one in std::iter::once(dump).chain(&dump.children) {
        match write_one(&mut transaction, one).await {
            Ok(()) => {}
            Err(error) if code(&error) == Some("23505") => {
                transaction.rollback().await?;
                return Ok(Err(Error::ThreadExists(one.info.id)));
            }
            Err(error) => {
                // The failure is what is told; a connection that cannot roll back is found broken later.
                let _ = transaction.rollback().await;
                return Err(error);
            }
        }
    }
    blobs::keep(&mut transaction, &dump.blobs).await?;
    transaction.commit().await?;
    Ok(Ok(()))
}

async fn write_one(connection: &mut PgConnection, dump: &ThreadDump) -> Result<(), sqlx::Error> {
    let info = &dump.info;
    let (status, error) = info.imported();
    let runs = dump.runs.iter().map(|run| run.number).max().unwrap_or(0);
    sqlx::query(
        "INSERT INTO thread (id, root_id, head, base, fence, created_at, updated_at, runs, status,
            graph, title, namespace, tenant, error)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
    )
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
    .execute(&mut *connection)
    .await?;
    for step in &dump.steps {
        sqlx::query(
            "INSERT INTO step
                (thread_id, run, seq, at, schema_version, codec, kind, hash, frontier, delta)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        )
        .bind(info.id.0)
        .bind(step.run.0)
        .bind(big(step.seq))
        .bind(step.at)
        .bind(step.schema_version as i32)
        .bind(step.delta.codec as i16)
        .bind(step.kind.as_str())
        .bind(&step.hash[..])
        .bind(&step.frontier[..])
        .bind(&step.delta.bytes[..])
        .execute(&mut *connection)
        .await?;
    }
    write_rest(connection, dump).await
}

const COUNT_EFFECTS: &str = "INSERT INTO effect_count (thread_id, step, task, effects)
     SELECT thread_id, step, task, count(*) FROM effect WHERE thread_id = $1
     GROUP BY thread_id, step, task";

async fn write_rest(connection: &mut PgConnection, dump: &ThreadDump) -> Result<(), sqlx::Error> {
    let id = dump.info.id.0;
    if let Some(snapshot) = &dump.snapshot {
        sqlx::query(
            "INSERT INTO snapshot
                (thread_id, seq, schema_version, codec, state, checksum, blobs_codec, blobs)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        )
        .bind(id)
        .bind(big(snapshot.seq))
        .bind(snapshot.schema_version as i32)
        .bind(snapshot.state.codec as i16)
        .bind(&snapshot.state.bytes[..])
        .bind(&checksum::snapshot(snapshot)[..])
        .bind(snapshot.blobs.as_ref().map(|names| names.codec as i16))
        .bind(snapshot.blobs.as_ref().map(|names| &names.bytes[..]))
        .execute(&mut *connection)
        .await?;
    }
    for row in &dump.pending {
        sqlx::query(
            "INSERT INTO pending (thread_id, step, task, codec, body, checksum)
             VALUES ($1, $2, $3, $4, $5, $6)",
        )
        .bind(id)
        .bind(big(row.step))
        .bind(row.task as i32)
        .bind(row.body.codec as i16)
        .bind(&row.body.bytes[..])
        .bind(&checksum::pending(row)[..])
        .execute(&mut *connection)
        .await?;
    }
    recording::keep(connection, dump.info.id, &dump.effects).await?;
    sqlx::query(COUNT_EFFECTS).bind(id).execute(&mut *connection).await?;
    for run in &dump.runs {
        sqlx::query(
            "INSERT INTO run (thread_id, id, number, status, started_at, ended_at, finish_reason)
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
        )
        .bind(id)
        .bind(run.id.0)
        .bind(run.number as i32)
        .bind(run.status.as_str())
        .bind(run.started_at)
        .bind(run.ended_at)
        .bind(run.finish_reason.as_deref().map(text))
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}
