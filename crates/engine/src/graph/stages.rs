//! Turns a task list with dependencies into stages that can run in parallel (S3.01).
//!
//! Kahn's algorithm: A. B. Kahn, "Topological sorting of large networks", CACM 5 (11), 1962.

use std::collections::HashMap;

/// Why a task list has no stages.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant names its fields")]
pub enum StageError {
    /// Two tasks have the same ID.
    #[error("two tasks have the same id: {0}")]
    Duplicate(String),
    /// A task depends on an ID that no task has.
    #[error("the task {task} depends on an unknown task: {dependency}")]
    UnknownDependency { task: String, dependency: String },
    /// Tasks depend on each other in a cycle; the IDs are in its order.
    #[error("the tasks depend on each other in a cycle: {}", .0.join(" → "))]
    Cycle(Vec<String>),
}

/// Groups tasks, given as (id, ids they depend on), into stages of indices; order within a stage is the list's.
///
/// # Errors
/// [`StageError`] naming the duplicate, the unknown id, or one whole cycle.
pub fn stages<D>(tasks: &[(&str, D)]) -> Result<Vec<Vec<usize>>, StageError>
where
    D: AsRef<[String]>,
{
    let mut index: HashMap<&str, usize> = HashMap::new();
    for (position, (id, _)) in tasks.iter().enumerate() {
        if index.insert(id, position).is_some() {
            return Err(StageError::Duplicate((*id).to_owned()));
        }
    }
    let mut needs: Vec<Vec<usize>> = Vec::with_capacity(tasks.len());
    for (id, dependencies) in tasks {
        let mut own = Vec::new();
        for dependency in dependencies.as_ref() {
            let Some(position) = index.get(dependency.as_str()) else {
                return Err(StageError::UnknownDependency {
                    task: (*id).to_owned(),
                    dependency: dependency.clone(),
                });
            };
            own.push(*position);
        }
        needs.push(own);
    }
    let mut done = vec![false; tasks.len()];
    let mut result = Vec::new();
    loop {
        let stage: Vec<usize> = (0..tasks.len())
            .filter(|task| !done[*task] && needs[*task].iter().all(|needed| done[*needed]))
            .collect();
        if stage.is_empty() {
            break;
        }
        for task in &stage {
            done[*task] = true;
        }
        result.push(stage);
    }
    match done.iter().position(|done| !done) {
        None => Ok(result),
        Some(start) => Err(StageError::Cycle(cycle(tasks, &needs, &done, start))),
    }
}

/// Walks unmet dependencies from a task that cannot run until one repeats.
fn cycle<D>(tasks: &[(&str, D)], needs: &[Vec<usize>], done: &[bool], start: usize) -> Vec<String> {
    let mut path = vec![start];
    let mut here = start;
    while let Some(next) = needs[here].iter().copied().find(|needed| !done[*needed]) {
        if let Some(first) = path.iter().position(|seen| *seen == next) {
            path.drain(..first);
            path.push(next);
            break;
        }
        path.push(next);
        here = next;
    }
    path.into_iter().map(|task| tasks[task].0.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list<'a>(tasks: &[(&'a str, &[&str])]) -> Vec<(&'a str, Vec<String>)> {
        tasks
            .iter()
            .map(|(id, needs)| (*id, needs.iter().map(ToString::to_string).collect()))
            .collect()
    }

    /// S3.01
    #[test]
    fn parallel_chain_and_diamond_become_the_expected_stages() {
        assert_eq!(stages(&list(&[("a", &[]), ("b", &[])])).unwrap(), [vec![0, 1]]);
        assert_eq!(stages(&list(&[("b", &["a"]), ("a", &[])])).unwrap(), [vec![1], vec![0]]);
        let diamond = list(&[("a", &[]), ("b", &["a"]), ("c", &["a"]), ("d", &["b", "c"])]);
        assert_eq!(stages(&diamond).unwrap(), [vec![0], vec![1, 2], vec![3]]);
        assert!(stages(&list(&[])).unwrap().is_empty());
    }

    /// S3.01
    #[test]
    fn a_cycle_an_unknown_id_and_a_duplicate_are_named() {
        let error = stages(&list(&[("x", &[]), ("a", &["x", "b"]), ("b", &["a"])])).unwrap_err();
        assert_eq!(error.to_string(), "the tasks depend on each other in a cycle: a → b → a");
        let error = stages(&list(&[("a", &["z"])])).unwrap_err();
        assert_eq!(error.to_string(), "the task a depends on an unknown task: z");
        assert_eq!(
            stages(&list(&[("a", &[]), ("a", &[])])).unwrap_err(),
            StageError::Duplicate("a".into())
        );
    }
}
