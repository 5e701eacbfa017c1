//! How a test is run.

use std::string::String;
use std::time::Duration;

use crate::arch::MAX_CORES;

/// How a test is run: on two cores, in real time, and for two minutes at most, unless said otherwise.
///
/// ```
/// use magpie::testing::Options;
/// use core::time::Duration;
/// let options = Options::default().cores(4).seed(7).virtual_time().arguments("sched.slice_us=500");
/// let elsewhere = options.clone().name("module::of_the_test").hangs_after(Duration::from_secs(10));
/// assert_ne!(options, elsewhere);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    pub(super) cores: usize,
    pub(super) seed: u64,
    pub(super) is_virtual: bool,
    pub(super) hangs_after: Duration,
    pub(super) arguments: String,
    pub(super) name: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cores: 2,
            seed: 1,
            is_virtual: false,
            hangs_after: Duration::from_secs(120),
            arguments: String::new(),
            name: None,
        }
    }
}

impl Options {
    /// On so many cores, each of which is a thread.
    ///
    /// # Panics
    /// Unless there are 1 to 64.
    #[must_use]
    pub fn cores(mut self, cores: usize) -> Self {
        assert!((1..=MAX_CORES).contains(&cores), "a test runs on 1 to {MAX_CORES} cores, not on {cores}");
        self.cores = cores;
        self
    }

    /// The seed of the kernel's random choices.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Time stands still while anything runs, and goes on to the next timer when every core has nothing to do. So a sleep
    /// of an hour takes no time, timers fire in their order, and no limit passes because the host is busy. Each look at the clock takes a
    /// nanosecond. Whoever runs on, or yields again and again, until a moment has come keeps it from coming: wait for a timer.
    #[must_use]
    pub fn virtual_time(mut self) -> Self {
        self.is_virtual = true;
        self
    }

    /// The test is said to hang, and is ended, after so long, by the host's clock.
    #[must_use]
    pub fn hangs_after(mut self, limit: Duration) -> Self {
        self.hangs_after = limit;
        self
    }

    /// Boot arguments, as [`machine::argument`](crate::machine::argument) reads them: words `key=value` with blanks between.
    /// Settings of the scheduler are among them.
    #[must_use]
    pub fn arguments(mut self, arguments: &str) -> Self {
        arguments.clone_into(&mut self.arguments);
        self
    }

    /// The name of the test, as the harness knows it. It is only needed where [`run`](super::run()) is called on another
    /// thread than the test's own, whose name it is.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.into());
        self
    }
}
