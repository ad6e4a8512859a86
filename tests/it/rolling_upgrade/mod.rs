//! A thread begun by an older program continues under a newer one, on a database that the older one made.
//!
//! Enter at [`database::older`], a database at any earlier migration with a thread in the middle of a step, and
//! [`program`], the same graph in two versions. Invariant: what is stored in `tests/golden` was written by a
//! program of that time and is never written again. Deliberately absent: two binaries; both versions of the
//! program's own types and graphs run in this one, on connections of their own.

mod continuing;
mod database;
mod program;
mod side_by_side;

use self::database::Kind;

/// Runs each named test on both databases, at every migration there has been.
macro_rules! on_older_databases {
    ($($name:ident),+ $(,)?) => {
        mod sqlite {
            $(
                #[tokio::test]
                async fn $name() {
                    for level in 1..=$crate::rolling_upgrade::Kind::Sqlite.newest() {
                        let kind = $crate::rolling_upgrade::Kind::Sqlite;
                        super::$name(&super::older(kind, level).await).await;
                    }
                }
            )+
        }
        mod postgres {
            $(
                #[tokio::test]
                async fn $name() {
                    for level in 1..=$crate::rolling_upgrade::Kind::Postgres.newest() {
                        let kind = $crate::rolling_upgrade::Kind::Postgres;
                        super::$name(&super::older(kind, level).await).await;
                    }
                }
            )+
        }
    };
}

pub(crate) use on_older_databases;
