//! The journal's rows on their way in: those of a task that it has at one time are one statement.

use chrono::{DateTime, Utc};
use perihelion_database::idempotent;

use super::{
    super::{
        EffectRow, Error,
        both::{columns::effect_columns, refusal::explain},
        checksum,
        limits::{big, text},
    },
    PostgresStore,
};
use crate::ids::ThreadId;

// The thread's row is locked in share mode first: a claim waits for it, and after a claim the fence no
// longer matches. Tasks of one step do not wait for each other.
const RECORD: &str = concat!(
    "WITH leased AS (SELECT id FROM thread WHERE id = $1 AND fence = $2 FOR SHARE), recorded AS (
        INSERT INTO effect (thread_id, ",
    effect_columns!(),
    ")
        SELECT leased.id, e.* FROM leased, unnest($3::bigint[], $4::timestamptz[], $5::timestamptz[], $6::integer[], $7::integer[], $8::integer[], $9::smallint[],
          $10::smallint[], $11::text[], $12::text[], $13::text[], $14::bytea[], $15::bytea[], $16::bytea[],
          $17::bytea[], $18::bytea[]) AS e (",
    effect_columns!(),
    ") ON CONFLICT DO NOTHING RETURNING thread_id, step, task
     ), counted AS (
        INSERT INTO effect_count (thread_id, step, task, effects)
        SELECT thread_id, step, task, count(*) FROM recorded GROUP BY thread_id, step, task
        ON CONFLICT (thread_id, step, task) DO UPDATE SET effects = effect_count.effects + excluded.effects
     )
     SELECT count(*) FROM leased"
);

/// Rows as the columns that a statement unnests.
struct Columns<'e> {
    steps: Vec<i64>,
    started_at: Vec<DateTime<Utc>>,
    ended_at: Vec<Option<DateTime<Utc>>>,
    tasks: Vec<i32>,
    numbers: Vec<i32>,
    attempts: Vec<i32>,
    request_codecs: Vec<i16>,
    outcome_codecs: Vec<Option<i16>>,
    kinds: Vec<&'static str>,
    statuses: Vec<&'static str>,
    names: Vec<String>,
    keys: Vec<&'e [u8]>,
    requests: Vec<&'e [u8]>,
    outcomes: Vec<Option<&'e [u8]>>,
    request_sums: Vec<Vec<u8>>,
    outcome_sums: Vec<Vec<u8>>,
}

impl<'e> Columns<'e> {
    fn new(thread: ThreadId, rows: &'e [EffectRow]) -> Self {
        fn each<'e, T>(rows: &'e [EffectRow], of: impl Fn(&'e EffectRow) -> T) -> Vec<T> {
            rows.iter().map(of).collect()
        }
        Self {
            steps: each(rows, |row| big(row.step)),
            started_at: each(rows, |row| row.started_at),
            ended_at: each(rows, |row| row.ended_at),
            tasks: each(rows, |row| row.task as i32),
            numbers: each(rows, |row| row.number as i32),
            attempts: each(rows, |row| row.attempt as i32),
            request_codecs: each(rows, |row| row.request.codec as i16),
            outcome_codecs: each(rows, |row| row.outcome.as_ref().map(|it| it.codec as i16)),
            kinds: each(rows, |row| row.kind.as_str()),
            statuses: each(rows, |row| row.status.as_str()),
            names: each(rows, |row| text(&row.name).into_owned()),
            keys: each(rows, |row| &row.key[..]),
            requests: each(rows, |row| &row.request.bytes[..]),
            outcomes: each(rows, |row| row.outcome.as_ref().map(|it| &it.bytes[..])),
            request_sums: each(rows, |row| checksum::request(thread, row).to_vec()),
            outcome_sums: each(rows, |row| checksum::outcome_of(row).to_vec()),
        }
    }
}

/// Binds effects where [`RECORD`] unnests them.
macro_rules! bind {
    ($query:expr, $columns:expr) => {
        $query
            .bind($columns.steps)
            .bind($columns.started_at)
            .bind($columns.ended_at)
            .bind($columns.tasks)
            .bind($columns.numbers)
            .bind($columns.attempts)
            .bind($columns.request_codecs)
            .bind($columns.outcome_codecs)
            .bind($columns.kinds)
            .bind($columns.statuses)
            .bind($columns.names)
            .bind($columns.keys)
            .bind($columns.requests)
            .bind($columns.outcomes)
            .bind($columns.request_sums)
            .bind($columns.outcome_sums)
    };
}

pub(super) async fn record(
    store: &PostgresStore,
    thread: ThreadId,
    fence: u64,
    effects: &[EffectRow],
) -> Result<(), Error> {
    let token: i64 = idempotent!(store.connections, |c| bind!(
        sqlx::query_scalar(RECORD).bind(thread.0).bind(big(fence)),
        Columns::new(thread, effects)
    )
    .fetch_one(&mut *c))?;
    match token {
        0 => Err(explain(&store.database, thread, fence).await?.fenced(thread, fence)),
        _ => Ok(()),
    }
}
