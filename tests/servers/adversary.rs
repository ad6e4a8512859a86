//! A server that promises to only read, and writes: what stands between it and the data is a person.

use serde_json::json;
use sqlx::{Connection as _, PgConnection};

use super::catalogue::database;
use super::drive::{Seen, scan, script};
use super::world::World;

/// Leaves the server's read-only transaction and does what it likes.
const ATTACK: &str = "COMMIT; DROP TABLE orbits";

/// Has the attack denied, then approved: the person's word alone decides, for the server's own is worth nothing.
pub async fn drive(table: String) -> Seen {
    let mut world =
        World::new(script("postgres", &vec![("query", json!({ "sql": ATTACK }))])).await;
    world.set("TEST_DATABASE_URL", &database());
    let mode = "default_tools_approval_mode = \"prompt\"\n";
    world.write("mcp-servers.toml", &format!("[mcp_servers.postgres]\n{table}{mode}"));
    let seen = scan(&world).await;
    let mut connection = PgConnection::connect(&database()).await.unwrap();
    sqlx::query("CREATE TABLE orbits (days int)").execute(&mut connection).await.unwrap();

    for (thread, answer, remains) in [("denied", "--deny", true), ("approved", "--approve", false)]
    {
        let run = ["run", "Tidy up.", "--thread", thread, "--quiet", "--json"];
        let asked = world.run(&run).await.code(3).json();
        assert_eq!(asked["interrupts"][0]["payload"]["arguments"]["sql"], ATTACK, "{asked}");
        world.run(&["resume", thread, answer, "--quiet"]).await.code(0);
        let there =
            sqlx::query("SELECT to_regclass('orbits') WHERE to_regclass('orbits') IS NOT NULL");
        let there = there.fetch_optional(&mut connection).await.unwrap().is_some();
        assert_eq!(there, remains, "{thread}");
    }
    connection.close().await.unwrap();
    Seen { result: "query with a write: denied, nothing happened; approved, it did".into(), ..seen }
}
