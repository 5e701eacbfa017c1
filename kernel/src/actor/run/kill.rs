//! Killing actors: what ends one from outside, and how an interrupt finds that what it has interrupted is to end.
//!
//! - A message comes in front of all that waits for the actor, and ends it in its turn, as its own behaviour could.
//! - Until it has ended, the watches that wait for its end have one among them that tells nobody (`watch::ask_to_end`). An interrupt that
//!   finds a behaviour at work, while anything of the sort is pending, looks there for its actor. If the behaviour has had its time it
//!   ends as in a crash.
//!
//! **Where a piece of work can end**: nothing that this activation has begun may be left half done, or done and not told. The actor's word and
//! the tally say where it is ([`Piece::place`]). In the sections between, preemption is disabled.

use alloc::boxed::Box;
use core::mem::{MaybeUninit, size_of};
use core::ptr::NonNull;

use super::at_work::identity;
use super::executor_state::{ExecutorState, put_in_front};
use super::pending_kills;
use super::tally::Tally;
use crate::actor::mail::envelope::{self, Inline, Kill};
use crate::actor::mail::{Envelope, Segment, directory};
use crate::actor::storage::{CellRef, Word, cell};
use crate::arch::clock;
use crate::mem::{self, OutOfMemory};
use crate::sched::{self, EndOfPiece, Setting};
use crate::sync::PreemptGuard;
use crate::watch::{self, Asked, Data, Exit, Means, Node};

/// A behaviour that runs when its actor is killed has so many slices to end by itself.
const SLICES: u64 = 2;

/// What is kept in mind of a kill.
#[derive(Clone, Copy)]
struct Pending {
    cell: CellRef,
    word: Word,
    /// A behaviour that still runs then is ended, in clock ticks.
    due: u64,
}

const _: () =
    assert!(size_of::<Pending>() <= size_of::<Data>(), "a kill fits into what is kept in mind of it");

/// Whether the actor lives, or is still at its end.
fn has_not_ended(cell: CellRef, word: Word) -> bool {
    let now = cell.word();
    now.is_same_actor(word) || now == word.ending()
}

/// Ends the actor that has that word while it is attached. If there is no memory for that, nothing has happened.
pub(crate) fn kill(cell: CellRef, word: Word) -> Result<(), OutOfMemory> {
    if needs_killing(cell, word) {
        Room::new().ok_or(OutOfMemory)?.kill(cell, word);
    }
    Ok(())
}

/// Whether it has not ended, and nobody has killed it.
fn needs_killing(cell: CellRef, word: Word) -> bool {
    has_not_ended(cell, word) && asked_to_end(cell, word).is_none()
}

/// What is kept in mind of its kill, if it was killed and has not ended.
fn asked_to_end(cell: CellRef, word: Word) -> Option<Data> {
    if !pending_kills::may_be(cell) {
        return None;
    }
    watch::asked_to_end(identity(cell, word))
}

/// Memory for a kill, which so does not fail when it is needed most.
pub(crate) struct Room {
    segment: NonNull<Segment>,
    node: NonNull<Node>,
}

const BYTES: usize = envelope::size_of_envelope::<Kill>();

// SAFETY: both are the room's alone, whatever core it is on.
unsafe impl Send for Room {}

impl Room {
    pub(crate) fn new() -> Option<Self> {
        let segment = Segment::new(BYTES)?;
        let Ok(memory) = mem::kernel_box(MaybeUninit::<Node>::uninit()) else {
            // SAFETY: just made, and empty.
            unsafe { Segment::free(segment) };
            return None;
        };
        Some(Self { segment, node: NonNull::from(Box::leak(memory)).cast() })
    }

    /// As [`kill`].
    pub(crate) fn kill_unless_done(self, cell: CellRef, word: Word) {
        if needs_killing(cell, word) {
            self.kill(cell, word);
        } else {
            self.free();
        }
    }

    pub(crate) fn free(self) {
        // SAFETY: both are the room's, made in `new`; the segment is empty.
        unsafe {
            Segment::free(self.segment);
            drop(Box::from_raw(self.node.cast::<MaybeUninit<Node>>().as_ptr()));
        }
    }

    /// Ends the actor that has that word while it is attached.
    fn kill(self, cell: CellRef, word: Word) {
        let Self { mut segment, node } = self;
        // The killer may be killed, too: then it is counted, kept in mind and sent, or none of it.
        let _here = PreemptGuard::new();
        let due = clock::now() + SLICES * sched::setting_ticks(Setting::SliceMicroseconds);
        let mut data = Data::uninit();
        // SAFETY: it has room, as was asserted.
        unsafe { data.as_mut_ptr().cast::<Pending>().write(Pending { cell, word, due }) };
        pending_kills::begin(cell);
        let means = Means { memory: node, act, data };
        let who = identity(cell, word);
        watch::ask_to_end(who, means, cell::watched(cell, word), || has_not_ended(cell, word));
        // SAFETY: the segment has room, and is ours until it is given up. What is in it is not boxed, and needs not be dropped.
        unsafe {
            let place = Segment::begin(segment);
            envelope::write(place, envelope::kill(cell, word), &Inline(Kill));
            segment.as_mut().set_end(place.add(BYTES));
            put_in_front(directory::get(word.mailbox()), segment);
        }
        sched::note_kill();
    }
}

