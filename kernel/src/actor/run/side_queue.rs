//! Side queues: messages for actors whose behaviour is suspended.
//!
//! While a behaviour is suspended its actor is *detached*: the worker goes on with everyone else, and what
//! it meets for that actor it copies here, in order. When the behaviour has ended, its activation delivers
//! what is here, in order, and re-attaches the actor under the lock when nothing is left. So whatever was
//! sent earlier is handled earlier, and nobody else waits.
//!
//! One lock guards all side queues: there are at most as many as there are stacks to lend, and every use is
//! off the common path.

use alloc::vec::Vec;
use core::ptr::{self, NonNull};

use super::detachment::{self, Found};
use super::executor_state::give_back;
use crate::actor::mail::growth::AT_ONCE_BYTES;
use crate::actor::mail::oldest::{self, Room, Stays};
use crate::actor::mail::{CopyQueue, Envelope, Gulp, Segment, directory, segment};
use crate::actor::storage::{CellRef, Word};
use crate::sync::{PaidBy, SpinLock};

/// Bytes of a side queue before it has grown.
const FIRST_SEGMENT_BYTES: usize = 512;

struct Side {
    cell: CellRef,
    queue: CopyQueue,
    /// How many messages are in it.
    messages: u32,
}

// SAFETY: cells' words may be used from any core, and the queue may change cores.
unsafe impl Send for Side {}

static SIDES: SpinLock<Vec<Side>> = SpinLock::new(Vec::new());

/// What became of an envelope that was to be kept.
pub(super) enum Kept {
    /// It was copied; it has that many bytes.
    Yes(usize),
    /// There is no memory for it now.
    OutOfMemory,
    /// The actor is not detached: it is attached (`true`), or has ended (`false`).
    NotDetached(bool),
}

/// Detaches an actor. `false` if there is no memory for its side queue; then it stays attached.
pub(super) fn open(cell: CellRef) -> bool {
    let Some(segment) = Segment::new(FIRST_SEGMENT_BYTES) else { return false };
    let _nobody = PaidBy::nobody();
    let mut sides = SIDES.lock();
    if sides.try_reserve(1).is_err() {
        drop(sides);
        // SAFETY: just made, and empty.
        unsafe { Segment::free(segment) };
        return false;
    }
    sides.push(Side { cell, queue: CopyQueue::new(segment, false), messages: 0 });
    let word = cell.word();
    directory::get(word.mailbox()).gone.note();
    cell.set_word(word.held());
    true
}

/// Copies an envelope to its actor's side queue, if the actor is detached. The original must then not be
/// delivered or dropped.
pub(super) fn keep(cell: CellRef, expected: Word, envelope: NonNull<Envelope>) -> Kept {
    let mut sides = SIDES.lock();
    let is_attached = |word| Word::from_bits(word).is_attached(expected);
    let is_same = |word| Word::from_bits(word).is_same_actor(expected);
    match detachment::look(cell.word_cell(), is_attached, is_same) {
        Found::Detached => {}
        Found::Attached => return Kept::NotDetached(true),
        Found::Other => return Kept::NotDetached(false),
    }
    let Some(side) = sides.iter_mut().find(|side| side.cell == cell) else { return Kept::NotDetached(false) };
    // SAFETY: measuring changes nothing.
    let bytes = unsafe { Envelope::measure(envelope) };
    if !side.queue.has_room(bytes) {
        // Under the lock of all, so not a long one.
        let capacity = side.queue.next_capacity_bytes(bytes).min(AT_ONCE_BYTES.max(bytes));
        let Some(segment) = Segment::new(capacity) else {
            return Kept::OutOfMemory;
        };
        side.queue.extend(segment);
    }
    let Some(place) = side.queue.reserve(bytes) else { return Kept::OutOfMemory };
    // SAFETY: both have that many bytes and do not overlap; an envelope may be moved, because whoever has it has
    // its message.
    unsafe { ptr::copy_nonoverlapping(envelope.cast::<u8>().as_ptr(), place.as_ptr(), bytes) };
    side.messages = side.messages.saturating_add(1);
    Kept::Yes(bytes)
}

/// How many messages are put aside for an actor: none, unless it is detached.
pub(crate) fn messages_aside(cell: CellRef, expected: Word) -> u32 {
    if cell.word_relaxed().is_attached(expected) {
        return 0;
    }
    let mut sides = SIDES.lock();
    side_of(&mut sides, cell, expected).map_or(0, |side| side.messages)
}

/// Takes the oldest message that is put aside for an actor and drops it, unless nothing is aside by now.
#[inline(never)]
pub(crate) fn forget_oldest(cell: CellRef, expected: Word) -> Result<(), Stays> {
    let mut room = Room::new();
    let mut sides = SIDES.lock();
    let Some(side) = side_of(&mut sides, cell, expected) else { return Ok(()) };
    if side.queue.is_empty() {
        return Ok(());
    }
    let taken = oldest::take_message_of(&mut side.queue, &mut room).ok_or(Stays)?;
    side.messages = side.messages.saturating_sub(1);
    drop(sides);
    taken.drop_message();
    Ok(())
}

/// The side queue of that actor, if it has one: its cell may be another's by now.
fn side_of(sides: &mut [Side], cell: CellRef, expected: Word) -> Option<&mut Side> {
    // Who has ended gives up its side queue under the lock, before its cell has a successor.
    if !cell.word().is_same_actor(expected) {
        return None;
    }
    sides.iter_mut().find(|side| side.cell == cell)
}

/// What a detached actor's activation does next.
pub(super) enum Next {
    /// Deliver these, so many.
    Deliver(Gulp, u32),
    /// Nothing: the actor is attached again.
    Reattached,
    /// Try again: there was no memory to go on collecting while these are delivered.
    OutOfMemory,
}

/// Takes what waits for a detached actor; if that is nothing, the actor is attached again.
pub(super) fn take_or_reattach(cell: CellRef, word: Word) -> Next {
    let mut sides = SIDES.lock();
    let Some(index) = sides.iter().position(|side| side.cell == cell) else { return Next::Reattached };
    let is_empty = sides[index].queue.is_empty();
    if !detachment::reattach(cell.word_cell(), cell.word().given_back().bits(), is_empty) {
        let Some(spare) = Segment::new(FIRST_SEGMENT_BYTES) else { return Next::OutOfMemory };
        let gulp = sides[index].queue.gulp(spare);
        let messages = core::mem::take(&mut sides[index].messages);
        // Who waits for room in a mailbox of this actor's own has waited for this, too.
        directory::get(word.mailbox()).waiting_senders.tell(&sides.unlock());
        return Next::Deliver(gulp, messages);
    }
    let mut side = sides.swap_remove(index);
    let gulp = side.queue.take_all();
    // SAFETY: the queue is ours now, and empty.
    unsafe { segment::free_chain(gulp.first) };
    Next::Reattached
}

/// Removes the side queue of an actor that has ended, if it was detached: what is in it comes back to the mailbox, and is
/// dropped there as any other dead letter. Its word says that it has ended, so that nothing is kept here any more.
pub(super) fn give_up(cell: CellRef, word: Word) {
    let side = {
        let mut sides = SIDES.lock();
        let Some(index) = sides.iter().position(|side| side.cell == cell) else { return };
        sides.swap_remove(index)
    };
    let mut queue = side.queue;
    let gulp = queue.take_all();
    // SAFETY: the queue is ours now, and nothing in it was delivered.
    unsafe { give_back(directory::get(word.mailbox()), gulp, side.messages) };
}
