//! How late samples came, from which a benchmark of latencies gives its figures: the mean in the place of the time of one
//! operation, and beside it what was found in the middle, at 99.999 per cent, and at most.

use alloc::vec::Vec;
use core::fmt;

use magpie::internals::arch::clock;
use magpie::internals::sync::SpinLock;

static FOUND: SpinLock<Option<Latency>> = SpinLock::new(None);

/// What samples came to, in nanoseconds.
pub struct Latency {
    /// Of all samples together.
    pub sum: u64,
    median: u64,
    most_of_all_but_few: u64,
    most: u64,
    histogram: Vec<Bucket>,
}

/// So many samples came as late as this, and not as late as the next bucket begins.
struct Bucket {
    from: u64,
    count: u32,
}

/// Each power of two is divided into so many buckets, so each is an eighth of its beginning wide at most.
const BUCKETS_EACH: u32 = 8;

/// Where the bucket of a value begins.
fn bucket_of(value: u64) -> u64 {
    let width = 1 << value.checked_ilog2().unwrap_or(0).saturating_sub(BUCKETS_EACH.ilog2());
    value / width * width
}

impl fmt::Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { median, most_of_all_but_few, most, .. } = self;
        write!(f, "median={median} p99999={most_of_all_but_few} most={most} histogram=")?;
        for (index, Bucket { from, count }) in self.histogram.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(f, "{comma}{from}:{count}")?;
        }
        Ok(())
    }
}

/// A benchmark has come to these, in clock ticks.
pub fn note(mut samples: Vec<u32>) {
    samples.sort_unstable();
    let nanoseconds =
        |ticks: u64| (u128::from(ticks) * 1_000_000_000 / u128::from(clock::frequency())) as u64;
    let Some(&most) = samples.last() else { return };
    let few = samples.len() / 100_000;
    let mut histogram: Vec<Bucket> = Vec::new();
    for &sample in &samples {
        let from = bucket_of(nanoseconds(sample.into()));
        match histogram.last_mut().filter(|last| last.from == from) {
            Some(last) => last.count += 1,
            None => histogram.push(Bucket { from, count: 1 }),
        }
    }
    *FOUND.lock() = Some(Latency {
        sum: nanoseconds(samples.iter().map(|&ticks| u64::from(ticks)).sum()),
        median: nanoseconds(samples[samples.len() / 2].into()),
        most_of_all_but_few: nanoseconds(samples[samples.len() - 1 - few].into()),
        most: nanoseconds(most.into()),
        histogram,
    });
}

/// What a benchmark has noted since the last call.
pub fn take() -> Option<Latency> {
    FOUND.lock().take()
}
