//! Runs that are stopped together, by how they stand (X5).

use perihelion_database::{Database, query};
use serde_json::json;

use super::served::Served;
use super::{on_both, saying};

on_both!(
    runs_of_all_threads_are_stopped_by_status,
    a_thread_that_was_made_for_one_run_goes_with_it,
);

async fn runs_of_all_threads_are_stopped_by_status(served: Served) {
    let before = served.model.requests().len();
    let [one, other] = [served.thread().await, served.thread().await];
    let begin = async |thread: &str, body| {
        let (code, run) = served.post(&format!("/threads/{thread}/runs"), &body).await;
        assert_eq!(code, 200, "{run}");
        format!("/threads/{thread}/runs/{}", run["run_id"].as_str().unwrap())
    };
    let running = begin(&one, saying("hang")).await;
    served.model.wait_for_requests(before + 1).await;
    let waits = begin(&one, saying("hello")).await;
    let mut later = saying("hello");
    later["after_seconds"] = json!(3_600);
    let later = begin(&other, later).await;
    let status = async |run: &str| served.get(run).await.1["status"].clone();
    let cancel = async |body| served.post("/runs/cancel?action=interrupt", &body).await.0;
    assert_eq!(cancel(json!({})).await, 422, "nothing says which");
    assert_eq!(cancel(json!({ "status": "done" })).await, 422);
    assert_eq!(cancel(json!({ "status": "pending" })).await, 204);
    assert_eq!([status(&waits).await, status(&later).await], ["interrupted"; 2]);
    assert_eq!(status(&running).await, "running");
    assert_eq!(cancel(json!({ "status": "pending" })).await, 404);
    assert_eq!(cancel(json!({ "status": "all" })).await, 204);
    served.get(&format!("{running}/join")).await;
    assert_eq!(status(&running).await, "interrupted");
}

/// X5: what is rolled back is still there for those who read its stream, and goes with its thread.
async fn a_thread_that_was_made_for_one_run_goes_with_it(served: Served) {
    let before = served.model.requests().len();
    let (code, run) = served.post("/runs", &saying("hang")).await;
    assert_eq!(code, 200, "{run}");
    let thread = format!("/threads/{}", run["thread_id"].as_str().unwrap());
    let run = format!("{thread}/runs/{}", run["run_id"].as_str().unwrap());
    served.model.wait_for_requests(before + 1).await;
    served.post(&format!("{run}/cancel?wait=true&action=rollback"), &json!({})).await;
    let status = served.get(&run).await.1["status"].clone();
    assert_eq!((status, served.get(&thread).await.0), (json!("interrupted"), 200));
    let (code, why) = served.send(reqwest::Method::DELETE, &run, &json!({})).await;
    assert_eq!(code, 204, "{why}");
    assert_eq!(served.get(&thread).await.0, 404);
}

/// X5
#[tokio::test]
async fn a_run_is_rolled_back_once_the_database_accepts_it() {
    let served = Served::postgres().await;
    let thread = served.thread().await;
    let runs = format!("/threads/{thread}/runs");
    served.post(&format!("{runs}/wait"), &saying("hello")).await;
    let (_, before) = served.get(&format!("/threads/{thread}/state")).await;
    let asked = served.model.requests().len();
    let (_, run) = served.post(&runs, &saying("hang")).await;
    let run = format!("{runs}/{}", run["run_id"].as_str().unwrap());
    served.model.wait_for_requests(asked + 1).await;
    let database = Database::open(&served.database()).await.unwrap().of_all_tenants();
    // A number that is drawn stays drawn, whatever becomes of the statement.
    for statement in [
        "CREATE SEQUENCE refused",
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM nextval('refused'); \
            RAISE EXCEPTION 'no room' USING ERRCODE = '53400'; END $$",
        "CREATE TRIGGER refuse BEFORE INSERT ON step FOR EACH ROW WHEN (NEW.kind = 'fork') EXECUTE FUNCTION refuse()",
    ] {
        database.execute(&query(statement)).await.unwrap();
    }
    let accepted = async {
        let drawn = query("SELECT 1 FROM refused WHERE is_called");
        while database.fetch_optional(&drawn).await.unwrap().is_none() {
            perihelion::clock::sleep(std::time::Duration::from_millis(10)).await;
        }
        database.execute(&query("DROP TRIGGER refuse ON step")).await.unwrap();
    };
    let cancel = format!("{run}/cancel?wait=true&action=rollback");
    let nothing = json!({});
    tokio::join!(served.post(&cancel, &nothing), accepted);
    assert_eq!(served.get(&run).await.0, 404);
    let (_, after) = served.get(&format!("/threads/{thread}/state")).await;
    assert_eq!(after["values"], before["values"]);
    database.close().await;
}
