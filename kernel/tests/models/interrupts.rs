//! An interrupt that comes at any moment of who waits for it: whoever goes to sleep is woken, and sees what the handler wrote.

use std::task::{Wake, Waker};

use magpie::internals::arch::atomic::{AtomicU64, Ordering};
use magpie::internals::interrupt::Arrival;

use crate::harness::{Model, ordering, step};
use crate::tool::{Arc, Plain, mutant, run, task};

pub const MODELS: &[Model] = &[Model {
    name: "interrupts::who_waits_is_woken",
    preemptions: Some(3),
    body: who_waits_is_woken,
    mutants: &[
        step("arrival-noted-late"),
        step("arrival-not-asked-again"),
        ordering("arrival-note-no-release"),
        ordering("arrival-take-no-acquire"),
    ],
}];

/// Counts how often it was woken. Not of the checker: it says nothing about order.
#[derive(Default)]
struct Woken(std::sync::atomic::AtomicU64);

impl Wake for Woken {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    }
}

/// A device, its interrupt, and its driver.
struct Scene {
    arrival: Arrival,
    /// What the handler writes for who waits.
    written: Plain,
    woken: std::sync::Arc<Woken>,
    /// Whether the driver has seen it, or else sleeps.
    seen: AtomicU64,
}

/// The handler once, and who waits once: either it sees at once that it has come, or it sleeps and was woken.
fn who_waits_is_woken() {
    let scene = Arc::new(Scene {
        arrival: Arrival::new(),
        written: Plain::new(0),
        woken: std::sync::Arc::default(),
        seen: AtomicU64::new(0),
    });
    let handler = task(|scene: &Scene| {
        scene.written.set(1);
        scene.arrival.note();
    });
    let waits = task(|scene: &Scene| {
        let waker = Waker::from(scene.woken.clone());
        scene.arrival.leave(&waker);
        let has_come = !mutant("arrival-not-asked-again") && scene.arrival.take();
        if has_come {
            assert_eq!(scene.written.get(), 1, "what the handler wrote is not seen");
            scene.seen.store(1, Ordering::Relaxed);
        }
    });
    run(&scene, [handler, waits]);
    let woken = scene.woken.0.load(std::sync::atomic::Ordering::SeqCst);
    let seen = scene.seen.load(Ordering::Relaxed);
    assert!(seen == 1 || woken > 0, "it sleeps, and nobody wakes it");
}
