//! The state machine: it is told what has happened, and says step by step what is to be done.
//!
//! **Order.** Children have the order in which they were declared, or added. Those that are stopped together are stopped one at a time,
//! the last first, and none is started meanwhile. Those that are started together are started in order. Only a child that is
//! terminated by itself waits for nobody.
//!
//! **An end that was asked for** is no failure and is not counted, whatever it was like.
//!
//! **Memory**: an entry for each child, and a moment for each restart that the window allows, taken at the beginning. Nothing is kept
//! of a child that is not started again.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use super::rules::{Restart, Rules, Strategy};
use crate::mem::OutOfMemory;
use crate::random::Random;
use crate::time::{Instant, ticks_of};

/// What becomes of a child.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// It does not run. With a moment it is to be started then, at the earliest.
    Rests(Option<Instant>),
    /// It was started then.
    Runs(Instant),
    /// It was asked to end, and has time until then.
    Asked(Instant),
    /// It was killed.
    Killed,
}

impl Stage {
    fn lives(self) -> bool {
        !matches!(self, Self::Rests(_))
    }
}

/// Whether it is to end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Leaves {
    No,
    /// When those after it that leave, too, have ended. With a moment it is to be started again then.
    InOrder(Option<Instant>),
    /// At once, and for ever.
    ForEver,
}

struct Entry<C> {
    number: u64,
    child: C,
    restart: Restart,
    /// How long it may take to end.
    limit: Duration,
    /// It was added later, and is forgotten when it is not started again.
    is_added: bool,
    stage: Stage,
    leaves: Leaves,
    /// Failures since it was healthy.
    failures: u32,
    restarts: u64,
    delay: Duration,
}

/// What is known of a child.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Known {
    pub number: u64,
    pub runs: bool,
    pub restarts: u64,
    pub delay: Duration,
}

/// How a supervisor ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// As it was asked to.
    Stopped,
    /// More restarts than allowed; by the child with this number.
    GaveUp(u64),
}

/// What is to be done next. Children are named by their positions.
#[derive(PartialEq, Eq, Debug)]
pub enum Step<C> {
    /// Start this one; if that fails, it has ended as a failure.
    Start(usize),
    /// Ask this one to end.
    Ask(usize),
    /// Kill this one.
    Kill(usize),
    /// This one is not known any more.
    Forget(u64, C),
    /// Nothing, until something happens or this moment has come.
    Wait(Option<Instant>),
    /// All have ended, and the supervisor does.
    End(Outcome),
}

/// The children of a supervisor, and what it has decided.
pub struct Machine<C> {
    rules: Rules,
    entries: Vec<Entry<C>>,
    /// When the last restarts were, the oldest first; at most as many as the window allows.
    restarts: VecDeque<Instant>,
    /// The window, in clock ticks.
    window: u64,
    /// How long one must have run to be healthy, in clock ticks.
    healthy: u64,
    random: Random,
    ends: Option<Outcome>,
    /// Some may be to end, or about to.
    some_leave: bool,
    /// Something may be to be done: a wait is not the answer without a look at all.
    is_unsettled: bool,
}

impl<C> Machine<C> {
    /// Without children.
    pub fn new(rules: Rules, seed: u64) -> Result<Self, OutOfMemory> {
        let mut restarts = VecDeque::new();
        if rules.most != usize::MAX {
            restarts.try_reserve_exact(rules.most).map_err(|_| OutOfMemory)?;
        }
        let random = Random::new(seed, 0);
        let (window, healthy) = (ticks_of(rules.window), ticks_of(rules.backoff.healthy()));
        let (entries, ends, some_leave, is_unsettled) = (Vec::new(), None, false, true);
        Ok(Self { rules, entries, restarts, window, healthy, random, ends, some_leave, is_unsettled })
    }

