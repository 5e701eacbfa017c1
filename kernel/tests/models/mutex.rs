//! The mutex of applications: who holds it is alone, and who waits is told, by the holder or by its crash.

use magpie::internals::arch::atomic::{AtomicBool, Ordering};
use magpie::internals::sync::{Holder, LockWord, Taken};

use crate::harness::{Model, ordering, step};
use crate::tool::{Arc, Mutex, Plain, run, task};

pub const MODELS: &[Model] = &[
    Model {
        name: "mutex::one_at_a_time",
        preemptions: None,
        body: one_at_a_time,
        mutants: &[ordering("mutex-take-relaxed"), ordering("mutex-give-relaxed")],
    },
    Model {
        name: "mutex::who_waits_is_told",
        preemptions: None,
        body: who_waits_is_told,
        mutants: &[step("mutex-wait-unsaid"), step("mutex-give-forgets")],
    },
    Model { name: "mutex::a_crash_tells", preemptions: None, body: a_crash_tells, mutants: &[] },
    Model {
        name: "mutex::given_back_before_the_crash",
        preemptions: None,
        body: given_back_before_the_crash,
        mutants: &[step("mutex-poison-unverified")],
    },
];

const FIRST: Holder = Holder::new(1);
const SECOND: Holder = Holder::new(2);

struct Shared {
    word: LockWord,
    data: Plain,
    /// Whether the second waits; the kernel's list.
    list: Mutex<bool>,
    first_is_gone: AtomicBool,
}

impl Shared {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            word: LockWord::new(),
            data: Plain::new(0),
            list: Mutex::new(false),
            first_is_gone: AtomicBool::new(false),
        })
    }

    fn is_gone(&self, holder: Holder) -> bool {
        holder == FIRST && self.first_is_gone.load(Ordering::Relaxed)
    }

    fn take(&self, holder: Holder) -> Taken {
        self.word.take(holder, |holder| self.is_gone(holder))
    }

    fn change(&self) {
        self.data.set(self.data.get() + 1);
    }

    /// Takes everybody from the list; whether the second was there.
    fn tell(&self) -> bool {
        core::mem::take(&mut *self.list.lock().expect("the list"))
    }

    /// Whether the second was told.
    fn give(&self) -> bool {
        self.word.give() && self.tell()
    }

    /// As the future's poll. Whether it has to be told.
    fn take_or_wait(&self) -> (Taken, bool) {
        loop {
            let taken = self.take(SECOND);
            if taken != Taken::Held {
                return (taken, false);
            }
            let mut list = self.list.lock().expect("the list");
            if self.word.wait(|holder| self.is_gone(holder)) {
                *list = true;
                return (Taken::Held, true);
            }
        }
    }
}

/// Both change the data if they get the mutex.
fn one_at_a_time() {
    let shared = Shared::new();
    let changes = |holder: Holder| {
        task(move |shared: &Shared| {
            let taken = shared.take(holder) == Taken::Yes;
            if taken {
                shared.change();
                shared.give();
            }
            u64::from(taken)
        })
    };
    let changed: u64 = run(&shared, [changes(FIRST), changes(SECOND)]).iter().sum();
    assert_eq!(shared.data.get(), changed, "a change was lost");
}

/// The first gives it back while the second begins to wait.
fn who_waits_is_told() {
    let shared = Shared::new();
    assert_eq!(shared.take(FIRST), Taken::Yes);
    let gives = task(|shared: &Shared| {
        shared.change();
        shared.give()
    });
    let waits = task(|shared: &Shared| {
        let (taken, waits) = shared.take_or_wait();
        if taken == Taken::Yes {
            shared.change();
        }
        waits
    });
    let [told, waits] = run(&shared, [gives, waits]);
    assert_eq!(told, waits, "who waits was not told");
}

/// The first crashes while the second begins to wait.
fn a_crash_tells() {
    let shared = Shared::new();
    assert_eq!(shared.take(FIRST), Taken::Yes);
    let crashes = task(|shared: &Shared| {
        shared.first_is_gone.store(true, Ordering::Relaxed);
        shared.tell()
    });
    let waits = task(|shared: &Shared| {
        let (taken, waits) = shared.take_or_wait();
        assert_ne!(taken, Taken::Yes, "the mutex of one who has crashed was taken");
        waits
    });
    let [told, waits] = run(&shared, [crashes, waits]);
    assert_eq!(told, waits, "who waits was not told of the crash");
    assert_eq!(shared.take(SECOND), Taken::Poisoned);
}

/// Who gave it back before it crashed leaves nothing behind.
fn given_back_before_the_crash() {
    let shared = Shared::new();
    assert_eq!(shared.take(FIRST), Taken::Yes);
    let crashes = task(|shared: &Shared| {
        shared.change();
        shared.give();
        // Relaxed: the word says the rest.
        shared.first_is_gone.store(true, Ordering::Relaxed);
        false
    });
    let takes = task(|shared: &Shared| shared.take(SECOND) == Taken::Poisoned);
    let [_, poisoned] = run(&shared, [crashes, takes]);
    assert!(!poisoned, "a mutex that was free was taken for poisoned");
}
