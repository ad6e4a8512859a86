//! A process that dies inside a team loses nothing.

use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Rule};

use crate::office::{BOTH, Office, working};
use crate::world::first;

/// S1.10, X2: killed after the note was taken, while the keeper's next model call hangs.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_team_continues_from_its_last_step_and_sends_no_call_twice() {
    for kept in BOTH {
        let hangs = Rule::new(Reply::hang()).role(Role::Agent).agent("keeper");
        let hangs = hangs.after_tool_results(1).times(1);
        let office = Office::with_team(kept, first(hangs, working())).await;
        let world = &office.world;
        let mut process = world.start(&["run", "What is the answer?", "--thread", "t", "--quiet"]);
        // Supervisor above, supervisor, reader twice, reflector, supervisor, keeper twice.
        world.model.wait_for_requests(8).await;
        assert_eq!(office.notes(), 1, "{kept:?}");
        process.kill().await.unwrap();

        let report = world.run(&["resume", "t", "--json"]).await.code(0).json();
        assert_eq!(report["status"], "done", "{kept:?}: {report:#}");
        assert_eq!(office.notes(), 1, "{kept:?}");
        assert_eq!((office.asked("reader"), office.asked("keeper")), (2, 3), "{kept:?}");
        world.run(&["replay", "t"]).await.code(0);
    }
}
