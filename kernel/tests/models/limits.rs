//! The accounts of memory limits: never above the limit, never below nothing, and no life of one begins before the last has ended.
//!
//! The accounts are the kernel's. How a block is charged and freed is that of `mem/limit/charged.rs`, and the table of who pays for which
//! is this model's own.

use magpie::internals::arch::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use magpie::internals::sync::{Accounts, Payer};

use crate::harness::{Model, ordering, step};
use crate::tool::{Arc, Plain, mutant, run, task};

pub const MODELS: &[Model] = &[
    Model {
        name: "limits::at_the_limit",
        preemptions: Some(3),
        body: at_the_limit,
        mutants: &[
            step("account-charge-looks-once"),
            step("account-charge-by-store"),
            step("account-give-back-in-two"),
        ],
    },
    Model {
        name: "limits::freed_elsewhere",
        preemptions: Some(3),
        body: freed_elsewhere,
        mutants: &[
            step("account-charge-by-store"),
            step("account-give-back-in-two"),
            step("account-let-go-in-two"),
            step("limit-table-kept"),
        ],
    },
    Model {
        name: "limits::next_life",
        preemptions: None,
        body: next_life,
        mutants: &[
            ordering("account-open-relaxed"),
            ordering("account-let-go-relaxed"),
            ordering("account-give-back-relaxed"),
            step("account-open-charged"),
            step("account-open-same-life"),
        ],
    },
    Model {
        name: "limits::two_open",
        preemptions: None,
        body: two_open,
        mutants: &[step("account-open-unasked")],
    },
    Model {
        name: "limits::given_late",
        preemptions: Some(3),
        body: given_late,
        mutants: &[step("account-charge-any-life")],
    },
];

/// Bytes.
const LIMIT: usize = 10;

/// One limit, and blocks that are charged to it.
struct Scene {
    accounts: Accounts<2>,
    payer: Payer,
    /// Which account each block was charged to, as in `owners.rs`; 0 is nobody.
    owners: [AtomicU8; 2],
    /// How much of the limit the model knows to be used.
    used: AtomicU64,
    /// The first block was handed to another core.
    is_handed_on: AtomicBool,
    /// What those write who use the account, which nobody else may at the same time.
    books: [Plain; 2],
}

impl Scene {
    fn new() -> Arc<Self> {
        let accounts = Accounts::new();
        let payer = accounts.open(LIMIT).expect("one is free");
        let (owners, books) = ([0, 1].map(|_| AtomicU8::new(0)), [0, 1].map(|_| Plain::new(0)));
        let (used, is_handed_on) = (AtomicU64::new(0), AtomicBool::new(false));
        Arc::new(Self { accounts, payer, owners, used, is_handed_on, books })
    }

    /// As `Heap::alloc_paid_by`. Whether the block is there.
    fn allocate(&self, block: usize, payer: Payer, bytes: usize) -> bool {
        if !self.accounts.has_room(payer.number(), bytes) || !self.accounts.charge(payer, bytes) {
            return false;
        }
        // Relaxed, here and below: who frees the block was handed it.
        self.owners[block].store(payer.number(), Ordering::Relaxed);
        let used = self.used.fetch_add(bytes as u64, Ordering::Relaxed) + bytes as u64;
        assert!(used <= LIMIT as u64, "{used} are used, above the limit");
        true
    }

    /// As `Heap::dealloc` and `Heap::free_charged`.
    fn free(&self, block: usize, bytes: usize) {
        let number = self.owners[block].load(Ordering::Relaxed);
        if number == 0 {
            return;
        }
        self.used.fetch_sub(bytes as u64, Ordering::Relaxed);
        if !mutant("limit-table-kept") {
            self.owners[block].store(0, Ordering::Relaxed);
        }
        self.accounts.give_back(number, bytes);
    }

    /// When all is over, and nobody holds the account any more.
    fn judge(&self) {
        assert_eq!(self.accounts.usage(self.payer).0, 0, "something is charged for ever");
        assert!(!self.accounts.lives(self.payer), "its life does not end");
        assert!(self.accounts.open(1).is_some(), "it is never free again");
    }
}

