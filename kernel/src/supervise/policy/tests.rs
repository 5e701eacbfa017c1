//! The machine against a model that knows sets of children only, and single cases.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

use super::machine::{Machine, Outcome, Step};
use super::rules::{Backoff, Restart, Rules, Strategy};
use crate::random::Random;
use crate::time::Instant;

const LIMIT: Duration = Duration::from_millis(100);
const WINDOW: Duration = Duration::from_secs(5);
const STRATEGIES: [Strategy; 3] = [Strategy::OneForOne, Strategy::OneForAll, Strategy::RestForOne];

/// When everything begins.
const START: Instant = Instant::at_tick(0);

fn milliseconds(number: u64) -> Duration {
    Duration::from_millis(number)
}

/// So long after that.
fn at(number: u64) -> Instant {
    START + milliseconds(number)
}

fn rules(strategy: Strategy, most: usize, backoff: Backoff) -> Rules {
    Rules { strategy, most, window: WINDOW, backoff }
}

/// A machine of children with these restarts, which are numbered from zero on and run.
fn running(rules: Rules, restarts: &[Restart]) -> Machine<usize> {
    let mut machine = Machine::new(rules, 1).unwrap();
    for (child, restart) in restarts.iter().enumerate() {
        machine.add(child as u64, child, (*restart, LIMIT), false, START).unwrap();
    }
    for child in 0..restarts.len() {
        assert_eq!(machine.next(START), Step::Start(child));
    }
    assert_eq!(machine.next(START), Step::Wait(None));
    machine
}

const THREE: [Restart; 3] = [Restart::Permanent; 3];

#[test]
fn one_for_one_starts_that_one() {
    let mut machine = running(rules(Strategy::OneForOne, 9, Backoff::NONE), &THREE);
    machine.ended(1, true, START);
    assert_eq!(machine.next(START), Step::Start(1));
    assert_eq!(machine.next(START), Step::Wait(None));
}

#[test]
fn one_for_all_stops_the_others_from_the_last_on_and_starts_all() {
    let mut machine = running(rules(Strategy::OneForAll, 9, Backoff::NONE), &THREE);
    machine.ended(1, true, START);
    assert_eq!(machine.next(START), Step::Ask(2));
    assert_eq!(machine.next(START), Step::Wait(Some(START + LIMIT)));
    // It crashes while it ends: that was asked for.
    machine.ended(2, true, at(1));
    assert_eq!(machine.next(at(1)), Step::Ask(0));
    machine.ended(0, false, at(2));
    for child in 0..3 {
        assert_eq!(machine.next(at(2)), Step::Start(child));
    }
    assert_eq!(machine.next(at(2)), Step::Wait(None));
    assert_eq!(machine.known().map(|(_, known)| known.restarts).collect::<Vec<_>>(), [0, 1, 0]);
}

#[test]
fn rest_for_one_leaves_those_before_alone() {
    let mut machine = running(rules(Strategy::RestForOne, 9, Backoff::NONE), &THREE);
    machine.ended(1, true, START);
    assert_eq!(machine.next(START), Step::Ask(2));
    machine.ended(2, false, START);
    assert_eq!(machine.next(START), Step::Start(1));
    assert_eq!(machine.next(START), Step::Start(2));
    assert_eq!(machine.next(START), Step::Wait(None));
}

#[test]
fn who_does_not_end_is_killed_after_its_limit_and_nobody_else_before_it_has_ended() {
    let mut machine = running(rules(Strategy::OneForOne, 9, Backoff::NONE), &THREE);
    machine.end(Outcome::Stopped);
    assert_eq!(machine.next(at(7)), Step::Ask(2));
    assert_eq!(machine.next(at(106)), Step::Wait(Some(at(107))));
    assert_eq!(machine.next(at(107)), Step::Kill(2));
    assert_eq!(machine.next(at(999)), Step::Wait(None));
    machine.ended(2, true, at(999));
    for child in [1, 0] {
        assert_eq!(machine.next(at(999)), Step::Ask(child));
        machine.ended(child, false, at(999));
    }
    assert_eq!(machine.next(at(999)), Step::End(Outcome::Stopped));
}

