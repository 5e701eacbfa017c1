//! What the statistics of a core mean, by their place in a frame: `boot/src/trace.rs` sends them.

/// The names of the numbers, in order, with their units.
pub const NAMES: [&str; 22] = [
    "at_ticks",
    "running_ticks",
    "stealing_ticks",
    "idle_ticks",
    "interrupt_ticks",
    "turns",
    "preemptions",
    "processes_stolen",
    "messages_handled",
    "gulps",
    "missed_gulps",
    "mailbox_steal_attempts",
    "mailboxes_stolen",
    "steals_without_candidate",
    "steals_lost",
    "reductions",
    "crashes",
    "waiting_max",
    "waiting_high",
    "waiting_normal",
    "waiting_low",
    "kernel_ticks",
];

/// In how many parts a core's time is split: in turns, stealing, idle, in interrupts, and by the kernel between turns.
pub const PARTS: usize = 5;

/// The statistics of one core at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Values(pub [u64; NAMES.len()]);

impl Values {
    /// Of a frame's numbers; `None` if they are too few. A newer kernel may send more.
    pub fn of(numbers: &[u64]) -> Option<Self> {
        numbers.first_chunk().copied().map(Self)
    }

    /// When, in clock ticks.
    pub fn at(&self) -> u64 {
        self.0[0]
    }

    /// The time spent in turns, stealing, idle, in interrupts and by the kernel between turns, in clock ticks. The last is known while a trace is on;
    /// otherwise it counts as turns.
    pub fn spent(&self) -> [u64; PARTS] {
        let [_, running, stealing, idle, interrupt, ..] = self.0;
        let kernel = self.0[21];
        [running.saturating_sub(kernel), stealing, idle, interrupt, kernel]
    }

    /// How many processes wait, by priority, the most urgent first.
    pub fn waiting(&self) -> [u64; 4] {
        [self.0[17], self.0[18], self.0[19], self.0[20]]
    }

    /// The number with this name.
    pub fn get(&self, name: &str) -> u64 {
        NAMES.iter().position(|known| *known == name).map_or(0, |place| self.0[place])
    }

    /// How the time since `before` was spent, in tenths of a percent that sum up to 1,000, unless none has passed.
    pub fn shares_since(&self, before: Option<&Self>) -> [u64; PARTS] {
        let earlier = before.map_or([0; PARTS], Self::spent);
        let now = self.spent();
        let spent: [u64; PARTS] = std::array::from_fn(|part| now[part].saturating_sub(earlier[part]));
        shares(spent)
    }
}

/// Parts of a whole in thousandths; what rounding leaves over goes to the greatest.
fn shares(parts: [u64; PARTS]) -> [u64; PARTS] {
    let sum: u128 = parts.iter().copied().map(u128::from).sum();
    if sum == 0 {
        return [0; PARTS];
    }
    let mut shares = parts.map(|part| (u128::from(part) * 1_000 / sum) as u64);
    let left = 1_000 - shares.iter().sum::<u64>();
    if let Some(greatest) = (0..PARTS).max_by_key(|part| parts[*part]) {
        shares[greatest] += left;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::{NAMES, PARTS, Values, shares};

    #[test]
    fn shares_sum_up() {
        for parts in
            [[1, 1, 1, 0, 0], [7, 0, 0, 0, 0], [1, 2, 3, 1_000_000, 5], [u64::MAX / PARTS as u64; PARTS]]
        {
            assert_eq!(shares(parts).iter().sum::<u64>(), 1_000, "{parts:?}");
        }
        assert_eq!(shares([0; PARTS]), [0; PARTS]);
    }

    #[test]
    fn what_the_kernel_took_is_no_time_in_turns() {
        let mut numbers = [0; NAMES.len()];
        numbers[1..5].copy_from_slice(&[100, 10, 20, 30]);
        assert_eq!(Values(numbers).spent(), [100, 10, 20, 30, 0]);
        numbers[21] = 40;
        assert_eq!((NAMES[21], Values(numbers).spent()), ("kernel_ticks", [60, 10, 20, 30, 40]));
    }

    #[test]
    fn a_newer_kernel_may_send_more_and_an_older_one_is_refused() {
        let numbers: Vec<u64> = (0..NAMES.len() as u64 + 2).collect();
        let values = Values::of(&numbers).unwrap();
        assert_eq!((values.at(), values.waiting(), values.get("messages_handled")), (0, [17, 18, 19, 20], 8));
        assert!(Values::of(&numbers[..NAMES.len() - 1]).is_none());
    }
}
