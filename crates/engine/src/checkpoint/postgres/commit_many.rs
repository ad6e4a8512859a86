//! The steps of several threads in one statement, while many commit at the same time.
//!
//! A statement costs the server far more than a row of it: with 32 threads, one statement each spends both
//! the server's and the client's time on parsing messages and waking processes.

use std::{collections::HashSet, pin::pin, time::Duration};

use perihelion_database::postgres::{Connections, is_broken};
use sqlx::{PgConnection, Row};
use uuid::Uuid;

use super::super::{
    Commit, Error,
    group_commit::{GroupCommit, Lane, Turn},
    limits::big,
};
use super::commit;
use crate::ids::ThreadId;

/// Commits under way at the same time in one process; further ones wait, and are committed together.
const LANES: usize = 2;

/// How long a commit may keep its lane: far longer than a flush takes.
const PATIENCE: Duration = Duration::from_millis(50);

/// Steps in one statement.
const MOST: usize = 64;

pub(super) type CommitGroup = GroupCommit<Commit, Fate>;

/// What became of a commit that shared its statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Done,
    /// It changed nothing; sent by itself it learns why, or waits for the one who holds the thread's row.
    Untouched,
    /// The reply was lost.
    Lost,
}

pub(super) fn group() -> CommitGroup {
    GroupCommit::new(LANES, MOST)
}

/// Commits a step, in a statement of its own unless others wait as well; one with texts always is.
pub(super) async fn commit(
    connections: &Connections,
    group: &CommitGroup,
    commit: &Commit,
) -> Result<(), Error> {
    // Texts are long: they go in a statement of their own, with their step.
    if !commit.blobs.is_empty() {
        return commit::commit(connections, commit).await;
    }
    let fate = match group.turn(|| commit.clone()).await {
        Turn::Alone(lane) => return alone(connections, lane, commit).await,
        Turn::Lead(batch) => match batch.alone() {
            Ok(lane) => return alone(connections, lane, commit).await,
            Err(batch) => {
                let fates = write(connections, batch.jobs()).await;
                batch.tell(fates).unwrap_or(Fate::Lost)
            }
        },
        Turn::Written(fate) => fate,
        Turn::Lost => Fate::Lost,
    };
    match fate {
        Fate::Done => Ok(()),
        Fate::Untouched => commit::commit(connections, commit).await,
        Fate::Lost => {
            let reason = std::io::Error::other("the connection broke during a commit");
            commit::recover(connections, commit, reason.into()).await
        }
    }
}

/// Sends one commit, and gives the lane up when it waits for the one who holds the thread's row.
async fn alone(
    connections: &Connections,
    lane: Lane<Commit, Fate>,
    commit: &Commit,
) -> Result<(), Error> {
    let mut sending = pin!(commit::commit(connections, commit));
    match tokio::time::timeout(PATIENCE, &mut sending).await {
        Ok(done) => done,
        Err(_) => {
            drop(lane);
            sending.await
        }
    }
}

/// Writes what can be written in one statement; returns the fates in the order of the commits.
async fn write(connections: &Connections, commits: &[Commit]) -> Vec<Fate> {
    let all = |fate| vec![fate; commits.len()];
    let Ok(mut connection) = connections.take().await else { return all(Fate::Untouched) };
    // Of two writers of one thread, one is stale; the second learns it by itself.
    let mut threads = HashSet::with_capacity(commits.len());
    let shared: Vec<&Commit> =
        commits.iter().filter(|commit| threads.insert(commit.thread)).collect();
    let sent = connections.brief(send(&mut connection, &shared)).await;
    match sent {
        Ok(mut moved) => {
            connection.give_back();
            let done = commits.iter().map(|commit| match moved.remove(&commit.thread) {
                true => Fate::Done,
                false => Fate::Untouched,
            });
            done.collect()
        }
        Err(error) if is_broken(&error) => all(Fate::Lost),
        Err(_) => {
            // The server refused the statement as a whole; which commit is to blame shows when each goes alone.
            connection.give_back();
            all(Fate::Untouched)
        }
    }
}

/// A row that another transaction holds is skipped, so that no commit waits for a stranger's thread and two
/// statements with several threads in common cannot block each other.
const COMMIT_MANY: &str = "WITH input AS (
        SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::text[], $4::bigint[], $5::uuid[], $6::int[],
            $7::smallint[], $8::text[], $9::bytea[], $10::bytea[], $11::bytea[], $12::bool[])
        AS t (id, seq, status, fence, run, schema_version, codec, kind, hash, frontier, delta, clears)
     ), free AS (
        SELECT thread.id FROM thread JOIN input USING (id)
        WHERE thread.head = input.seq - 1 AND thread.fence = input.fence
        FOR NO KEY UPDATE OF thread SKIP LOCKED
     ), moved AS (
        UPDATE thread SET head = input.seq, status = input.status, updated_at = now()
        FROM free JOIN input USING (id)
        WHERE thread.id = free.id AND thread.head = input.seq - 1 AND thread.fence = input.fence
        RETURNING thread.id
     ), cleared AS (
        DELETE FROM pending USING moved JOIN input USING (id)
        WHERE input.clears AND pending.thread_id = moved.id AND pending.step <= input.seq
     )
     INSERT INTO step
        (thread_id, run, seq, schema_version, codec, kind, hash, frontier, delta)
     SELECT id, run, seq, schema_version, codec, kind, hash, frontier, delta
     FROM moved JOIN input USING (id)
     RETURNING thread_id";

/// Returns the threads whose step was committed.
async fn send(
    connection: &mut PgConnection,
    commits: &[&Commit],
) -> Result<HashSet<ThreadId>, sqlx::Error> {
    fn column<'a, T>(commits: &[&'a Commit], of: impl Fn(&'a Commit) -> T) -> Vec<T> {
        commits.iter().map(|commit| of(commit)).collect()
    }
    let rows = sqlx::query(COMMIT_MANY)
        .bind(column(commits, |commit| commit.thread.0))
        .bind(column(commits, |commit| big(commit.step.seq)))
        .bind(column(commits, |commit| commit.status.as_str()))
        .bind(column(commits, |commit| big(commit.fence)))
        .bind(column(commits, |commit| commit.step.run.0))
        .bind(column(commits, |commit| commit.step.schema_version as i32))
        .bind(column(commits, |commit| commit.step.delta.codec as i16))
        .bind(column(commits, |commit| commit.step.kind.as_str()))
        .bind(column(commits, |commit| &commit.step.hash[..]))
        .bind(column(commits, |commit| &commit.step.frontier[..]))
        .bind(column(commits, |commit| &commit.step.delta.bytes[..]))
        .bind(column(commits, |commit| commit.clears_pending))
        .fetch_all(connection)
        .await?;
    rows.iter().map(|row| row.try_get::<Uuid, _>(0).map(ThreadId)).collect()
}
