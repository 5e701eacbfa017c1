//! A hierarchical timing wheel: constant-time arming and cancelling, firing in order of time.
//!
//! Level 0 has a slot for each of the next 64 ticks, level 1 for each of the next 64 times 64, and so on;
//! a timer lies in the level of the highest digit (base 64) in which its tick differs from the wheel's. When
//! the wheel reaches a slot of a higher level, that slot's timers *cascade*: each is put in again, lower.
//! A bit mask for each level says which slots are occupied, so empty stretches of time cost nothing.
//!
//! There are levels for every tick that the clock can count to. So a timer is always put in at its own tick, in a slot
//! ahead of the one where the wheel is: no slot is ever used for the next time round, where "now" and "in one round"
//! would look the same.
//!
//! After Varghese and Lauck, "Hashed and hierarchical timing wheels" (1987), with the tickless search that
//! later systems added. One step takes one timer out of a slot, to fire or to cascade, so a caller can
//! bound its work whatever the number of timers.

use core::ptr::{self, NonNull};
use core::task::Waker;

use super::owned;

/// Enough for [`LAST_TICK`].
const LEVELS: usize = 9;
const SLOT_BITS: u32 = 6;
const SLOTS: usize = 1 << SLOT_BITS;
/// The last tick that a wheel can come to; a timer for a later one waits for this.
pub(crate) const LAST_TICK: u64 = (1 << (SLOT_BITS * LEVELS as u32)) - 1;

/// The state of a timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// Not in a wheel.
    Idle,
    /// In a wheel.
    Armed,
    /// Its time has come; it is in no wheel any more.
    Fired,
}

/// One timer, in memory of its owner's. While in a wheel, it belongs to the wheel, under its lock.
pub(crate) struct Timer {
    previous: *mut Timer,
    next: *mut Timer,
    tick: u64,
    level: u8,
    slot: u8,
    /// Its state.
    pub state: State,
    /// Whether it does not count as work.
    pub background: bool,
    /// Its place in the list of the process that it belongs to.
    pub link: owned::Link,
    /// That list. Changed together with the waker, which keeps the process alive.
    pub owner: Option<NonNull<owned::OwnedTimers>>,
    /// Who is woken.
    pub waker: Option<Waker>,
}

impl Timer {
    pub(crate) const fn new(background: bool) -> Self {
        Self {
            previous: ptr::null_mut(),
            next: ptr::null_mut(),
            tick: 0,
            level: 0,
            slot: 0,
            state: State::Idle,
            background,
            link: owned::Link::NONE,
            owner: None,
            waker: None,
        }
    }
}

/// Timers in order of time.
pub(crate) struct Wheel {
    /// The tick up to which everything has fired.
    now: u64,
    occupied: [u64; LEVELS],
    slots: [[*mut Timer; SLOTS]; LEVELS],
}

// SAFETY: the timers in a wheel are used under its lock only, from whatever core.
unsafe impl Send for Wheel {}

/// The occupied slot that comes next.
struct NextSlot {
    level: usize,
    slot: usize,
    /// When it begins.
    tick: u64,
}

impl Wheel {
    pub(crate) const fn new() -> Self {
        Self { now: 0, occupied: [0; LEVELS], slots: [[ptr::null_mut(); SLOTS]; LEVELS] }
    }

    /// Puts a timer in, to fire at `tick`, or at once if that has passed.
    ///
    /// # Safety
    /// The timer stays where it is until it has fired or was taken out, and is in no wheel.
    pub(crate) unsafe fn insert(&mut self, timer: NonNull<Timer>, tick: u64) {
        let tick = tick.clamp(self.now, LAST_TICK);
        let differing = (self.now ^ tick) | (SLOTS as u64 - 1);
        let level = ((63 - differing.leading_zeros()) / SLOT_BITS) as usize;
        let slot = (tick >> (SLOT_BITS * level as u32)) as usize % SLOTS;
        let first = self.slots[level][slot];
        // SAFETY: the timer is the caller's, and becomes the wheel's; so is the first in the slot.
        unsafe {
            let timer = &mut *timer.as_ptr();
            timer.tick = tick;
            timer.level = level as u8;
            timer.slot = slot as u8;
            timer.state = State::Armed;
            timer.previous = ptr::null_mut();
            timer.next = first;
            if let Some(first) = first.as_mut() {
                first.previous = timer;
            }
        }
        self.slots[level][slot] = timer.as_ptr();
        self.occupied[level] |= 1 << slot;
    }

    /// Takes a timer out.
    ///
    /// # Safety
    /// It is in this wheel.
    pub(crate) unsafe fn remove(&mut self, timer: NonNull<Timer>) {
        // SAFETY: by contract, so its neighbours are in this wheel too.
        unsafe {
            let timer = &mut *timer.as_ptr();
            let (level, slot) = (timer.level as usize, timer.slot as usize);
            match timer.previous.as_mut() {
                Some(previous) => previous.next = timer.next,
                None => self.slots[level][slot] = timer.next,
            }
            if let Some(next) = timer.next.as_mut() {
                next.previous = timer.previous;
            }
            if self.slots[level][slot].is_null() {
                self.occupied[level] &= !(1 << slot);
            }
            timer.state = State::Idle;
        }
    }

