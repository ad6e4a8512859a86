//! A process that is stopped between two of its writes: SQLite's write lock and the row locks of Postgres stay with one that is stopped
//! within a write, and then nobody else can continue (`docs/explanation/durability.md`).

use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use sqlx::{Connection as _, PgConnection, SqliteConnection};
use tokio::process::Child;

use super::processes::Site;
use crate::cli::world::signal;

/// Statements and transactions of others that have not ended.
const UNDER_WAY: &str = "SELECT count(*) FROM pg_stat_activity \
     WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle'";

impl Site {
    /// Stops a process where it holds no lock of the database.
    pub async fn stop_between_writes(&self, process: &Child) {
        loop {
            signal(process, Signal::SIGSTOP);
            let pid = Pid::from_raw(i32::try_from(process.id().unwrap()).unwrap());
            // Told once all of its threads have stopped.
            let status = waitpid(pid, Some(WaitPidFlag::WUNTRACED)).unwrap();
            assert_eq!(status, WaitStatus::Stopped(pid, Signal::SIGSTOP));
            if self.is_unlocked().await {
                return;
            }
            signal(process, Signal::SIGCONT);
            while !self.is_unlocked().await {}
        }
    }

    async fn is_unlocked(&self) -> bool {
        match self.database() {
            Some(url) => {
                let mut connection = PgConnection::connect(url).await.unwrap();
                let others: i64 =
                    sqlx::query_scalar(UNDER_WAY).fetch_one(&mut connection).await.unwrap();
                connection.close().await.unwrap();
                others == 0
            }
            None => {
                let file = self.world.path("data/perihelion/perihelion.db");
                let url = format!("sqlite:{}", file.display());
                let mut connection = SqliteConnection::connect(&url).await.unwrap();
                let text = "PRAGMA busy_timeout = 0; BEGIN IMMEDIATE; ROLLBACK";
                let begun = sqlx::raw_sql(text).execute(&mut connection).await;
                connection.close().await.unwrap();
                begun.is_ok()
            }
        }
    }
}