/// Whom a link ends, and a part of the room for that; the rest is the node of the watch.
#[derive(Clone, Copy)]
struct Linked {
    cell: CellRef,
    word: Word,
    segment: NonNull<Segment>,
}

const _: () = assert!(size_of::<Linked>() <= size_of::<Data>(), "a link fits into its watch");

/// A watch that kills the actor when it tells of a failure. It has the room for that from its beginning.
pub(crate) fn fate(cell: CellRef, word: Word) -> Option<Means> {
    let Room { segment, node } = Room::new()?;
    let mut data = Data::uninit();
    // SAFETY: it has room, as was asserted.
    unsafe { data.as_mut_ptr().cast::<Linked>().write(Linked { cell, word, segment }) };
    Some(Means { memory: node, act: act_on_link, data })
}

/// # Safety
/// As [`Act`](watch::Node): made in [`fate`].
unsafe fn act_on_link(node: NonNull<Node>, asked: Asked) -> bool {
    // SAFETY: by contract; written in `fate`.
    let Linked { cell, word, segment } = unsafe { node.as_ref().data().cast::<Linked>().read() };
    if asked == Asked::IsPointless {
        return !has_not_ended(cell, word);
    }
    // By contract the node is the caller's alone, who gives it up, and what is in it was read.
    let room = Room { segment, node };
    // An end that has begun goes on as it began: whoever is linked only then is told that it has gone, and ends of that.
    let is_to_end = matches!(asked, Asked::Tell(bits) if Exit::from_bits(bits).ends_linked())
        && cell.word().is_same_actor(word);
    if is_to_end {
        room.kill_unless_done(cell, word);
    } else {
        room.free();
    }
    true
}

/// # Safety
/// As [`Act`](watch::Node): made in [`kill`].
unsafe fn act(node: NonNull<Node>, asked: Asked) -> bool {
    // SAFETY: by contract; written in `kill`.
    let Pending { cell, word, .. } = unsafe { node.as_ref().data().cast::<Pending>().read() };
    if asked == Asked::IsPointless {
        return !has_not_ended(cell, word);
    }
    pending_kills::end(cell);
    // SAFETY: by contract it is the caller's alone, who gives it up; boxed in `kill`.
    drop(unsafe { Box::from_raw(node.cast::<MaybeUninit<Node>>().as_ptr()) });
    true
}

/// A piece of work that was interrupted.
pub(super) struct Piece<'a> {
    pub cell: CellRef,
    /// The actor's word while it is attached.
    pub word: Word,
    /// Whether the word in the cell is the actor's while this activation has it.
    pub is_held: fn(Word, Word) -> bool,
    pub tally: &'a Tally,
    /// What is being delivered, or comes next, if there is anything.
    pub envelope: Option<NonNull<Envelope>>,
}

/// Where an activation is.
enum At {
    /// In a behaviour, or before or behind one, and has the actor.
    Behaviour,
    /// In the actor's hook for its end, or where its state is dropped.
    End,
    /// Where a dead letter is dropped, or before or behind that.
    Letter,
    /// Where it must not end.
    Between,
}

impl Piece<'_> {
    fn place(&self) -> At {
        let word = self.cell.word();
        if self.tally.is_dropping(self.cell) {
            // Once the cell has another word, those who watch are being told.
            if word == self.word.ending() { At::End } else { At::Between }
        } else if (self.is_held)(word, self.word) {
            At::Behaviour
        } else if word.is_same_actor(self.word) {
            // It has given the actor back, or puts aside what is for one that another activation has.
            At::Between
        } else {
            At::Letter
        }
    }

    /// Whether it is to end now, and can. Where the interrupt came, which masks others, with preemption disabled since.
    pub(super) fn is_to_end(
        &self,
        executor: &ExecutorState,
        EndOfPiece { is_killed, is_long }: EndOfPiece,
        is_detached: bool,
    ) -> bool {
        let place = self.place();
        if matches!(place, At::Between) {
            return false;
        }
        if is_killed {
            return true;
        }
        if executor.is_killing() {
            // What runs in a worker's turn is not known to be endless. What was suspended has had its time, but for an end.
            return is_long || (is_detached && !matches!(place, At::End));
        }
        let is_asked = || asked_to_end(self.cell, self.word);
        match place {
            At::Between | At::Letter => false,
            At::End => is_long && is_asked().is_some(),
            At::Behaviour => is_asked().is_some_and(|data| {
                // SAFETY: written in `kill`.
                let due = unsafe { data.as_ptr().cast::<Pending>().read() }.due;
                // SAFETY: measuring changes nothing; it is readable as long as it is known.
                let ends_anyway =
                    self.envelope.is_some_and(|envelope| unsafe { Envelope::is_kill(envelope) });
                is_long || (!ends_anyway && (is_detached || clock::now() >= due))
            }),
        }
    }
}