    /// One more child, which is to be started, with a number of its own. It comes back if the supervisor ends, or has no memory for
    /// it.
    pub fn add(
        &mut self,
        number: u64,
        child: C,
        (restart, limit): (Restart, Duration),
        is_added: bool,
        now: Instant,
    ) -> Result<(), C> {
        if self.ends.is_some() || self.entries.try_reserve(1).is_err() {
            return Err(child);
        }
        self.entries.push(Entry {
            number,
            child,
            restart,
            limit,
            is_added,
            stage: Stage::Rests(Some(now)),
            leaves: Leaves::No,
            failures: 0,
            restarts: 0,
            delay: Duration::ZERO,
        });
        self.is_unsettled = true;
        Ok(())
    }

    /// Ends a child for ever, whatever it does. Its position, if it is known.
    pub fn terminate(&mut self, number: u64) -> Option<usize> {
        let position = self.entries.iter().position(|entry| entry.number == number)?;
        let entry = &mut self.entries[position];
        if !entry.stage.lives() {
            entry.stage = Stage::Rests(None);
        }
        entry.leaves = Leaves::ForEver;
        (self.is_unsettled, self.some_leave) = (true, true);
        Some(position)
    }

    /// Ends all.
    pub fn end(&mut self, outcome: Outcome) {
        if self.ends.is_some() {
            return;
        }
        self.ends = Some(outcome);
        (self.is_unsettled, self.some_leave) = (true, true);
        for entry in &mut self.entries {
            match (entry.stage, entry.leaves) {
                (_, Leaves::ForEver) => {}
                (Stage::Rests(_), _) => entry.stage = Stage::Rests(None),
                _ => entry.leaves = Leaves::InOrder(None),
            }
        }
    }

    /// A child has ended, or could not be started. `failed` counts only if it was not asked to.
    pub fn ended(&mut self, position: usize, failed: bool, now: Instant) {
        let backoff = &self.rules.backoff;
        let Some(entry) = self.entries.get_mut(position).filter(|entry| entry.stage.lives()) else { return };
        self.is_unsettled = true;
        let stage = core::mem::replace(&mut entry.stage, Stage::Rests(None));
        match entry.leaves {
            Leaves::ForEver => return,
            Leaves::InOrder(again) => {
                entry.stage = Stage::Rests(again);
                entry.leaves =
                    if again.is_none() && entry.is_forgettable() { Leaves::ForEver } else { Leaves::No };
                return;
            }
            Leaves::No => {}
        }
        let again = match entry.restart {
            Restart::Permanent => true,
            Restart::Transient => failed,
            Restart::Temporary => false,
        };
        if !again {
            if entry.is_forgettable() {
                entry.leaves = Leaves::ForEver;
                self.some_leave = true;
            }
            return;
        }
        if let Stage::Runs(since) = stage
            && now.ticks().saturating_sub(since.ticks()) >= self.healthy
        {
            entry.failures = 0;
        }
        entry.delay = backoff.delay(entry.failures, &self.random);
        entry.failures = entry.failures.saturating_add(1);
        let (number, at) = (entry.number, if entry.delay.is_zero() { now } else { now + entry.delay });
        if self.is_one_too_many(now) {
            return self.end(Outcome::GaveUp(number));
        }
        let entry = &mut self.entries[position];
        entry.restarts += 1;
        entry.stage = Stage::Rests(Some(at));
        let group = match self.rules.strategy {
            Strategy::OneForOne => return,
            Strategy::OneForAll => 0,
            Strategy::RestForOne => position + 1,
        };
        self.some_leave = true;
        for (_, entry) in
            self.entries.iter_mut().enumerate().skip(group).filter(|(other, _)| *other != position)
        {
            let again = (entry.restart != Restart::Temporary).then_some(at);
            match (entry.stage, entry.leaves) {
                (_, Leaves::ForEver) => {}
                // One that is not started again may still be to be started.
                (Stage::Rests(due), _) => entry.stage = Stage::Rests(again.or(due)),
                _ => entry.leaves = Leaves::InOrder(again),
            }
        }
    }

