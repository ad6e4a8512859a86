//! Row-level security on Postgres of what clients keep and of what runs took.
#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use chrono::{DateTime, Utc};
use perihelion_database::{Database, query};
use perihelion_service_rows::{Assistant, ItemFilter, Kept};
use perihelion_test_database::TestDatabase;
use serde_json::json;
use sqlx::AssertSqlSafe;
use uuid::Uuid;

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000, 0).unwrap()
}

async fn rows(database: &Database, table: &str) -> i64 {
    let count = query(AssertSqlSafe(format!("SELECT count(*) FROM {table}")));
    database.fetch_optional(&count).await.unwrap().unwrap().get(0).unwrap()
}

/// S3.04: statements without any `WHERE` see and change the rows of the tenant that they act for, and no others.
#[tokio::test]
async fn a_forgotten_where_returns_nothing_of_another_tenant() {
    let Some(server) = TestDatabase::make().await else { return };
    let database = Database::open(&server.url).await.unwrap();
    assert!(!database.is_exempt().await.unwrap());
    let theirs = Kept::new(database.clone(), "theirs");
    let path = ["notes".to_owned()];
    theirs.put_item(&path, "x", json!({ "v": 1 }), now()).await.unwrap();
    let assistant = Assistant {
        id: Uuid::now_v7(),
        version: 1,
        graph: "swarm".to_owned(),
        name: "one".to_owned(),
        description: None,
        config: json!({}),
        context: json!({}),
        metadata: json!({}),
        created_at: now(),
        updated_at: now(),
    };
    theirs.put_assistant(&assistant).await.unwrap();
    let (of_them, of_us) = (database.of_tenant("theirs"), database.of_tenant("ours"));
    let spend = query(
        "INSERT INTO spending (tenant, day, thread_id, turn, run_id, tokens, nano_usd, tool_calls, steps, millis) \
         VALUES ('theirs', '2027-01-15', $1, 1, $1, 1, 1, 1, 1, 1)",
    )
    .bind(Uuid::now_v7());
    let refused = of_us.execute(&spend).await.unwrap_err().to_string();
    assert!(refused.contains("row-level security"), "{refused}");
    of_them.execute(&spend).await.unwrap();

    for table in ["service_item", "service_assistant", "spending"] {
        assert_eq!(rows(&of_us, table).await, 0, "{table}");
        assert_eq!(rows(&database, table).await, 0, "for nobody: {table}");
        let delete = query(AssertSqlSafe(format!("DELETE FROM {table}")));
        assert_eq!(of_us.execute(&delete).await.unwrap(), 0, "{table}");
        assert_eq!(rows(&of_them, table).await, 1, "{table}");
        assert_eq!(rows(&database.of_all_tenants(), table).await, 1, "{table}");
    }
    // The tenant itself reads, changes and deletes as ever.
    theirs.put_item(&path, "x", json!({ "v": 2 }), now()).await.unwrap();
    let found = theirs.items(&ItemFilter { limit: 10, ..ItemFilter::default() }).await.unwrap();
    assert_eq!(found.iter().map(|item| &item.value).collect::<Vec<_>>(), [&json!({ "v": 2 })]);
    assert!(theirs.choose_assistant(assistant.id, 1).await.unwrap());
    assert!(theirs.delete_assistant(assistant.id).await.unwrap());
    theirs.close().await;
}
