//! Each step's hash is computed over the hash before it, its content and its frontier.

use perihelion_engine::checkpoint::chain_hash;

use super::Record;

pub fn check(record: &Record) -> Result<(), String> {
    let mut previous = (record.base == 0).then_some([0; 32]);
    for step in &record.steps {
        if let Some(previous) = previous {
            let delta = step.delta.to_json_bytes().map_err(|error| error.to_string())?;
            if chain_hash(&previous, step.seq, &delta, &step.frontier) != step.hash {
                return Err(format!("the hash of step {} does not fit its content", step.seq));
            }
        }
        previous = Some(step.hash);
    }
    Ok(())
}