#[test]
fn who_ends_as_it_should_is_not_started_again() {
    let restarts = [Restart::Permanent, Restart::Transient, Restart::Temporary];
    let mut machine = running(rules(Strategy::OneForOne, 9, Backoff::NONE), &restarts);
    machine.ended(2, true, START);
    assert_eq!(machine.next(START), Step::Forget(2, 2));
    machine.ended(1, true, START);
    assert_eq!(machine.next(START), Step::Start(1));
    machine.ended(1, false, START);
    assert_eq!(machine.next(START), Step::Wait(None));
    machine.ended(0, false, START);
    assert_eq!(machine.next(START), Step::Start(0));
    assert_eq!(machine.next(START), Step::Wait(None));
}

#[test]
fn more_restarts_than_the_window_allows_are_too_many() {
    let mut machine = running(rules(Strategy::OneForOne, 2, Backoff::NONE), &THREE);
    // The third at a moment is allowed when the first was longer ago than the window.
    for moment in [0, 10, 5001, 5011] {
        machine.ended(0, true, at(moment));
        assert_eq!(machine.next(at(moment)), Step::Start(0), "at {moment} ms");
    }
    machine.ended(0, true, at(10_001));
    for child in [2, 1] {
        assert_eq!(machine.next(at(10_001)), Step::Ask(child));
        machine.ended(child, false, at(10_001));
    }
    assert_eq!(machine.next(at(10_001)), Step::End(Outcome::GaveUp(0)));
    assert!(machine.add(9, 9, (Restart::Permanent, LIMIT), true, at(10_001)).is_err());
}

#[test]
fn any_number_of_restarts_and_any_window_are_ones() {
    let latest = Instant::at_tick(u64::MAX);
    for (most, window) in
        [(usize::MAX, Duration::MAX), (usize::MAX, Duration::ZERO), (0, Duration::ZERO), (3, Duration::MAX)]
    {
        let rules = Rules { window, ..rules(Strategy::OneForOne, most, Backoff::NONE) };
        let mut machine = running(rules, &[Restart::Permanent]);
        for _ in 0..most.min(1000) {
            machine.ended(0, true, latest);
            assert_eq!(machine.next(latest), Step::Start(0));
        }
        if most < 1000 {
            machine.ended(0, true, latest);
            assert_eq!(machine.next(latest), Step::End(Outcome::GaveUp(0)));
        }
    }
    let endless = rules(Strategy::OneForOne, usize::MAX - 1, Backoff::NONE);
    assert!(Machine::<u8>::new(endless, 0).is_err(), "more moments than memory holds");
}

#[test]
fn delays_double_up_to_the_ceiling_and_begin_anew_after_a_healthy_time() {
    let backoff =
        Backoff::new(milliseconds(10), milliseconds(65)).jitter_percent(50).reset_after(milliseconds(1000));
    let mut machine = running(rules(Strategy::OneForOne, 99, backoff), &THREE);
    let mut now = START;
    for whole in [10, 20, 40, 65, 65, 65] {
        machine.ended(0, true, now);
        let Step::Wait(Some(due)) = machine.next(now) else { panic!("it was started at once") };
        let delay = due - now;
        assert!(
            delay * 2 >= milliseconds(whole) && delay <= milliseconds(whole),
            "{delay:?} instead of {whole} ms"
        );
        assert_eq!(machine.next(due), Step::Start(0));
        now = due + milliseconds(999);
    }
    now = now + milliseconds(1);
    machine.ended(0, true, now);
    assert!(machine.known().next().is_some_and(|(_, known)| known.delay <= milliseconds(10)));
}

#[test]
fn a_delay_of_any_length_can_be_computed() {
    let random = Random::new(1, 1);
    for (first, ceiling) in
        [(Duration::ZERO, Duration::MAX), (Duration::MAX, Duration::MAX), (milliseconds(1), Duration::ZERO)]
    {
        let backoff = Backoff::new(first, ceiling).jitter_percent(100);
        for failures in [0, 1, 31, 32, u32::MAX] {
            assert!(backoff.delay(failures, &random) <= backoff.whole(failures));
        }
    }
    let whole = Backoff::new(milliseconds(3), milliseconds(50)).jitter_percent(0);
    assert_eq!(
        [0, 1, 4, 5, 40].map(|failures| whole.delay(failures, &random).as_millis()),
        [3, 6, 48, 50, 50]
    );
}

