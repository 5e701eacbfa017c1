//! Costs of one kind of step: average and worst.

use core::fmt;

use magpie::internals::arch::clock;

/// The sum of them, and the worst.
#[derive(Default)]
pub struct Cost {
    nanoseconds: u64,
    worst: u64,
    count: u64,
}

impl Cost {
    /// Takes a step, and its time.
    pub fn of<T>(&mut self, step: impl FnOnce() -> T) -> T {
        let began = clock::now();
        let result = step();
        let ticks = clock::now() - began;
        let nanoseconds = (u128::from(ticks) * 1_000_000_000 / u128::from(clock::frequency())) as u64;
        self.nanoseconds += nanoseconds;
        self.worst = self.worst.max(nanoseconds);
        self.count += 1;
        result
    }

    /// Counts another's steps as well.
    pub fn add(&mut self, other: Self) {
        self.nanoseconds += other.nanoseconds;
        self.worst = self.worst.max(other.worst);
        self.count += other.count;
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (worst {})", self.nanoseconds / self.count.max(1), self.worst)
    }
}
