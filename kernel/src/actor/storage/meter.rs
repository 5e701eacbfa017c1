//! Meters: what is counted of one actor, and who pays for it, wherever its mailbox is.
//!
//! Most actors have none: it would take memory in each, and instructions for each message. One that is spawned with a meter has its number
//! in the word of its cell ([`Word::meter`](super::Word::meter)), which so is not the word of its address: what is sent to it takes the
//! slow path in all places, and those know the meter.
//!
//! A meter belongs to an actor from before that is attached until all is done that its end runs. Meters are never freed, so anybody may read
//! one at any time; whose it was then, the word says before and after. Who pays is held by a charge of its own, or its number might serve
//! another limit while the actor lives.

use core::ptr;

use crate::arch::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use crate::arch::{clock, percpu};
use crate::mem::{self, Payer};
use crate::sync::{PaidBy, PreemptGuard};

/// Meters of a chunk.
const IN_CHUNK: usize = 32;
/// Numbers have twelve bits, and none is 0.
const MOST: usize = 4095;
const CHUNKS: usize = (MOST + 1) / IN_CHUNK;

/// What holding an account is charged: as much as the smallest block.
const HOLD_BYTES: usize = 64;

/// What is counted of one actor. Written by the one activation that runs it, so nothing is a read-modify-write; whoever runs it next
/// has got the actor from there.
pub(crate) struct Meter {
    /// The account that pays, or 0.
    account: AtomicU32,
    /// The core that has run it last, and one more; 0 if none has.
    core: AtomicU32,
    /// When it was spawned, in clock ticks.
    began: AtomicU64,
    messages: AtomicU64,
    reductions: AtomicU64,
    moves: AtomicU64,
}

struct Chunk {
    /// A bit for each that somebody has.
    taken: AtomicU32,
    meters: [Meter; IN_CHUNK],
}

static ALL: [AtomicPtr<Chunk>; CHUNKS] = [const { AtomicPtr::new(ptr::null_mut()) }; CHUNKS];

/// Why there is no meter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NoMeter {
    /// All 4095 are in use.
    TooMany,
    /// There is no memory for more of them.
    OutOfMemory,
    /// The limit has no room for one more actor.
    OverLimit,
}

/// What was read of a meter.
#[derive(Clone, Copy)]
pub(crate) struct Reading {
    pub began: u64,
    pub messages: u64,
    pub reductions: u64,
    pub moves: u64,
}

/// One that is to be an actor's. Dropped, it is nobody's again.
pub(crate) struct Taken(u16);

impl Taken {
    /// Its number. From now on it is the actor's, and [`give`] gives it back.
    pub(crate) fn into_number(self) -> u16 {
        let number = self.0;
        core::mem::forget(self);
        number
    }

    /// Its number.
    pub(crate) fn number(&self) -> u16 {
        self.0
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        give(self.0);
    }
}

/// Takes a meter for an actor that `payer` is to pay for. With preemption disabled, until it is known whose it is.
pub(crate) fn take(payer: Payer, _here: &PreemptGuard) -> Result<Taken, NoMeter> {
    let number = find()?;
    let taken = Taken(number);
    let Some(meter) = of(number) else { return Err(NoMeter::TooMany) };
    // Relaxed, here and below: the cell's word publishes it, with a release.
    meter.account.store(0, Ordering::Relaxed);
    if payer != Payer::NOBODY {
        if !payer.charge(HOLD_BYTES) {
            return Err(NoMeter::OverLimit);
        }
        meter.account.store(payer.number().into(), Ordering::Relaxed);
    }
    meter.core.store(0, Ordering::Relaxed);
    for counter in [&meter.messages, &meter.reductions, &meter.moves] {
        counter.store(0, Ordering::Relaxed);
    }
    meter.began.store(clock::now(), Ordering::Relaxed);
    Ok(taken)
}