    /// When there is something to do next: a timer to fire, or a slot to cascade.
    pub(crate) fn next_tick(&self) -> Option<u64> {
        self.next_slot().map(|next| next.tick)
    }

    /// The earliest occupied slot; of several that begin at once the highest, which has to cascade first.
    fn next_slot(&self) -> Option<NextSlot> {
        let mut best: Option<NextSlot> = None;
        for level in 0..LEVELS {
            if self.occupied[level] == 0 {
                continue;
            }
            let shift = SLOT_BITS * level as u32;
            let here = self.now >> shift;
            let ahead = self.occupied[level].rotate_right((here % SLOTS as u64) as u32).trailing_zeros();
            let tick = ((here + u64::from(ahead)) << shift).max(self.now);
            if best.as_ref().is_none_or(|best| tick <= best.tick) {
                let slot = ((here + u64::from(ahead)) % SLOTS as u64) as usize;
                best = Some(NextSlot { level, slot, tick });
            }
        }
        best
    }

    /// One step towards `tick`: fires one timer, whose waker is returned, or cascades one. `None` when
    /// everything up to `tick` has fired.
    pub(crate) fn step(&mut self, tick: u64) -> Option<Advance> {
        let tick = tick.min(LAST_TICK);
        let Some(next) = self.next_slot().filter(|next| next.tick <= tick) else {
            self.now = self.now.max(tick);
            return None;
        };
        self.now = next.tick;
        let timer = NonNull::new(self.slots[next.level][next.slot])?;
        // SAFETY: it is in this wheel, under whose lock the caller works.
        unsafe {
            self.remove(timer);
            let tick = timer.as_ref().tick;
            if tick > self.now {
                self.insert(timer, tick);
                return Some(Advance::Cascaded);
            }
            owned::unlink(timer);
            let timer_ref = &mut *timer.as_ptr();
            timer_ref.state = State::Fired;
            Some(Advance::Fired { waker: timer_ref.waker.take(), background: timer_ref.background })
        }
    }
}

/// What a step did.
pub(crate) enum Advance {
    /// A timer moved to a lower level.
    Cascaded,
    /// A timer fired.
    Fired {
        /// Who is to be woken.
        waker: Option<Waker>,
        /// Whether it did not count as work.
        background: bool,
    },
}

#[cfg(test)]
mod tests {
    use super::{Advance, LAST_TICK, LEVELS, SLOT_BITS, State, Timer, Wheel};
    use crate::random::Random;
    use std::collections::BTreeMap;
    use std::ptr::NonNull;

    fn below(random: &Random, bound: u64) -> u64 {
        random.bits() % bound
    }

    fn pointer(timer: &mut Timer) -> NonNull<Timer> {
        NonNull::from(timer)
    }

    #[test]
    fn it_agrees_with_a_sorted_map() {
        let random = Random::new(42, 0);
        for range in [10, 70, 5_000, 1 << 20, 1 << 40] {
            let mut timers: Vec<_> = (0..500).map(|_| Box::new(Timer::new(false))).collect();
            let mut wheel = Wheel::new();
            let mut model: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
            let mut now = 0;
            for round in 0..500 {
                let tick = now + below(&random, range);
                // SAFETY: the timers outlive the wheel and are put in once.
                unsafe { wheel.insert(pointer(&mut timers[round]), tick) };
                model.entry(tick).or_default().push(round);
                if below(&random, 3) == 0
                    && let Some((&tick, _)) = model.iter().next()
                {
                    let cancelled = model.get_mut(&tick).and_then(Vec::pop).expect("not empty");
                    if model[&tick].is_empty() {
                        model.remove(&tick);
                    }
                    // SAFETY: the model says that it is in the wheel.
                    unsafe { wheel.remove(pointer(&mut timers[cancelled])) };
                }
                now += below(&random, range / 10 + 1);
                while wheel.step(now).is_some() {}
                let later = model.split_off(&(now + 1));
                for index in std::mem::replace(&mut model, later).into_values().flatten() {
                    assert_eq!(timers[index].state, State::Fired, "due at or before {now}");
                }
                for &index in model.values().flatten() {
                    assert_eq!(timers[index].state, State::Armed, "due after {now}");
                }
                assert!(wheel.next_tick() <= model.keys().next().copied().or(wheel.next_tick()));
            }
        }
    }

    /// A moment at any distance, near ones as often as far ones.
    fn any_distance(random: &Random) -> u64 {
        let bits = 1 + below(random, 64) as u32;
        below(random, 1 << (bits - 1)).saturating_mul(2) + below(random, 2)
    }