#[test]
fn who_is_terminated_waits_for_nobody_and_is_forgotten() {
    let mut machine = running(rules(Strategy::OneForOne, 9, Backoff::NONE), &THREE);
    machine.terminate(2);
    machine.terminate(0);
    assert_eq!(machine.next(START), Step::Ask(2));
    assert_eq!(machine.next(START), Step::Ask(0));
    machine.ended(0, false, START);
    assert_eq!(machine.next(START), Step::Forget(0, 0));
    assert_eq!(machine.next(START), Step::Wait(Some(START + LIMIT)));
    machine.ended(1, true, START);
    assert_eq!(machine.next(START), Step::Forget(2, 2));
    assert_eq!(machine.terminate(2), None);
}

/// What is expected, in sets of keys; a key is greater the later the child was declared.
struct Model {
    rules: Rules,
    now: Instant,
    restart: BTreeMap<usize, Restart>,
    added: BTreeSet<usize>,
    /// Who runs, or is to be started.
    wanted: BTreeSet<usize>,
    /// Who lives.
    lives: BTreeSet<usize>,
    /// Who lives, and is to end with others, or was terminated.
    leaves: BTreeSet<usize>,
    terminated: BTreeSet<usize>,
    asked: BTreeMap<usize, Instant>,
    restarts: Vec<Instant>,
    ends: Option<Outcome>,
}

impl Model {
    fn end(&mut self, outcome: Outcome) {
        self.ends.get_or_insert(outcome);
        self.wanted.clear();
        self.leaves = self.lives.clone();
    }

    fn ended(&mut self, key: usize, failed: bool) {
        self.lives.remove(&key);
        self.asked.remove(&key);
        let restart = self.restart[&key];
        if self.leaves.remove(&key) {
            return;
        }
        self.wanted.remove(&key);
        if restart == Restart::Temporary || restart == Restart::Transient && !failed {
            return;
        }
        let recent = self.restarts.iter().filter(|at| self.now - **at <= WINDOW).count();
        if recent >= self.rules.most {
            return self.end(Outcome::GaveUp(key as u64));
        }
        self.restarts.push(self.now);
        self.wanted.insert(key);
        let from = match self.rules.strategy {
            Strategy::OneForOne => return,
            Strategy::OneForAll => 0,
            Strategy::RestForOne => key,
        };
        for (&other, &restart) in self.restart.range(from..).filter(|(other, _)| **other != key) {
            if self.terminated.contains(&other) {
                continue;
            }
            let lives = self.lives.contains(&other);
            if lives {
                self.leaves.insert(other);
            }
            if restart == Restart::Temporary {
                if lives {
                    self.wanted.remove(&other);
                }
            } else if !self.added.contains(&other) || self.wanted.contains(&other) {
                self.wanted.insert(other);
            }
        }
    }
}

/// Does what the machine says until it waits, and checks each step.
fn settle(machine: &mut Machine<usize>, model: &mut Model) -> Step<usize> {
    loop {
        let step = machine.next(model.now);
        match step {
            Step::Start(position) => {
                let key = *machine.child(position).unwrap();
                assert!(model.wanted.contains(&key) && model.lives.insert(key), "{key} was started");
                let in_order = model.leaves.difference(&model.terminated).count();
                assert_eq!(in_order, 0, "{key} was started while others were to end");
                if model.rules.strategy != Strategy::OneForOne {
                    let before =
                        model.wanted.range(..key).filter(|other| !model.lives.contains(other)).count();
                    assert_eq!(before, 0, "{key} was started before others");
                }
            }
            Step::Ask(position) => {
                let key = *machine.child(position).unwrap();
                assert!(model.leaves.contains(&key), "{key} was asked to end");
                assert!(model.asked.insert(key, model.now + LIMIT).is_none(), "{key} was asked twice");
                if !model.terminated.contains(&key) {
                    let later =
                        model.leaves.range(key + 1..).filter(|key| !model.terminated.contains(key)).count();
                    assert_eq!(later, 0, "{key} was asked before others");
                }
            }
            Step::Kill(position) => {
                let key = *machine.child(position).unwrap();
                assert!(model.asked.get(&key).is_some_and(|limit| *limit <= model.now), "{key} was killed");
                model.ended(key, true);
                machine.ended(position, true, model.now);
            }
            Step::Forget(number, key) => {
                assert_eq!(number, key as u64);
                assert!(!model.wanted.contains(&key) && !model.lives.contains(&key), "{key} was forgotten");
                model.restart.remove(&key);
            }
            Step::Wait(_) | Step::End(_) => return step,
        }
    }
}

