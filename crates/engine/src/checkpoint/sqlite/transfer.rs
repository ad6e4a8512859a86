//! Whole threads, out and in.

use perihelion_database::sqlite::{File, code};
use sqlx::{Connection, SqliteConnection};
use uuid::Uuid;

use super::{
    super::{
        Error, ThreadDump,
        blobs::keep_named,
        chain, checksum,
        decode::{self, ThreadRow, effect_columns, run_columns},
        limits::{big, text},
    },
    blobs,
    effects::bind_effect,
    history,
    threads::{self, TAKEN},
};
use crate::ids::ThreadId;

/// Reads a thread and its subgraphs' threads as they are at one moment, and checks its hash chain.
pub(super) async fn export(file: &File, thread: ThreadId) -> Result<ThreadDump, Error> {
    let mut reader = file.reader().await?;
    let mut transaction = reader.connection()?.begin().await?;
    let dump = read_all(&mut transaction, thread).await;
    let ended = transaction.rollback().await;
    reader.settle(ended)?;
    let dump = dump?;
    chain::verify(&dump)?;
    Ok(dump)
}

async fn read_all(
    connection: &mut SqliteConnection,
    thread: ThreadId,
) -> Result<ThreadDump, Error> {
    let mut dump = read_one(connection, thread).await?;
    let children: Vec<Uuid> =
        sqlx::query_scalar("SELECT id FROM thread WHERE root_id = ?1 ORDER BY namespace, id")
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

const COUNTS: &str = "SELECT step, task, effects FROM effect_count WHERE thread_id = ?1";
const EFFECTS: &str = concat!(
    "SELECT ",
    effect_columns!(),
    " FROM effect WHERE thread_id = ?1 ORDER BY step, task, number"
);
const RUNS: &str =
    concat!("SELECT ", run_columns!(), " FROM run WHERE thread_id = ?1 ORDER BY number");

async fn read_one(
    connection: &mut SqliteConnection,
    thread: ThreadId,
) -> Result<ThreadDump, Error> {
    let ThreadRow { info, base } = threads::read(connection, thread).await?;
    let snapshot = match base {
        0 => None,
        base => history::newest_snapshot(connection, thread, base).await?,
    };
    let steps = history::steps(connection, thread, base, info.head).await?;
    let pending = history::pending(connection, thread, info.head + 1).await?;
    let counted = sqlx::query(COUNTS).bind(thread.0).fetch_all(&mut *connection).await?;
    let effects = sqlx::query(EFFECTS).bind(thread.0).fetch_all(&mut *connection).await?;
    let runs = sqlx::query(RUNS).bind(thread.0).fetch_all(&mut *connection).await?;
    Ok(ThreadDump {
        info,
        snapshot,
        steps,
        pending,
        effects: decode::effects(thread, &counted, &effects)?,
        runs: runs.iter().map(decode::run).collect::<Result<_, _>>()?,
        blobs: Vec::new(),
        children: Vec::new(),
    })
}

/// Writes a thread and its subgraphs' threads, all or nothing, after checking its hash chain.
pub(super) async fn import(file: &File, dump: &ThreadDump) -> Result<(), Error> {
    chain::verify(dump)?;
    let mut writer = file.writer().await?;
    let refine = |e| Error::from(file.refine(e));
    let mut transaction =
        writer.connection()?.begin_with("BEGIN IMMEDIATE").await.map_err(refine)?;
    for one in std::iter::once(dump).chain(&dump.children) {
        match write_one(&mut transaction, one).await {
            Ok(()) => {}
            Err(error) if code(&error).as_deref() == Some(TAKEN) => {
                return Err(Error::ThreadExists(one.info.id));
            }
            Err(error) => return Err(file.refine(error).into()),
        }
    }
    blobs::keep(&mut transaction, &dump.blobs).await.map_err(refine)?;
    transaction.commit().await.map_err(refine)
}

async fn write_one(
    connection: &mut SqliteConnection,
    dump: &ThreadDump,
) -> Result<(), sqlx::Error> {
    let info = &dump.info;
    let (status, error) = info.imported();
    let runs = dump.runs.iter().map(|run| run.number).max().unwrap_or(0);
    sqlx::query(
        "INSERT INTO thread (id, root_id, head, base, fence, created_at, updated_at, runs, status,
            graph, title, namespace, tenant, error)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
    )
    .bind(info.id.0)
    .bind(info.root.map(|id| id.0))
    .bind(big(info.head))
    .bind(dump.snapshot.as_ref().map_or(0, |snapshot| big(snapshot.seq)))
    .bind(big(info.fence))
    .bind(info.created_at.timestamp_micros())
    .bind(info.updated_at.timestamp_micros())
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
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        )
        .bind(info.id.0)
        .bind(step.run.0)
        .bind(big(step.seq))
        .bind(step.at.timestamp_micros())
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

async fn write_rest(
    connection: &mut SqliteConnection,
    dump: &ThreadDump,
) -> Result<(), sqlx::Error> {
    let id = dump.info.id.0;
    if let Some(snapshot) = &dump.snapshot {
        sqlx::query(
            "INSERT INTO snapshot
                (thread_id, seq, schema_version, codec, state, checksum, blobs_codec, blobs)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
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
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
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
    for effect in &dump.effects {
        let query = sqlx::query(
            "INSERT INTO effect (thread_id, step, started_at, ended_at, task, number, attempt,
                request_codec, outcome_codec, kind, status, name, key, request, outcome,
                request_sum, outcome_sum)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16,
                ?17)",
        );
        bind_effect(query.bind(id), dump.info.id, effect).execute(&mut *connection).await?;
    }
    for run in &dump.runs {
        sqlx::query(
            "INSERT INTO run (thread_id, id, number, status, started_at, ended_at, finish_reason)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )
        .bind(id)
        .bind(run.id.0)
        .bind(run.number as i32)
        .bind(run.status.as_str())
        .bind(run.started_at.timestamp_micros())
        .bind(run.ended_at.map(|time| time.timestamp_micros()))
        .bind(run.finish_reason.as_deref().map(text))
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}
