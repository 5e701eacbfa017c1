//! What the line of one benchmark says.

/// The kernel's counters on a `@bench` line, in the order of [`Measured::counters`].
pub const COUNTERS: [&str; 8] = [
    "turns",
    "wakes",
    "mailbox_steals",
    "process_steals",
    "mailbox_attempts",
    "process_attempts",
    "dozes",
    "sleeps",
];

/// How late the samples of a benchmark of latencies came, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Latency {
    /// The one in the middle.
    pub median: u64,
    /// The latest of 99.999 per cent: of all, where there are fewer than 100,000.
    pub p99999: u64,
    /// The latest.
    pub most: u64,
}

/// What a benchmark came to in one run.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// The benchmark's name.
    pub name: String,
    /// What it ran with, numbers between colons.
    pub parameters: String,
    /// How many operations.
    pub operations: u64,
    /// How long they took together: under `-icount`, the instructions of all cores.
    pub nanoseconds: u64,
    /// Memory for each operation's actor, where that is of interest.
    pub bytes: Option<u64>,
    /// How late its samples came, where that is what it measures. The time of one operation is their mean then.
    pub latency: Option<Latency>,
    /// How many samples came how late: from how many nanoseconds on, up to an eighth more or the next one's; those buckets that have any.
    pub histogram: Vec<(u64, u64)>,
    /// What the kernel did meanwhile; zeros in a kernel without statistics.
    pub counters: [u64; COUNTERS.len()],
}

impl Measured {
    /// Reads the words of a `@bench` line.
    pub fn parse(name: &str, words: &str) -> Option<Self> {
        let word =
            |key: &str| words.split_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        let number = |key: &str| word(key)?.parse::<u64>().ok();
        Some(Self {
            name: name.to_owned(),
            parameters: word("parameters").unwrap_or_default().to_owned(),
            operations: number("ops").filter(|&operations| operations > 0)?,
            nanoseconds: number("ns")?,
            bytes: number("bytes"),
            latency: number("median")
                .zip(number("p99999"))
                .zip(number("most"))
                .map(|((median, p99999), most)| Latency { median, p99999, most }),
            histogram: word("histogram").unwrap_or_default().split(',').filter_map(bucket).collect(),
            counters: COUNTERS.map(|key| number(key).unwrap_or(0)),
        })
    }

    /// Nanoseconds, or instructions where they are counted, for one operation.
    pub fn each(&self) -> f64 {
        self.nanoseconds as f64 / self.operations as f64
    }

    /// A counter's value.
    pub fn counter(&self, name: &str) -> u64 {
        let index = COUNTERS.iter().position(|counter| *counter == name);
        index.map_or(0, |index| self.counters[index])
    }

    /// The run in the middle of several: the one whose figure is their median.
    pub fn median(mut runs: Vec<Self>) -> Option<Self> {
        runs.sort_by(|a, b| a.each().total_cmp(&b.each()));
        let middle = runs.len() / 2;
        runs.into_iter().nth(middle)
    }
}

/// Reads `FROM:COUNT`.
fn bucket(words: &str) -> Option<(u64, u64)> {
    let (from, count) = words.split_once(':')?;
    Some((from.parse().ok()?, count.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::Measured;

    #[test]
    fn reads_a_histogram() {
        let line = "ops=5 ns=20 median=3 p99999=8 most=9 histogram=3:2,8:2,9:1 bytes=4";
        assert_eq!(Measured::parse("wake-idle", line).unwrap().histogram, [(3, 2), (8, 2), (9, 1)]);
        assert!(Measured::parse("wake-idle", "ops=5 ns=20").unwrap().histogram.is_empty());
    }

    #[test]
    fn reads_a_line_with_its_counters() {
        let words = "ops=50 ns=20000 workers=1 steal=1 parameters=50:2 turns=7 wakes=1 sleeps=3 bytes=17";
        let line = Measured::parse("spawn", words).unwrap();
        assert_eq!((line.each(), line.bytes, line.parameters.as_str()), (400.0, Some(17), "50:2"));
        assert_eq!((line.counter("turns"), line.counter("sleeps"), line.counter("dozes")), (7, 3, 0));
    }

    #[test]
    fn reads_latencies_if_all_three_are_there() {
        let line = |words: &str| Measured::parse("wake-idle", words).unwrap().latency;
        let most = line("ops=5 ns=20 median=3 p99999=8 most=9").map(|latency| latency.most);
        assert_eq!((most, line("ops=5 ns=20 median=3 most=9")), (Some(9), None));
    }

    #[test]
    fn damaged_lines_are_left_out() {
        for words in ["", "ops=5", "ns=5", "ops=0 ns=5", "ops=x ns=5"] {
            assert_eq!(Measured::parse("spawn", words), None, "{words}");
        }
    }

    #[test]
    fn the_median_is_a_run_with_all_that_belongs_to_it() {
        let run = |words| Measured::parse("big", words).unwrap();
        let runs = vec![run("ops=1 ns=9 turns=9"), run("ops=1 ns=1 turns=1"), run("ops=2 ns=4 turns=2")];
        assert_eq!(Measured::median(runs).unwrap().counter("turns"), 2);
        assert_eq!(Measured::median(Vec::new()), None);
    }
}