#[test]
fn the_machine_does_what_the_model_says() {
    for seed in 0..3000 {
        let random = Random::new(seed, 7);
        let backoff = match random.below(3) {
            0 => Backoff::NONE,
            _ => Backoff::new(milliseconds(10), milliseconds(200)),
        };
        let rules = rules(STRATEGIES[random.below(3)], [0, 3, 1000][random.below(3)], backoff);
        let mut machine = Machine::new(rules, seed).unwrap();
        let mut model = Model {
            rules,
            now: START,
            restart: BTreeMap::new(),
            added: BTreeSet::new(),
            wanted: BTreeSet::new(),
            lives: BTreeSet::new(),
            leaves: BTreeSet::new(),
            terminated: BTreeSet::new(),
            asked: BTreeMap::new(),
            restarts: Vec::new(),
            ends: None,
        };
        let mut next = 0;
        let mut add = |machine: &mut Machine<usize>, model: &mut Model, is_added: bool| {
            let restart = [Restart::Permanent, Restart::Transient, Restart::Temporary][random.below(3)];
            if machine.add(next as u64, next, (restart, LIMIT), is_added, model.now).is_ok() {
                assert!(model.ends.is_none());
                model.restart.insert(next, restart);
                model.wanted.insert(next);
                if is_added {
                    model.added.insert(next);
                }
                next += 1;
            }
        };
        for _ in 0..random.below(6) {
            add(&mut machine, &mut model, false);
        }
        for _ in 0..60 {
            if let Step::End(outcome) = settle(&mut machine, &mut model) {
                assert_eq!(Some(outcome), model.ends, "seed {seed}");
                assert!(model.lives.is_empty());
                break;
            }
            let lives: Vec<usize> = model.lives.iter().copied().collect();
            match random.below(12) {
                0..=5 if !lives.is_empty() => {
                    let key = lives[random.below(lives.len())];
                    let position = machine.position(|child| *child == key).unwrap();
                    let failed = random.below(2) == 0;
                    machine.ended(position, failed, model.now);
                    model.ended(key, failed);
                }
                6 => add(&mut machine, &mut model, true),
                7 if !model.restart.is_empty() => {
                    let keys: Vec<usize> = model.restart.keys().copied().collect();
                    let key = keys[random.below(keys.len())];
                    assert!(machine.terminate(key as u64).is_some());
                    model.terminated.insert(key);
                    model.wanted.remove(&key);
                    if model.lives.contains(&key) {
                        model.leaves.insert(key);
                    }
                }
                8 if random.below(10) == 0 => {
                    machine.end(Outcome::Stopped);
                    model.end(Outcome::Stopped);
                }
                _ => model.now = model.now + milliseconds([1, 30, 150, 3000][random.below(4)]),
            }
        }
        // In the end all is as is wanted: those who leave are killed, and all delays are over.
        for _ in 0..100 {
            settle(&mut machine, &mut model);
            model.now = model.now + milliseconds(300);
        }
        assert_eq!(model.lives, model.wanted, "seed {seed}");
        let known: BTreeSet<usize> = machine.known().map(|(key, _)| *key).collect();
        assert!(known.is_superset(&model.wanted), "seed {seed}: one was forgotten");
        if model.ends.is_none() {
            let kept = |key: &usize| {
                model.wanted.contains(key)
                    || !model.added.contains(key) && model.restart[key] == Restart::Transient
            };
            assert!(known.iter().all(kept), "seed {seed}: one was kept that is over");
        }
    }
}
