//! Which product answers: PostgreSQL, or a database that speaks its protocol.

use sqlx::{Connection as _, Row as _};

use super::server::{SILENCE, Server, within};
use crate::Error;

/// Finds the signs of each product. None has all of these functions and settings, so none is called.
const FIND: &str = "SELECT version() AS version, \
    EXISTS (SELECT 1 FROM pg_proc WHERE proname = 'aurora_version') AS is_aurora, \
    EXISTS (SELECT 1 FROM pg_settings WHERE name LIKE 'alloydb.%') AS is_alloydb, \
    EXISTS (SELECT 1 FROM pg_extension WHERE extname = 'citus') AS has_citus";

impl Server {
    /// Asks the server which product it is, without migrating it: a name with its version.
    ///
    /// # Errors
    /// [`Error::Unreachable`], [`Error::Failed`].
    pub async fn product(&self) -> Result<String, Error> {
        let mut connection = self.connect_once().await?;
        let row = within(SILENCE, sqlx::query(FIND).fetch_one(&mut connection)).await?;
        let found = ["is_aurora", "is_alloydb", "has_citus"].map(|name| row.try_get(name));
        let [is_aurora, is_alloydb, has_citus] = found;
        let product = named(row.try_get("version")?, (is_aurora?, is_alloydb?, has_citus?));
        within(SILENCE, connection.close()).await?;
        Ok(product)
    }
}

fn named(version: &str, (is_aurora, is_alloydb, has_citus): (bool, bool, bool)) -> String {
    // "PostgreSQL 15.12 on x86_64…", "PostgreSQL 15.12-YB-2025.2.3.0-b1 on …", "CockroachDB CCL v26.1.0 (…".
    let end = version.find(" on ").or_else(|| version.find(" ("));
    let version = &version[..end.unwrap_or(version.len())];
    let is_yugabyte = version.contains("-YB-");
    let products = [
        (is_yugabyte, "YugabyteDB"),
        (is_aurora, "Amazon Aurora"),
        (is_alloydb, "AlloyDB"),
        (has_citus, "Citus"),
    ];
    match products.iter().find(|(is_it, _)| *is_it) {
        Some((_, product)) => format!("{product} ({version})"),
        None => version.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::named;

    #[test]
    fn a_product_is_named_by_what_its_server_says() {
        let postgres = "PostgreSQL 17.2 (Debian 17.2-1) on x86_64-pc-linux-gnu, compiled by gcc";
        let plain = (false, false, false);
        assert_eq!(named(postgres, plain), "PostgreSQL 17.2 (Debian 17.2-1)");
        assert_eq!(
            named("PostgreSQL 16.4 on aarch64", (true, false, false)),
            "Amazon Aurora (PostgreSQL 16.4)"
        );
        assert_eq!(
            named("PostgreSQL 16.4 on x86_64", (false, false, true)),
            "Citus (PostgreSQL 16.4)"
        );
        let yugabyte = "PostgreSQL 15.12-YB-2025.2.3.0-b1 on x86_64-pc-linux-gnu";
        assert_eq!(named(yugabyte, plain), "YugabyteDB (PostgreSQL 15.12-YB-2025.2.3.0-b1)");
        let cockroach = "CockroachDB CCL v26.1.0 (x86_64-pc-linux-gnu, built 2026/02/01)";
        assert_eq!(named(cockroach, plain), "CockroachDB CCL v26.1.0");
    }
}