/// Finds a free one, and takes it.
fn find() -> Result<u16, NoMeter> {
    for (index, place) in ALL.iter().enumerate() {
        // Acquire: pairs with the release in `chunk_at`.
        let chunk = match ptr::NonNull::new(place.load(Ordering::Acquire)) {
            Some(chunk) => chunk,
            None => chunk_at(place).ok_or(NoMeter::OutOfMemory)?,
        };
        // SAFETY: chunks are never freed.
        let taken = unsafe { &chunk.as_ref().taken };
        // Number 0 is none.
        let never = u32::from(index == 0);
        // Relaxed: the exchange decides.
        let mut before = taken.load(Ordering::Relaxed);
        while before | never != u32::MAX {
            let bit = (before | never).trailing_ones();
            // Acquire: pairs with the release in `give`, after which the last one's writes nothing here.
            let took =
                taken.compare_exchange(before, before | 1 << bit, Ordering::Acquire, Ordering::Relaxed);
            match took {
                // Both fit: there are fewer than 4096.
                Ok(_) => return Ok((index * IN_CHUNK + bit as usize) as u16),
                Err(now) => before = now,
            }
        }
    }
    Err(NoMeter::TooMany)
}

/// A new chunk for an empty place, or the one that another has put there meanwhile.
#[cold]
fn chunk_at(place: &AtomicPtr<Chunk>) -> Option<ptr::NonNull<Chunk>> {
    let number = || AtomicU64::new(0);
    let meter = |_| Meter {
        account: AtomicU32::new(0),
        core: AtomicU32::new(0),
        began: number(),
        messages: number(),
        reductions: number(),
        moves: number(),
    };
    let chunk =
        mem::kernel_box_with(|| Chunk { taken: AtomicU32::new(0), meters: core::array::from_fn(meter) })
            .ok()?;
    let chunk = ptr::NonNull::from(alloc::boxed::Box::leak(chunk));
    // Release, and acquire if it failed: publishes what the chunk is, and pairs with the load in `find` and in `of`.
    match place.compare_exchange(ptr::null_mut(), chunk.as_ptr(), Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => Some(chunk),
        Err(other) => {
            // SAFETY: made above, and nobody else has seen it.
            drop(unsafe { alloc::boxed::Box::from_raw(chunk.as_ptr()) });
            ptr::NonNull::new(other)
        }
    }
}

/// The meter with that number; `None` of 0.
pub(crate) fn of(number: u16) -> Option<&'static Meter> {
    let index = usize::from(number);
    // Acquire: pairs with the release in `chunk_at`.
    let chunk =
        ptr::NonNull::new(ALL.get(index / IN_CHUNK)?.load(Ordering::Acquire)).filter(|_| number != 0)?;
    // SAFETY: chunks are never freed.
    unsafe { chunk.as_ref() }.meters.get(index % IN_CHUNK)
}

/// Its actor has ended, and all was done that is paid for: it is nobody's. Of 0 nothing.
pub(crate) fn give(number: u16) {
    let Some(meter) = of(number) else { return };
    let here = PreemptGuard::new();
    // Relaxed: only whoever has it writes it.
    if let Ok(account @ 1..) = u8::try_from(meter.account.load(Ordering::Relaxed)) {
        Payer::give_back(account, HOLD_BYTES);
    }
    let index = usize::from(number);
    let chunk = ALL.get(index / IN_CHUNK).map(|place| place.load(Ordering::Acquire));
    if let Some(chunk) = chunk.and_then(ptr::NonNull::new) {
        // SAFETY: chunks are never freed. Release: pairs with the acquire in `find`.
        unsafe { chunk.as_ref() }.taken.fetch_and(!(1 << (index % IN_CHUNK)), Ordering::Release);
    }
    drop(here);
}

fn add(counter: &AtomicU64, number: u64) {
    // Relaxed, here and below: one writer at a time, and readers want no more than a number.
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(number), Ordering::Relaxed);
}

impl Meter {
    /// What it says.
    pub(crate) fn read(&self) -> Reading {
        let number = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Reading {
            began: number(&self.began),
            messages: number(&self.messages),
            reductions: number(&self.reductions),
            moves: number(&self.moves),
        }
    }

    /// Who pays from now on, until that is dropped, if it is not who did anyhow.
    pub(crate) fn paid_by(&self) -> Option<PaidBy> {
        let account = self.account.load(Ordering::Relaxed);
        (account != 0).then(|| PaidBy::account(account))
    }

    /// One more message is delivered, on the caller's core.
    pub(crate) fn count_message(&self, _here: &PreemptGuard) {
        add(&self.messages, 1);
        let core = percpu::core_number() as u32 + 1;
        let before = self.core.load(Ordering::Relaxed);
        if before != core {
            self.core.store(core, Ordering::Relaxed);
            add(&self.moves, u64::from(before != 0));
        }
    }

    /// So many reductions more.
    pub(crate) fn count_reductions(&self, reductions: u64) {
        add(&self.reductions, reductions);
    }
}