/// Two want more than half of it, and one of them what fits beside that before: that is never refused.
fn at_the_limit() {
    let scene = Scene::new();
    let one = task(|scene: &Scene| {
        let is_there = scene.allocate(0, scene.payer, 6);
        if is_there {
            scene.free(0, 6);
        }
        is_there
    });
    let other = task(|scene: &Scene| {
        assert!(scene.allocate(1, scene.payer, 4), "refused below the limit");
        scene.free(1, 4);
        let is_there = scene.allocate(1, scene.payer, 6);
        if is_there {
            scene.free(1, 6);
        }
        is_there
    });
    let [one, other] = run(&scene, [one, other]);
    assert!(one || other, "both were refused");
    assert!((6..=LIMIT).contains(&scene.accounts.usage(scene.payer).1), "the most that were in use");
    scene.accounts.let_go(scene.payer);
    scene.judge();
}

/// A block is freed by another core, and is nobody's there, while the one that has allocated it goes on, and the limit is dropped.
fn freed_elsewhere() {
    let scene = Scene::new();
    // Its process: as long as that lives, so does the account.
    assert!(scene.accounts.charge(scene.payer, 1));
    let sender = task(|scene: &Scene| {
        // As the code under a limit knows its payer.
        let payer = scene.accounts.payer(scene.payer.number());
        assert!(scene.allocate(0, payer, 5), "refused below the limit");
        // Release: as a message.
        scene.is_handed_on.store(true, Ordering::Release);
        assert!(scene.allocate(1, payer, 4), "refused below the limit");
        scene.free(1, 4);
        scene.accounts.give_back(payer.number(), 1);
    });
    let receiver = task(|scene: &Scene| {
        if scene.is_handed_on.load(Ordering::Acquire) {
            scene.free(0, 5);
            // It was used again by one who has no limit.
            scene.free(0, 5);
        }
    });
    let owner = task(|scene: &Scene| scene.accounts.let_go(scene.payer));
    run(&scene, [sender, receiver, owner]);
    scene.free(0, 5);
    scene.judge();
}

/// A limit is dropped while the last of what was charged to it is freed, and the next one looks for a free account.
fn next_life() {
    let scene = Scene::new();
    assert!(scene.allocate(0, scene.payer, 3));
    let frees = task(|scene: &Scene| {
        scene.books[0].set(1);
        scene.free(0, 3);
        None
    });
    let drops = task(|scene: &Scene| {
        scene.books[1].set(1);
        scene.accounts.let_go(scene.payer);
        None
    });
    let opens = task(|scene: &Scene| {
        let next = scene.accounts.open(2 * LIMIT)?;
        scene.books.iter().for_each(|book| book.set(2));
        assert_eq!(scene.accounts.usage(next), (0, 0), "something is left of the life before");
        Some(next)
    });
    let [_, _, next] = run(&scene, [frees, drops, opens]);
    let (accounts, last) = (&scene.accounts, scene.payer);
    assert!(!accounts.lives(last), "its life does not end");
    let next = next.or_else(|| accounts.open(2 * LIMIT)).expect("it is free by now");
    assert!(accounts.charge(next, 2 * LIMIT) && !accounts.charge(next, 1), "another limit");
    assert!(!accounts.charge(last, 0), "one who is gone is charged");
    accounts.give_back(next.number(), 2 * LIMIT);
    accounts.let_go(next);
    scene.judge();
}

/// Two look for a free account, of which there is one.
fn two_open() {
    let scene = Scene::new();
    scene.accounts.let_go(scene.payer);
    let opens = |bytes| task(move |scene: &Scene| scene.accounts.open(bytes).map(|payer| (payer, bytes)));
    let opened = run(&scene, [opens(3), opens(5)]);
    let [Some((payer, bytes))] = opened.into_iter().filter(Option::is_some).collect::<Vec<_>>()[..] else {
        panic!("it was given to both, or to nobody");
    };
    assert!(scene.accounts.charge(payer, bytes) && !scene.accounts.charge(payer, 1), "the other's limit");
}

/// Something is started under a limit that is dropped meanwhile, and whose account has a successor: it is charged to the one, or not started.
fn given_late() {
    let scene = Scene::new();
    let starts = task(|scene: &Scene| {
        if scene.allocate(0, scene.payer, 4) {
            scene.free(0, 4);
        }
    });
    let drops = task(|scene: &Scene| {
        scene.accounts.let_go(scene.payer);
        let Some(next) = scene.accounts.open(5) else { return };
        assert!(scene.accounts.charge(next, 5), "somebody else has used its limit");
        assert_eq!(scene.accounts.usage(next), (5, 5), "somebody else is charged to it");
        scene.accounts.give_back(next.number(), 5);
        scene.accounts.let_go(next);
    });
    run(&scene, [starts, drops]);
    scene.judge();
}
