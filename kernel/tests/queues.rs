//! The checks of the lock-free structures, on the host: threads stand in for cores.
//!
//! `cargo test -p magpie --features checks --test queues`, and the same under miri, ThreadSanitizer, an Arm
//! emulator, or with `forced-failure`. `MAGPIE_WORK` sets how many operations each core does, `MAGPIE_SEED`
//! where the random choices start.

use magpie::checks::{self, Body, Cores};

fn setting(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name}={text}: give a number")),
        Err(_) => default,
    }
}

/// Runs the checks whose names begin with `structure::`, with one to four threads.
fn run(structure: &str) {
    let work = setting("MAGPIE_WORK", if cfg!(miri) { 20 } else { 20_000 }) as usize;
    let seed = setting("MAGPIE_SEED", 1);
    #[cfg(feature = "forced-failure")]
    magpie::internals::arch::forced_failure::set_period(3);
    let mut ran = 0;
    for check in checks::all() {
        if check.name.split("::").next() != Some(structure) {
            continue;
        }
        for count in [1, 2, 3, 4] {
            if count < check.min_cores || (count > check.min_cores && check.min_cores == 1) {
                continue;
            }
            println!("{} on {count}, seed {seed}", check.name);
            let in_threads = |body: &Body| {
                std::thread::scope(|scope| {
                    for core in 1..count {
                        scope.spawn(move || body(core));
                    }
                    body(0);
                });
            };
            (check.body)(&Cores { count, work, seed, run: &in_threads, give_way: &std::thread::yield_now });
            ran += 1;
        }
    }
    assert!(ran > 0, "no check of {structure}");
}

#[test]
fn deque() {
    run("deque");
}

#[test]
fn chain() {
    run("chain");
}

#[test]
fn inbox() {
    run("inbox");
}

#[test]
fn overflow() {
    run("overflow");
}

#[test]
fn swap() {
    run("swap");
    #[cfg(feature = "forced-failure")]
    assert!(magpie::internals::arch::forced_failure::forced() > 0, "no failure was forced");
}

#[test]
fn spin_lock() {
    run("spin_lock");
}

#[test]
fn idle_flag() {
    run("idle_flag");
}
