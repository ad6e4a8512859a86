//! What Kubernetes asks of the program's processes, by the manifests of `deploy/`.

use serde_json::Value;

use super::metrics::Served;
use super::world::{World, reading};

/// Returns the paths of the probes of the container that runs a command.
fn probes(command: &str) -> Vec<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/kubernetes/perihelion.yaml");
    let text = std::fs::read_to_string(path).unwrap();
    let manifests: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    let containers = manifests.iter().filter_map(|one| {
        one["spec"]["template"]["spec"]["containers"].as_array().and_then(|all| all.first())
    });
    let ours = containers.filter(|container| container["args"][0] == command);
    let probes = ours.flat_map(|container| {
        ["livenessProbe", "readinessProbe"].map(|probe| &container[probe]["httpGet"]["path"])
    });
    probes.filter_map(|path| path.as_str().map(str::to_owned)).collect()
}

#[tokio::test]
async fn a_healthy_process_answers_the_probes_of_its_manifest() {
    let world = World::new(reading()).await;
    for (args, paths) in [
        (&["serve", "--addr", "127.0.0.1:0"], vec!["/healthz", "/readyz"]),
        (&["worker", "--metrics", "127.0.0.1:0"], vec!["/healthz", "/readyz"]),
    ] {
        assert_eq!(probes(args[0]), paths, "{args:?}");
        let served = Served::start(&world, args).await;
        for path in paths {
            assert_eq!(served.status(path).await, 200, "{args:?} {path}");
        }
        served.stop().await;
    }
}
