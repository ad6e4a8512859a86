//! What a seed stands for: a graph, what its nodes do, and how rough the weather is.

use super::rng::Rng;

/// One thing a node does, in order.
#[derive(Clone, Debug)]
pub enum Act {
    /// Lets others go first.
    Pause,
    /// Asks a model, as it were; changes nothing.
    Inquire { what: String, fails: bool },
    /// Changes the world.
    Send { what: String, repeatable: bool, fails: bool },
    /// Two calls at once.
    Both { one: String, other: String },
    /// Asks a person.
    Ask { what: String },
    /// Draws a recorded random number.
    Draw,
    /// Fails this many times in each step, worth a retry.
    Trip { times: u32 },
    /// Always fails.
    Doom,
}

/// Where a node leads.
#[derive(Clone, Debug)]
pub enum Next {
    Edges(Vec<usize>),
    /// The node itself says, by the state at the start of its step.
    Goto(Vec<Vec<usize>>),
    /// A function of the state after its step.
    Route(Vec<Vec<usize>>),
    /// Fan-out with an input of its own per task.
    Sends(usize, u64),
}

#[derive(Clone, Debug)]
pub struct NodePlan {
    pub name: String,
    pub acts: Vec<Act>,
    pub next: Next,
    pub retries: bool,
}

#[derive(Clone, Debug)]
pub struct Plan {
    pub nodes: Vec<NodePlan>,
    pub entry: Vec<usize>,
    pub join: Option<(Vec<usize>, usize)>,
    /// The node that comes and goes.
    pub guest: Option<usize>,
    /// Branches end once this much was written.
    pub fuel: usize,
    pub max_steps: u64,
    pub max_parallel: usize,
    /// Inputs given one after the other.
    pub turns: usize,
    /// Whether the person looks before deciding over an unknown outcome.
    pub is_honest: bool,
    /// How many faults the weather has in store.
    pub faults: usize,
    /// How many in a hundred awaits the scheduler may hold up.
    pub gates: usize,
    /// Whether older steps may be dropped.
    pub compacts: bool,
    /// Whether a call may end without its reply.
    pub loses_replies: bool,
}

impl Plan {
    pub fn draw(rng: &mut Rng) -> Self {
        let count = 2 + rng.below(4);
        let honest = !rng.chance(20);
        let doomed = rng.chance(3);
        let nodes: Vec<NodePlan> = (0..count).map(|index| node(rng, index, count)).collect();
        let mut plan = Self {
            nodes,
            entry: targets(rng, count, 2),
            join: None,
            guest: rng.chance(20).then(|| rng.below(count)),
            fuel: 2 + rng.below(9),
            max_steps: if rng.chance(20) { 2 } else { 50 },
            max_parallel: 1 + rng.below(4),
            turns: 1 + usize::from(rng.chance(25)),
            is_honest: honest,
            faults: rng.below(9),
            gates: 20 + rng.below(80),
            compacts: rng.chance(15),
            loses_replies: rng.chance(30),
        };
        if count > 2 && rng.chance(30) {
            plan.join = Some((vec![0, 1], 2));
        }
        if doomed {
            let node = rng.below(count);
            plan.nodes[node].acts.push(Act::Doom);
        }
        plan
    }

    /// Returns whether the plan has a node that always fails.
    pub fn is_doomed(&self) -> bool {
        self.nodes.iter().any(|node| node.acts.iter().any(|act| matches!(act, Act::Doom)))
    }
}

fn node(rng: &mut Rng, index: usize, count: usize) -> NodePlan {
    let acts = (0..rng.below(4)).map(|_| act(rng)).collect();
    let next = match rng.below(10) {
        0..5 => Next::Edges(targets(rng, count, 2)),
        5 | 6 => Next::Goto(vec![targets(rng, count, 2), targets(rng, count, 1)]),
        7 | 8 => Next::Route(vec![targets(rng, count, 1), targets(rng, count, 2)]),
        _ => Next::Sends(rng.below(count), 2 + rng.below(2) as u64),
    };
    NodePlan { name: format!("n{index}"), acts, next, retries: rng.chance(30) }
}

fn act(rng: &mut Rng) -> Act {
    let mut what = || format!("{}", rng.below(4));
    match (what(), what(), rng.below(100)) {
        (.., 0..15) => Act::Pause,
        (what, _, roll @ 15..35) => Act::Inquire { what, fails: roll == 15 },
        (what, _, roll @ 35..60) => Act::Send { what, repeatable: false, fails: roll == 35 },
        (what, _, roll @ 60..70) => Act::Send { what, repeatable: true, fails: roll == 60 },
        (one, other, 70..75) => Act::Both { one, other },
        (what, _, 75..87) => Act::Ask { what },
        (.., 87..93) => Act::Draw,
        _ => Act::Trip { times: 1 + rng.below(2) as u32 },
    }
}

fn targets(rng: &mut Rng, count: usize, most: usize) -> Vec<usize> {
    (0..1 + rng.below(most)).map(|_| rng.below(count)).collect()
}
