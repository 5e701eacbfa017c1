//! What the models need of a checker: threads, a cell that notices races, and a loop over executions.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

#[cfg(loom)]
pub use loom::sync::{Arc, Mutex};
#[cfg(loom)]
use loom::thread;
#[cfg(shuttle)]
pub use shuttle::sync::{Arc, Mutex};
#[cfg(shuttle)]
use shuttle::thread;

/// The checker's name, as in the tables.
pub const NAME: &str = if cfg!(loom) { "loom" } else { "shuttle" };

static EXECUTIONS: AtomicU64 = AtomicU64::new(0);

/// Explores `body` once for each order in which its threads can be started; the number of executions.
/// `preemptions` bounds loom, where it would otherwise run too long.
///
/// The order matters to loom. It does not try every schedule, but goes back to where it has seen two
/// accesses that depend on each other, and it compares an exchange only with the last access before it. So
/// of "one loads; the other loads, then exchanges" it finds the second order only if it began with it.
pub fn explore(preemptions: Option<usize>, body: fn()) -> u64 {
    ORDER.store(0, Ordering::Relaxed);
    while ORDER.load(Ordering::Relaxed) < ORDERS.load(Ordering::Relaxed) {
        check(preemptions, move || {
            EXECUTIONS.fetch_add(1, Ordering::Relaxed);
            body();
        });
        ORDER.fetch_add(1, Ordering::Relaxed);
    }
    EXECUTIONS.load(Ordering::Relaxed)
}

#[cfg(loom)]
fn check(preemptions: Option<usize>, body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.max_branches = 10_000;
    builder.check(body);
}

/// How many random schedules shuttle tries in each order, from one seed, so that a run can be repeated.
#[cfg(shuttle)]
const SCHEDULES: usize = 10_000;

#[cfg(shuttle)]
fn check(_preemptions: Option<usize>, body: impl Fn() + Send + Sync + 'static) {
    let scheduler = shuttle::scheduler::RandomScheduler::new_from_seed(1, SCHEDULES);
    shuttle::Runner::new(scheduler, shuttle::Config::new()).run(body);
}

/// Which order of starting threads is explored, and how many there are; the latter known after one run.
static ORDER: AtomicUsize = AtomicUsize::new(0);
static ORDERS: AtomicUsize = AtomicUsize::new(1);

/// What one thread of a model does.
pub type Task<S, R> = Box<dyn FnOnce(&S) -> R + Send>;

/// A thread of a model.
pub fn task<S, R>(body: impl FnOnce(&S) -> R + Send + 'static) -> Task<S, R> {
    Box::new(body)
}

/// Runs the tasks at the same time; their results, in the order given.
pub fn run<S, R, const N: usize>(shared: &Arc<S>, tasks: [Task<S, R>; N]) -> [R; N]
where
    S: Send + Sync + 'static,
    R: Send + 'static,
{
    ORDERS.store((1..=N).product(), Ordering::Relaxed);
    let mut waiting: Vec<_> = tasks.into_iter().enumerate().collect();
    let mut rest = ORDER.load(Ordering::Relaxed);
    let mut running: Vec<_> = (1..=N)
        .rev()
        .map(|left| {
            let (place, task) = waiting.remove(rest % left);
            rest /= left;
            let shared = shared.clone();
            (place, thread::spawn(move || task(&shared)))
        })
        .collect();
    running.sort_by_key(|(place, _)| *place);
    let results: Vec<R> = running.into_iter().map(|(_, thread)| thread.join().unwrap()).collect();
    results.try_into().unwrap_or_else(|_| unreachable!("as many results as tasks"))
}

/// A plain variable. loom objects when two threads touch it and nothing orders them.
#[cfg(loom)]
pub struct Plain(loom::cell::UnsafeCell<u64>);

#[cfg(loom)]
impl Plain {
    pub fn new(value: u64) -> Self {
        Self(loom::cell::UnsafeCell::new(value))
    }

    pub fn get(&self) -> u64 {
        // SAFETY: loom checks that nobody writes at the same time.
        self.0.with(|value| unsafe { *value })
    }

    pub fn set(&self, new: u64) {
        // SAFETY: loom checks that nobody touches it at the same time.
        self.0.with_mut(|value| unsafe { *value = new });
    }
}

/// A plain variable; under shuttle an atomic, for shuttle changes threads only at what it knows, and two
/// threads that touch a variable at once are to be caught in the act.
#[cfg(shuttle)]
pub struct Plain(shuttle::sync::atomic::AtomicU64);

#[cfg(shuttle)]
impl Plain {
    pub fn new(value: u64) -> Self {
        Self(shuttle::sync::atomic::AtomicU64::new(value))
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    pub fn set(&self, new: u64) {
        self.0.store(new, Ordering::SeqCst);
    }
}

// SAFETY: see the type: the checker watches over it.
unsafe impl Sync for Plain {}
// SAFETY: it owns its value.
unsafe impl Send for Plain {}

/// Whether this run breaks the step `name` of a model itself.
pub fn mutant(name: &str) -> bool {
    std::env::var("MAGPIE_MUTANT").is_ok_and(|chosen| chosen == name)
}

/// Another thread has to go on first.
pub fn pause() {
    thread::yield_now();
}