    /// Notes a restart, unless there have been as many as the window allows.
    fn is_one_too_many(&mut self, now: Instant) -> bool {
        if self.rules.most == usize::MAX {
            return false;
        }
        while self.restarts.front().is_some_and(|at| now.ticks().saturating_sub(at.ticks()) > self.window) {
            self.restarts.pop_front();
        }
        if self.restarts.len() >= self.rules.most {
            return true;
        }
        self.restarts.push_back(now);
        false
    }

    /// What is to be done now. To be asked until the answer is to wait, or to end.
    pub fn next(&mut self, now: Instant) -> Step<C> {
        if !self.is_unsettled {
            return Step::Wait(None);
        }
        let mut until: Option<Instant> = None;
        let mut note = |moment: Instant| until = Some(until.map_or(moment, |until| until.min(moment)));
        // Whether one lives that leaves in order, or any at all.
        let (mut one_leaves, mut one_lives) = (false, false);
        let leaving = if self.some_leave { self.entries.len() } else { 0 };
        self.some_leave = self.ends.is_some();
        for position in (0..leaving).rev() {
            let entry = &mut self.entries[position];
            self.some_leave |= entry.leaves != Leaves::No;
            let may_leave = match entry.leaves {
                Leaves::No => false,
                Leaves::InOrder(_) => !core::mem::replace(&mut one_leaves, true),
                Leaves::ForEver => true,
            };
            one_lives |= entry.stage.lives();
            match entry.stage {
                Stage::Rests(None) if entry.leaves == Leaves::ForEver => {
                    let Entry { number, child, .. } = self.entries.remove(position);
                    return Step::Forget(number, child);
                }
                Stage::Runs(_) if may_leave => {
                    entry.stage = Stage::Asked(now + entry.limit);
                    return Step::Ask(position);
                }
                Stage::Asked(limit) if limit <= now => {
                    entry.stage = Stage::Killed;
                    return Step::Kill(position);
                }
                Stage::Asked(limit) => note(limit),
                Stage::Rests(_) | Stage::Runs(_) | Stage::Killed => {}
            }
        }
        if let Some(outcome) = self.ends {
            return if one_lives { Step::Wait(until) } else { Step::End(outcome) };
        }
        if !one_leaves {
            for (position, entry) in self.entries.iter_mut().enumerate() {
                let Stage::Rests(Some(at)) = entry.stage else { continue };
                if at <= now {
                    entry.stage = Stage::Runs(now);
                    let mut behind = self.entries[position + 1..].iter();
                    // So the next answer needs no look at all. A start that fails is told.
                    self.is_unsettled =
                        until.is_some() || behind.any(|entry| matches!(entry.stage, Stage::Rests(Some(_))));
                    return Step::Start(position);
                }
                note(at);
                if self.rules.strategy != Strategy::OneForOne {
                    break;
                }
            }
        }
        self.is_unsettled = until.is_some();
        Step::Wait(until)
    }

    /// Whether it ends, and takes no children any more.
    pub fn ends(&self) -> bool {
        self.ends.is_some()
    }

    /// The child at a position.
    pub fn child(&mut self, position: usize) -> Option<&mut C> {
        self.entries.get_mut(position).map(|entry| &mut entry.child)
    }

    /// The position of the child that is meant.
    pub fn position(&self, is_meant: impl Fn(&C) -> bool) -> Option<usize> {
        self.entries.iter().position(|entry| is_meant(&entry.child))
    }

    /// All of them, in order.
    pub fn known(&self) -> impl ExactSizeIterator<Item = (&C, Known)> {
        self.entries.iter().map(|entry| {
            let Entry { number, child, stage, restarts, delay, .. } = entry;
            (child, Known { number: *number, runs: stage.lives(), restarts: *restarts, delay: *delay })
        })
    }

    /// Takes all children out, at the end.
    pub fn into_children(self) -> impl Iterator<Item = C> {
        self.entries.into_iter().map(|entry| entry.child)
    }
}

impl<C> Entry<C> {
    /// Whether nothing could start it again.
    fn is_forgettable(&self) -> bool {
        self.is_added || self.restart == Restart::Temporary
    }
}
