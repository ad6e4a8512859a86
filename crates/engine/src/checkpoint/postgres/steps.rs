//! What a state is restored from, and what unfinished steps already have, each in one statement.

use perihelion_database::{Row, idempotent};

use super::{
    super::{
        BlobRow, Commit, Error, Fence, Loaded, PendingRow, StepRow,
        both::{
            OwnSteps,
            decode::{self, ThreadRow},
            info as read_info,
            refusal::explain,
            steps::line,
        },
        chain::{not_beyond, reached},
        checksum,
        limits::big,
    },
    PostgresStore,
    blobs::{Unnested, bind_blobs, kept},
    together::{self, Shared as _},
};
use crate::ids::ThreadId;

impl OwnSteps for PostgresStore {
    /// Commits a step; one with texts goes in a statement of its own, as they are long.
    async fn commit(&self, commit: &Commit) -> Result<(), Error> {
        if commit.blobs.is_empty() {
            together::write(self, &self.commits, commit).await
        } else {
            commit.alone(self).await
        }
    }

    async fn save_pending(
        &self,
        fence: Fence,
        row: &PendingRow,
        blobs: &[BlobRow],
    ) -> Result<(), Error> {
        let sum = checksum::pending(row);
        let statement = if blobs.is_empty() { SAVE_PENDING } else { SAVE_PENDING_AND_KEEP };
        let query = || {
            let query = sqlx::query_scalar(statement)
                .bind(fence.thread.0)
                .bind(big(fence.token))
                .bind(big(row.step))
                .bind(row.task as i32)
                .bind(row.body.codec as i16)
                .bind(&row.body.bytes[..])
                .bind(&sum[..]);
            if blobs.is_empty() { query } else { bind_blobs!(query, Unnested::new(blobs)) }
        };
        let token: i64 = idempotent!(self.connections, |c| query().fetch_one(&mut *c))?;
        match token {
            0 => {
                let place = explain(&self.database, fence).await?;
                Err(Error::Conflict { thread: fence.thread, seq: row.step, head: place.head })
            }
            _ => Ok(()),
        }
    }

    async fn load(
        &self,
        thread: ThreadId,
        at: Option<u64>,
        since: Option<u64>,
    ) -> Result<Loaded, Error> {
        let ThreadRow { mut info, base } = read_info(&self.database, thread).await?;
        let head = info.head;
        if at.is_some_and(|at| at > head || at < base) {
            return Err(Error::UnknownStep { thread, seq: at.unwrap_or(head), head });
        }
        let after = since.map(|since| since.saturating_sub(1));
        let rows = idempotent!(self.connections, |c| each row of sqlx::query(LOAD)
            .bind(thread.0)
            .bind(at.map_or(i64::MAX, big))
            .bind(after.map(big)))?;
        let mut snapshot = None;
        let mut steps: Vec<StepRow> = Vec::with_capacity(rows.len());
        let mut pending: Vec<PendingRow> = Vec::new();
        for row in rows.into_iter().map(Row::from) {
            match row.get::<i64>("part")? {
                0 => snapshot = Some(decode::snapshot(thread, &row)?),
                1 => steps.push(decode::step(&row)?),
                2 => pending.push(decode::pending(thread, &row)?),
                _ => not_beyond(thread, row.get("seq")?)?,
            }
        }
        steps.sort_unstable_by_key(|step| step.seq);
        pending.sort_unstable_by_key(|row| row.task);
        // Somebody may have committed, or deleted the thread, between the two reads; the second one is
        // consistent in itself.
        let after = after.or(snapshot.as_ref().map(|snapshot| snapshot.seq)).unwrap_or_default();
        let reached = match reached(thread, after, &steps, at.unwrap_or(head)) {
            Ok(reached) => reached,
            Err(error) => {
                return Err(read_info(&self.database, thread).await.err().unwrap_or(error));
            }
        };
        info.head = head.max(reached);
        Ok(Loaded { info, snapshot, steps, pending })
    }
}

/// Snapshot (0), steps (1), pending writes (2) and a step that the head has not reached (3) in one consistent read.
const LOAD: &str = concat!(
    line!(),
    ", newest AS (
        SELECT s.* FROM line CROSS JOIN LATERAL (
            SELECT * FROM snapshot WHERE $3::bigint IS NULL AND thread_id = line.id AND seq <= line.upto
            ORDER BY seq DESC LIMIT 1
        ) s ORDER BY s.seq DESC LIMIT 1
     )
     SELECT 0 AS part, seq, schema_version, codec, state AS body, checksum, blobs_codec, blobs,
        NULL::uuid AS run, NULL::timestamptz AS at, NULL::text AS kind, NULL::bytea AS hash,
        NULL::bytea AS frontier, NULL::integer AS task
     FROM newest
     UNION ALL
     SELECT 1, s.seq, s.schema_version, s.codec, s.delta, NULL, NULL, NULL, s.run, s.at, s.kind, s.hash, s.frontier, NULL
     FROM line JOIN step s ON s.thread_id = line.id AND s.seq <= line.upto
        AND s.seq > coalesce($3, (SELECT seq FROM newest), 0)
     UNION ALL
     SELECT 2, p.step, NULL, p.codec, p.body, p.checksum, NULL, NULL, NULL, NULL, NULL, NULL, NULL, p.task
     FROM pending p JOIN thread t ON t.id = p.thread_id
     WHERE t.id = $1 AND p.step = t.head + 1 AND t.head <= $2
     UNION ALL
     SELECT 3, (SELECT min(s.seq) FROM step s WHERE s.thread_id = t.id AND s.seq > t.head),
        NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
     FROM thread t WHERE t.id = $1"
);

// The thread's row is locked in share mode first: a claim waits for it, and after a claim the fence no longer matches.
// Tasks of one step do not wait for each other.

macro_rules! save_pending {
    ($more:expr) => {
        concat!(
            "WITH leased AS (
                SELECT id FROM thread WHERE id = $1 AND fence = $2 AND head = $3 - 1 FOR SHARE
             ), saved AS (
                INSERT INTO pending (thread_id, step, task, codec, body, checksum)
                SELECT id, $3, $4, $5, $6, $7 FROM leased
                ON CONFLICT (thread_id, step, task) DO NOTHING
             )",
            $more,
            " SELECT count(*) FROM leased"
        )
    };
}

const SAVE_PENDING: &str = save_pending!("");
const SAVE_PENDING_AND_KEEP: &str =
    save_pending!(concat!(", kept AS (", kept!("leased, ", "8", "9", "10", "11", "12"), ")"));
