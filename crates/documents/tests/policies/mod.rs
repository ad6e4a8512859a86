//! Row-level security below every question: where a `WHERE` is forgotten, another tenant's rows are not seen.

use crate::support::{Adds as _, Endpoint, input, scope};
use perihelion_database::{Database, query};
use perihelion_documents::{Library, Limits, Parser, Scope};
use perihelion_test_database::TestDatabase;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

/// The tables of documents and of what is found of them.
const TABLES: [&str; 11] = [
    "document",
    "document_attempt",
    "document_segment",
    "document_parent",
    "document_usage",
    "recall_space",
    "recall_item",
    "recall_posting",
    "recall_part",
    "recall_model",
    "recall_vector",
];

async fn rows(database: &Database, table: &str) -> i64 {
    let count = query(AssertSqlSafe(format!("SELECT count(*) FROM {table}")));
    database.fetch_optional(&count).await.unwrap().unwrap().get(0).unwrap()
}

/// S3.04, S3.06: statements without any `WHERE` see and change the rows of the tenant that they act for, and no others.
#[tokio::test(flavor = "multi_thread")]
async fn a_query_without_a_tenant_filter_returns_no_row_of_another_tenant() {
    let Some(server) = TestDatabase::make().await else { return };
    let database = Database::open(&server.url).await.unwrap();
    assert!(!database.is_exempt().await.unwrap());
    let library = Library::new(database.clone(), Parser::Here(Limits::default()), scope("ann"));
    let endpoint = Endpoint::default();
    let theirs = Scope::new("theirs", "ann").unwrap();
    // So many that some are in the lists, some are divided among buckets, and the last ones wait.
    for number in 0..140 {
        let document = input(&format!("lease{number}.md"), "# Rent\n\nThe rent is 1,250 crowns.");
        library.within(&theirs).add(document, None, Some(&endpoint), &|_| {}).await.unwrap();
    }

    let of_them = database.of_tenant("theirs");
    let of_us = database.of_tenant("ours");
    for table in TABLES {
        assert!(rows(&of_them, table).await > 0, "{table}");
        assert_eq!(rows(&of_us, table).await, 0, "{table}");
        assert_eq!(rows(&database, table).await, 0, "for nobody: {table}");
        assert!(rows(&database.of_all_tenants(), table).await > 0, "{table}");
        let delete = query(AssertSqlSafe(format!("DELETE FROM {table}")));
        assert_eq!(of_us.execute(&delete).await.unwrap(), 0, "{table}");
        assert_eq!(database.execute(&delete).await.unwrap(), 0, "{table}");
    }
    // Nobody writes into another's name either.
    let insert = query(
        "INSERT INTO recall_model (tenant, model, dimension, is_active) VALUES ('theirs', 'm', 1, false)",
    );
    let refused = of_us.execute(&insert).await.unwrap_err().to_string();
    assert!(refused.contains("row-level security"), "{refused}");
    // Nothing of it stays on a connection that others use.
    of_them.begin().await.unwrap().commit().await.unwrap();
    assert_eq!(rows(&database, "document").await, 0);
    let odd = database.of_tenant("it's \\ \u{0}");
    assert_eq!(rows(&odd, "document").await, 0);
    library.close().await;
}

/// S3.04: each table is held to its tenants by a policy that its owner cannot pass by; none is left out but the list of migrations.
#[tokio::test(flavor = "multi_thread")]
async fn every_table_has_a_forced_policy() {
    let Some(server) = TestDatabase::make().await else { return };
    Database::open(&server.url).await.unwrap().close().await;
    let mut connection = PgConnection::connect(&server.url).await.unwrap();
    let open: Vec<String> = sqlx::query_scalar(
        "SELECT c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
         WHERE n.nspname = 'public' AND c.relkind IN ('r', 'p') AND NOT (c.relrowsecurity AND c.relforcerowsecurity
            AND (SELECT array_agg(p.polname::text) FROM pg_policy p WHERE p.polrelid = c.oid)
                = ARRAY[CASE WHEN EXISTS (SELECT 1 FROM pg_attribute a
                    WHERE a.attrelid = c.oid AND a.attname = 'tenant' AND NOT a.attisdropped)
                  THEN 'of_tenant' ELSE 'of_thread' END])
         ORDER BY 1",
    )
    .fetch_all(&mut connection)
    .await
    .unwrap();
    // A wake-up call is the id of a thread of any tenant, and nothing else.
    assert_eq!(open, ["_sqlx_migrations", "wake_call"]);
    connection.close().await.unwrap();
}
