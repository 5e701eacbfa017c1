//! Benchmark figures: the goals, what was measured, and how the two are put side by side.

/// What is aimed at, and what the best of the peers needs, for one operation of a benchmark.
pub struct Goal {
    /// The benchmark's name.
    pub name: &'static str,
    /// Instructions.
    goal: Option<u32>,
    /// Instructions, and which peer; measured once, see `docs/performance.md`.
    best_peer: Option<(u32, &'static str)>,
}

const fn goal(name: &'static str, goal: u32, best_peer: u32, peer: &'static str) -> Goal {
    Goal { name, goal: Some(goal), best_peer: Some((best_peer, peer)) }
}

/// All benchmarks.
pub const GOALS: &[Goal] = &[
    goal("send-static", 42, 212, "tokio"),
    goal("send-self", 42, 212, "tokio"),
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
    Goal { name: "balance-multi", goal: None, best_peer: None },
    // Turns of plain processes; the peers were not asked for those.
    Goal { name: "process-one", goal: None, best_peer: None },
    Goal { name: "process-each", goal: None, best_peer: None },
];

/// The goal of a benchmark, if there is one of that name.
pub fn goal_of(name: &str) -> Option<&'static Goal> {
    GOALS.iter().find(|goal| goal.name == name)
}

/// What a benchmark came to.
#[derive(Debug, PartialEq)]
pub struct Measured {
    name: String,
    operations: u64,
    nanoseconds: u64,
    /// Memory for each operation's actor, where that is of interest.
    bytes: Option<u64>,
}

impl Measured {
    /// Reads the words of a `@bench` line.
    pub fn parse(name: &str, words: &str) -> Option<Self> {
        let value = |key: &str| {
            let word = words.split_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
            word.and_then(|word| word.parse::<u64>().ok())
        };
        let operations = value("ops").filter(|&operations| operations > 0)?;
        Some(Self { name: name.to_owned(), operations, nanoseconds: value("ns")?, bytes: value("bytes") })
    }

    /// Nanoseconds, or instructions where they are counted, for one operation.
    fn each(&self) -> f64 {
        self.nanoseconds as f64 / self.operations as f64
    }

    /// One line of the table.
    pub fn instructions_line(&self) -> String {
        let known = goal_of(&self.name);
        let goal = known.and_then(|known| known.goal);
        let shown = goal.map_or("-".into(), |goal| goal.to_string());
        let ratio = goal.map_or("-".into(), |goal| format!("{:.2}", self.each() / f64::from(goal)));
        let peer = known.and_then(|known| known.best_peer);
        let peer = peer.map_or("-".into(), |(figure, peer)| format!("{figure} {peer}"));
        let bytes = self.bytes.map_or(String::new(), |bytes| format!("   {bytes} bytes each"));
        format!("{:<14} {:>10.1} {shown:>8} {ratio:>8} {peer:>12}{bytes}", self.name, self.each())
    }
}

/// The median of what was measured for a benchmark, for one operation; NaN if nothing was.
pub fn median(figures: &[Measured], name: &str) -> f64 {
    let mut each: Vec<f64> =
        figures.iter().filter(|figure| figure.name == name).map(Measured::each).collect();
    each.sort_by(f64::total_cmp);
    each.get(each.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::{Measured, median};

    #[test]
    fn reads_a_line_and_puts_it_beside_its_goal() {
        let line = Measured::parse("spawn", "ops=50 ns=20000 workers=1 steal=1 bytes=17").unwrap();
        assert_eq!(
            line.instructions_line(),
            "spawn               400.0      200     2.00   4227 tokio   17 bytes each"
        );
        let line = Measured::parse("balance-multi", "ops=2 ns=3").unwrap();
        assert!(line.instructions_line().ends_with("1.5        -        -            -"));
    }

    #[test]
    fn damaged_lines_are_left_out() {
        for words in ["", "ops=5", "ns=5", "ops=0 ns=5", "ops=x ns=5"] {
            assert_eq!(Measured::parse("spawn", words), None, "{words}");
        }
    }

    #[test]
    fn the_median_is_that_of_the_named_benchmark() {
        let figures: Vec<_> =
            [("a", "ops=1 ns=9"), ("b", "ops=1 ns=1"), ("a", "ops=2 ns=4"), ("a", "ops=1 ns=5")]
                .iter()
                .filter_map(|(name, words)| Measured::parse(name, words))
                .collect();
        assert_eq!(median(&figures, "a"), 5.0);
        assert!(median(&figures, "c").is_nan());
    }
}