    /// The promise: a timer fires in the first pass that reaches its tick, and in no pass before, however far the tick is
    /// and however far the clock jumps; and a pass comes to an end.
    #[test]
    fn every_distance_and_every_jump_agrees_with_a_sorted_list() {
        for seed in 1..=60 {
            let random = Random::new(seed, 0);
            let mut timers: Vec<_> = (0..300).map(|_| Box::new(Timer::new(false))).collect();
            let (mut wheel, mut now) = (Wheel::new(), 0);
            // Ticks and numbers of timers, in order.
            let mut model: Vec<(u64, usize)> = Vec::new();
            for number in 0..timers.len() {
                let tick = match below(&random, 8) {
                    0 => u64::MAX,
                    1 => LAST_TICK,
                    2 => now,
                    _ => u64::saturating_add(now, any_distance(&random)),
                };
                // SAFETY: the timers outlive the wheel and are put in once.
                unsafe { wheel.insert(pointer(&mut timers[number]), tick) };
                let entry = (tick.clamp(now, LAST_TICK), number);
                model.insert(model.partition_point(|other| *other < entry), entry);
                if below(&random, 5) == 0 {
                    let (_, cancelled) = model.remove(below(&random, model.len() as u64) as usize);
                    // SAFETY: the model says that it is in the wheel.
                    unsafe { wheel.remove(pointer(&mut timers[cancelled])) };
                }
                now = match below(&random, 6) {
                    // To the next timer, or just before it.
                    0 => model.first().map_or(now, |first| now.max(first.0 - below(&random, 2).min(first.0))),
                    1 => now.saturating_add(any_distance(&random) >> below(&random, 64)).min(LAST_TICK),
                    _ => now.saturating_add(below(&random, 100)).min(LAST_TICK),
                };
                if let Some(next) = wheel.next_tick() {
                    assert!(next <= model[0].0, "seed {seed}: looks again at {next}, due at {}", model[0].0);
                }
                let (mut steps, most) = (0, (model.len() + 1) * (LEVELS + 1));
                while wheel.step(now).is_some() {
                    steps += 1;
                    assert!(steps <= most, "seed {seed}: no end of the pass at {now}");
                }
                let due = model.partition_point(|entry| entry.0 <= now);
                for (tick, index) in model.drain(..due) {
                    assert_eq!(timers[index].state, State::Fired, "seed {seed}: due at {tick}, now {now}");
                }
                for &(tick, index) in &model {
                    assert_eq!(timers[index].state, State::Armed, "seed {seed}: due at {tick}, now {now}");
                }
            }
            while wheel.step(u64::MAX).is_some() {}
            assert!(
                model.iter().all(|&(_, index)| timers[index].state == State::Fired),
                "seed {seed}: at the end"
            );
        }
    }

    /// From wherever the wheel is: a timer at the first and the last tick of each level.
    #[test]
    fn every_level_fires_at_its_tick() {
        let edges = (0..LEVELS as u32).map(|level| 1_u64 << (SLOT_BITS * level));
        let edges: Vec<_> = edges.flat_map(|edge| [edge - 1, edge, edge + 1]).chain([LAST_TICK]).collect();
        for &from in &edges {
            for &distance in &edges {
                let tick = from.saturating_add(distance).min(LAST_TICK);
                let (mut timer, mut wheel) = (Timer::new(false), Wheel::new());
                assert!(wheel.step(from).is_none());
                // SAFETY: the timer outlives the wheel.
                unsafe { wheel.insert(pointer(&mut timer), tick) };
                let mut passes = 0;
                // As long as the timer is in the wheel.
                while let Some(next) = wheel.next_tick() {
                    assert!(next <= tick, "{distance} from {from}: looks again at {next}");
                    while wheel.step(next).is_some() {}
                    assert_eq!(
                        timer.state == State::Fired,
                        next == tick,
                        "{distance} from {from}, at {next}"
                    );
                    passes += 1;
                    assert!(passes <= LEVELS, "{distance} from {from}: {passes} passes");
                }
            }
        }
    }

    #[test]
    fn a_million_timers_never_make_one_step_long() {
        const COUNT: usize = 1_000_000;
        let mut timers: Vec<_> = (0..COUNT).map(|_| Timer::new(false)).collect();
        let random = Random::new(7, 0);
        let mut wheel = Wheel::new();
        for timer in &mut timers {
            // SAFETY: the vector is not moved any more, and outlives the wheel.
            unsafe { wheel.insert(NonNull::from(timer), below(&random, 1 << 30)) };
        }
        let (mut fired, mut cascaded) = (0, 0);
        // Each step handles one timer, so the work is the number of steps.
        while let Some(step) = wheel.step(1 << 30) {
            match step {
                Advance::Fired { .. } => fired += 1,
                Advance::Cascaded => cascaded += 1,
            }
        }
        assert_eq!(fired, COUNT);
        // A timer cascades at most once for each level below the one it began in: 2^30 is in level 4.
        assert!(cascaded <= 4 * COUNT, "{cascaded} cascades");
    }
}
