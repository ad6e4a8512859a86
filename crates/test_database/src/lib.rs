//! A Postgres database for one test, whose owner is subject to row-level security; with the server of a test process, and
//! a proxy that loses messages.
//!
//! Enter at [`TestDatabase::make`], [`postgres::server`] and [`proxy::before`]. A superuser bypasses every policy, so a statement without its tenant would look right in tests and return no rows in
//! production. If the server's user cannot create roles, the databases are its own.
#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

pub mod postgres;
pub mod proxy;

use std::str::FromStr as _;

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, PgConnection};
use uuid::Uuid;

/// A database that no other test uses; dropped with this value.
#[derive(Debug)]
pub struct TestDatabase {
    pub name: String,
    /// Its address for its owner.
    pub url: String,
    /// Its address for the server's user, who may see everything.
    pub admin_url: String,
    server: String,
    has_role: bool,
}

impl TestDatabase {
    /// Makes a database on the server that `TEST_DATABASE_URL` names.
    ///
    /// # Panics
    /// In CI without a server, and if the database cannot be created.
    pub async fn make() -> Option<Self> {
        match std::env::var("TEST_DATABASE_URL").ok().filter(|url| !url.is_empty()) {
            Some(server) => Some(Self::on(&server).await),
            None => {
                assert!(std::env::var("CI").is_err(), "TEST_DATABASE_URL is not set");
                None
            }
        }
    }

    /// Makes a database on a server, given the address of any database of it.
    ///
    /// # Panics
    /// When the database cannot be made.
    pub async fn on(server: &str) -> Self {
        let name = format!("test_{}", Uuid::new_v4().simple());
        let mut connection = connect(server).await;
        let has_role: bool = sqlx::query_scalar(
            "SELECT rolsuper OR rolcreaterole FROM pg_roles WHERE rolname = current_user",
        )
        .fetch_one(&mut connection)
        .await
        .unwrap();
        let mut make = vec![format!("CREATE DATABASE {name}")];
        if has_role {
            let role =
                format!("CREATE ROLE {name} LOGIN NOSUPERUSER NOBYPASSRLS PASSWORD '{name}'");
            make = vec![role, format!("CREATE DATABASE {name} OWNER {name}")];
        }
        for sql in make {
            sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
        }
        connection.close().await.unwrap();
        let admin_url = with_database(server, &name);
        let url = if has_role { with_role(&admin_url, &name, &name) } else { admin_url.clone() };
        Self { url, admin_url, server: server.to_owned(), name, has_role }
    }

    /// Connects as the server's user.
    ///
    /// # Panics
    /// When the server cannot be reached.
    pub async fn connect(&self) -> PgConnection {
        connect(&self.admin_url).await
    }

    /// Connects as its owner.
    ///
    /// # Panics
    /// When the server cannot be reached.
    pub async fn connect_as_owner(&self) -> PgConnection {
        connect(&self.url).await
    }

    /// Returns its address for another role with a password.
    pub fn url_as(&self, role: &str, password: &str) -> String {
        with_role(&self.admin_url, role, password)
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let mut drop = vec![format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name)];
        if self.has_role {
            drop.push(format!("DROP ROLE IF EXISTS {}", self.name));
        }
        let server = self.server.clone();
        // A thread of its own, since this may run inside a runtime.
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let mut connection = connect(&server).await;
                for sql in drop {
                    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
                }
                connection.close().await.unwrap();
            });
        });
        let outcome = dropping.join();
        if !std::thread::panicking() {
            outcome.unwrap();
        }
    }
}

async fn connect(url: &str) -> PgConnection {
    PgConnectOptions::from_str(url).unwrap().connect().await.unwrap()
}

/// Replaces the database's name in a URL, keeping its parameters.
pub fn with_database(url: &str, database: &str) -> String {
    let (base, parameters) = url.split_once('?').map_or((url, None), |(b, p)| (b, Some(p)));
    let (authority, _) = base
        .rsplit_once('/')
        .filter(|(a, _)| a.contains("://") && !a.ends_with('/'))
        .unwrap_or((base, ""));
    let parameters = parameters.map_or_else(String::new, |p| format!("?{p}"));
    format!("{authority}/{database}{parameters}")
}

/// Replaces who connects in a URL.
fn with_role(url: &str, role: &str, password: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("postgres", url));
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let host = rest[..end].rfind('@').map_or(0, |at| at + 1);
    format!("{scheme}://{role}:{password}@{}", &rest[host..])
}

#[test]
fn names_are_replaced_in_a_url() {
    assert_eq!(with_database("postgres://u:p@h:1/postgres", "x"), "postgres://u:p@h:1/x");
    assert_eq!(with_database("postgres://u@h", "x"), "postgres://u@h/x");
    assert_eq!(
        with_database("postgres://h/a?sslmode=disable", "x"),
        "postgres://h/x?sslmode=disable"
    );
    assert_eq!(with_role("postgres://u:p@h:1/a?b=c@d", "x", "y"), "postgres://x:y@h:1/a?b=c@d");
    assert_eq!(with_role("postgres://h/a", "x", "y"), "postgres://x:y@h/a");
}
