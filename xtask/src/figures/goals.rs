//! What is known of every benchmark beforehand: its name, what is aimed at, and what the best of the peers needs.

/// What is aimed at, and what the best of the peers needs, for one operation of a benchmark.
pub struct Goal {
    /// The benchmark's name.
    pub name: &'static str,
    /// Instructions on one core.
    pub goal: Option<u32>,
    /// Times as many at most, on however many cores.
    pub most_ratio: f64,
    /// Instructions, and which peer; measured once, see `docs/performance.md`.
    pub best_peer: Option<(u32, &'static str)>,
}

/// Where one message after another is under way, and other cores cannot help.
const LONE: f64 = 1.3;
/// Elsewhere.
const ANY: f64 = 1.5;

const fn goal(name: &'static str, goal: u32, most_ratio: f64, best_peer: u32, peer: &'static str) -> Goal {
    Goal { name, goal: Some(goal), most_ratio, best_peer: Some((best_peer, peer)) }
}

/// Of what the peers were not asked for.
const fn own_goal(name: &'static str, goal: u32, most_ratio: f64) -> Goal {
    Goal { name, goal: Some(goal), most_ratio, best_peer: None }
}

const fn no_goal(name: &'static str, most_ratio: f64) -> Goal {
    Goal { name, goal: None, most_ratio, best_peer: None }
}

/// All benchmarks, in the order in which the image runs them when none is named.
pub const GOALS: &[Goal] = &[
    goal("send-static", 42, ANY, 212, "tokio"),
    goal("send-self", 48, LONE, 212, "tokio"),
    // Messages of so many bytes, by value.
    own_goal("send-self-64", 70, LONE),
    own_goal("send-self-256", 150, LONE),
    own_goal("send-self-1024", 500, LONE),
    goal("send-dynamic", 380, ANY, 3244, "Go"),
    goal("ping-pong", 250, LONE, 1350, "tokio"),
    goal("thread-ring", 120, LONE, 678, "tokio"),
    goal("executor", 50, ANY, 225, "tokio"),
    goal("repeat", 42, ANY, 753, "tokio"),
    goal("fork-join", 42, ANY, 196, "tokio"),
    goal("fan-in", 43, ANY, 178, "tokio"),
    goal("big", 52, ANY, 508, "tokio"),
    goal("spawn", 155, ANY, 4227, "tokio"),
    Goal { name: "balance-one", goal: None, most_ratio: ANY, best_peer: Some((1428, "tokio")) },
    no_goal("balance-multi", ANY),
    // Turns of plain processes; the peers were not asked for those.
    no_goal("process-one", ANY),
    no_goal("process-each", ANY),
    // Turns that only yield, among so many processes.
    own_goal("yield-200", 95, ANY),
    own_goal("yield-1000", 95, ANY),
    // What Zephyr's `latency_measure` measures, as far as there is the like.
    own_goal("yield-2", 95, ANY),
    // A block taken and given back, on every core.
    no_goal("allocate", ANY),
    no_goal("allocate-beside", ANY),
    no_goal("allocate-limited", ANY),
    // Standing still for what crashes left, for each KiB in use.
    no_goal("collection", ANY),
    no_goal("mutex-free", ANY),
    no_goal("semaphore-switch", ANY),
    no_goal("process-end", ANY),
    // From one life of a supervised process to the next.
    own_goal("restart", 2000, ANY),
    // From the start of the machine to main.
    no_goal("boot", ANY),
    // From a timer to the process, or behaviour, that it wakes: the goal is one of the latest sample.
    own_goal("wake-idle", 300, ANY),
    own_goal("wake-hogs", 600, ANY),
    own_goal("wake-thieves", 600, ANY),
    own_goal("wake-timers", 600, ANY),
    own_goal("wake-offline", 600, ANY),
    own_goal("mail-idle", 400, ANY),
    own_goal("mail-hogs", 600, ANY),
    own_goal("mail-thieves", 600, ANY),
    own_goal("mail-timers", 600, ANY),
    own_goal("mail-offline", 600, ANY),
    // From a device's interrupt to the process that it wakes, likewise.
    own_goal("irq-idle", 300, ANY),
    own_goal("irq-claimed", 300, ANY),
    own_goal("irq-hogs", 600, ANY),
    own_goal("irq-thieves", 600, ANY),
    own_goal("irq-timers", 600, ANY),
    own_goal("irq-offline", 600, ANY),
    // To the behaviour that gets the message it sends.
    own_goal("irq-mail-idle", 400, ANY),
    own_goal("irq-mail-hogs", 600, ANY),
    own_goal("irq-mail-thieves", 600, ANY),
    own_goal("irq-mail-timers", 600, ANY),
    own_goal("irq-mail-offline", 600, ANY),
    // Behind a long behaviour: of interest is for how long interrupts are masked.
    no_goal("behind", ANY),
    // Ends in the middle of a turn; the same.
    no_goal("crashes", ANY),
    // Processes that wait for room in a bounded mailbox.
    no_goal("send-wait", ANY),
    // Two networks and a cable in the kernel: a datagram there and back, and 1 KiB of a stream.
    no_goal("datagram", ANY),
    no_goal("stream", ANY),
    // Two nodes of a cluster over such a cable: a call there, of one caller and of 64.
    no_goal("remote-call", ANY),
    no_goal("remote-calls", ANY),
    // Programs of the Savina suite; the same.
    no_goal("bank", LONE),
    no_goal("chameneos", LONE),
    no_goal("philosophers", LONE),
    no_goal("barber", ANY),
    no_goal("sieve", ANY),
    no_goal("quicksort", ANY),
    no_goal("n-queens", ANY),
    no_goal("dictionary", ANY),
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
