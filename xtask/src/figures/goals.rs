//! What is known of every benchmark beforehand: its name, what is aimed at, and what the best of the peers needs.

/// What is aimed at, and what the best of the peers needs, for one operation of a benchmark, on one core.
pub struct Goal {
    /// The benchmark's name.
    pub name: &'static str,
    /// Instructions.
    pub goal: Option<u32>,
    /// Instructions, and which peer; measured once, see `docs/performance.md`.
    pub best_peer: Option<(u32, &'static str)>,
}

const fn goal(name: &'static str, goal: u32, best_peer: u32, peer: &'static str) -> Goal {
    Goal { name, goal: Some(goal), best_peer: Some((best_peer, peer)) }
}

/// Of what the peers were not asked for.
const fn own_goal(name: &'static str, goal: u32) -> Goal {
    Goal { name, goal: Some(goal), best_peer: None }
}

const fn no_goal(name: &'static str) -> Goal {
    Goal { name, goal: None, best_peer: None }
}

/// All benchmarks, in the order in which the image runs them when none is named.
pub const GOALS: &[Goal] = &[
    goal("send-static", 42, 212, "tokio"),
    goal("send-self", 42, 212, "tokio"),
    // Messages of so many bytes, by value.
    own_goal("send-self-64", 70),
    own_goal("send-self-256", 150),
    own_goal("send-self-1024", 500),
    goal("send-dynamic", 400, 3244, "Go"),
    goal("ping-pong", 270, 1350, "tokio"),
    goal("thread-ring", 135, 678, "tokio"),
    goal("executor", 45, 225, "tokio"),
    goal("repeat", 120, 753, "tokio"),
    goal("fork-join", 40, 196, "tokio"),
    goal("fan-in", 36, 178, "tokio"),
    goal("big", 100, 508, "tokio"),
    goal("spawn", 200, 4227, "tokio"),
    Goal { name: "balance-one", goal: None, best_peer: Some((1428, "tokio")) },
    no_goal("balance-multi"),
    // Turns of plain processes; the peers were not asked for those.
    no_goal("process-one"),
    no_goal("process-each"),
    // Turns that only yield, among so many processes.
    own_goal("yield-200", 95),
    own_goal("yield-1000", 95),
    // From the start of the machine to main.
    no_goal("boot"),
    // Programs of the Savina suite; the same.
    no_goal("bank"),
    no_goal("chameneos"),
    no_goal("philosophers"),
    no_goal("barber"),
    no_goal("sieve"),
    no_goal("quicksort"),
    no_goal("n-queens"),
    no_goal("dictionary"),
];

/// The goal of a benchmark, if there is one of that name.
pub fn goal_of(name: &str) -> Option<&'static Goal> {
    GOALS.iter().find(|goal| goal.name == name)
}

#[cfg(test)]
mod tests {
    use super::GOALS;

    #[test]
    fn the_image_has_the_same_benchmarks_in_the_same_order() {
        let list = include_str!("../../../bench/src/figures/mod.rs");
        let named: Vec<_> =
            list.split("figure(\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        assert_eq!(named, GOALS.iter().map(|goal| goal.name).collect::<Vec<_>>());
    }
}
