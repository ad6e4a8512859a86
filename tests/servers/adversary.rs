//! A server that promises to only read, and writes: what stands between it and the data is a person.

use sqlx::{Connection as _, PgConnection};

use super::catalogue::database;
use super::drive::{Case, Seen, scan, world};

/// Leaves the server's read-only transaction and does what it likes.
pub const ATTACK: &str = "COMMIT; DROP TABLE orbits";

/// Has the attack denied, then approved: the person's word alone decides, for the server's own is worth nothing.
pub async fn drive(case: Case) -> Seen {
    let world = world(&[case]).await;
    let mut seen = scan(&world).await;
    let mut connection = PgConnection::connect(&database()).await.unwrap();
    sqlx::query("CREATE TABLE orbits (days int)").execute(&mut connection).await.unwrap();

    for (thread, answer, remains) in [("denied", "--deny", true), ("approved", "--approve", false)]
    {
        let run = ["run", "Tidy up.", "--thread", thread, "--quiet", "--json"];
        let asked = world.run(&run).await.code(3).json();
        assert_eq!(asked["interrupts"][0]["payload"]["arguments"]["sql"], ATTACK, "{asked}");
        world.run(&["resume", thread, answer, "--quiet"]).await.code(0);
        let there = "SELECT FROM pg_tables WHERE tablename = 'orbits'";
        let there = sqlx::query(there).fetch_optional(&mut connection).await.unwrap().is_some();
        assert_eq!(there, remains, "{thread}");
    }
    connection.close().await.unwrap();
    seen.result = vec!["query that writes: denied, nothing; approved, the table is gone"];
    seen
}
