//! Sending: from a target and a message to an envelope in a mailbox.
//!
//! The common path, inlined into the sender, is one step with regard to preemption. Where the mailbox is in hand on this core the message is
//! appended there (`arch/append`). Where something waits in its queue already: lock the mailbox, read the actor's word, compare the room,
//! write the envelope, count it, unlock (`arch/locked_append`). Everything else (a first message, a long one, a lock that is held, a queue
//! that must grow, that is closed or bounded) is out of line and starts again from the lock, with preemption disabled.
//!
//! Whoever makes an empty mailbox non-empty must see to it that its worker looks: see `mail/owner_hint.rs`.

mod in_loop;
mod room;

use core::mem::{self, ManuallyDrop, MaybeUninit};
use core::ptr::{self, NonNull};

pub(super) use self::in_loop::{send_at_once, send_dropping_nothing};
pub(super) use self::room::grow;
use self::room::room_in_hand;
use super::mail::envelope::{self, Deliver, Inline, Packed, Target};
use super::mail::mailbox::Locked;
use super::mail::oldest::Stays;
use super::mail::{Mailbox, WhenFull, directory, oldest};
use super::run::{self, ExecutorState};
use super::storage::{CellRef, Word};
use crate::arch::{append, locked_append};
use crate::message::{Message, SendError};
use crate::sched;
use crate::sync::PreemptGuard;
use crate::trace::{self, Kind};

/// Sends a message.
#[inline(always)]
pub(super) fn send<M: Message>(target: Target<M>, message: M) -> Result<(), SendError<M>> {
    if const { envelope::is_boxed::<M>() } {
        // Before there is a box: else whoever writes the message looks.
        if !target.cell.word_relaxed().is_same_actor(target.word) {
            return Err(SendError::Ended(message));
        }
        match envelope::pack_boxed(message) {
            // SAFETY: a box, as the message is one that is boxed; not used again, nor dropped.
            Ok(boxed) => unsafe { send_packed(target, &raw const *ManuallyDrop::new(boxed)) },
            Err(message) => Err(SendError::OutOfMemory(message)),
        }
    } else {
        if !append::EXISTS {
            let message = ManuallyDrop::new(Inline(message));
            // SAFETY: no box, as the message is one that is not boxed; it is not used again, nor dropped.
            return unsafe { send_packed(target, &raw const *message) };
        }
        // From where it is: packed first, a long message would be copied once more. Nothing unwinds here, so it is not dropped before
        // it is forgotten.
        let at = (&raw const message).cast::<Inline<M>>();
        // SAFETY: as above.
        let sent = unsafe { send_packed(target, at) };
        mem::forget(message);
        sent
    }
}

/// # Safety
/// The message is boxed if, and only if, [`envelope::is_boxed`]. What is at `packed` is not used again, nor dropped.
#[inline(always)]
unsafe fn send_packed<M: Message, P: Packed<M>>(
    target: Target<M>,
    packed: *const P,
) -> Result<(), SendError<M>> {
    let mailbox = directory::get(target.word.mailbox());
    let (cell, word, deliver) = (target.cell, target.word, target.deliver());
    let none_waits = mailbox.waiting() == 0;
    if append::EXISTS && none_waits {
        // What goes into this core's hand is charged when it is delivered.
        // SAFETY: promised by the caller.
        if unsafe { append_in_hand(mailbox, target, packed) } {
            return Ok(());
        }
        // SAFETY: promised by the caller.
        return unsafe {
            if is_long::<M>() {
                send_first(mailbox, cell, word, deliver, packed)
            } else {
                send_first_short(mailbox, cell, word, deliver, ptr::read(packed))
            }
        };
    }
    if append::EXISTS && const { !is_long::<M>() } {
        // SAFETY: promised by the caller; if it is appended the message is not used again, nor dropped.
        return unsafe {
            if append_locked(mailbox, target, packed) {
                return Ok(());
            }
            send_slowly_short(mailbox, cell, word, deliver, ptr::read(packed))
        };
    }
    // SAFETY: promised by the caller; if it is written the message is not used again, nor dropped.
    if unsafe { write_at_once(mailbox, none_waits, target, packed) } {
        return Ok(());
    }
    // The target in its parts: or the compiler would keep it in memory on the common path too, for its address would be handed over
    // here.
    // SAFETY: promised by the caller.
    unsafe { apart(packed, |packed| send_slowly(mailbox, cell, word, deliver, packed, Gives::ByRule)) }
}

/// Whether messages are too long to be kept in registers.
const fn is_long<M>() -> bool {
    envelope::size_of_envelope::<M>() > append::MOST_WORDS * size_of::<u64>()
}

/// Hands over the address of what is at `packed`: of a copy, if it is short, or the compiler would keep it in memory on the common path too.
///
/// # Safety
/// What is at `packed` is valid, and not used again but by `take`.
#[inline(always)]
unsafe fn apart<M: Message, P: Packed<M>, R>(packed: *const P, take: impl FnOnce(*const P) -> R) -> R {
    if is_long::<M>() {
        take(packed)
    } else {
        // SAFETY: by contract.
        let copy = ManuallyDrop::new(unsafe { ptr::read(packed) });
        take(&raw const *copy)
    }
}

/// A message to a mailbox in whose queue nothing waits, and which was not appended at once. Out of line, because the
/// common path is shorter where nothing else needs registers.
///
/// # Safety
/// As [`send_slowly`].
#[inline(never)]
unsafe fn send_first<M: Message, P: Packed<M>>(
    mailbox: &'static Mailbox,
    cell: CellRef,
    word: Word,
    deliver: Deliver,
    packed: *const P,
) -> Result<(), SendError<M>> {
    // SAFETY: promised by the caller.
    unsafe { write_or_send_slowly(mailbox, cell, word, deliver, packed) }
}

/// As [`send_first`], for a message that comes in registers.
///
/// # Safety
/// As [`send_slowly`].
#[inline(never)]
unsafe fn send_first_short<M: Message, P: Packed<M>>(
    mailbox: &'static Mailbox,
    cell: CellRef,
    word: Word,
    deliver: Deliver,
    packed: P,
) -> Result<(), SendError<M>> {
    let packed = ManuallyDrop::new(packed);
    // SAFETY: promised by the caller; it is not used again, nor dropped.
    unsafe { write_or_send_slowly(mailbox, cell, word, deliver, &raw const *packed) }
}

/// As [`send_slowly`], for a message that comes in registers.
///
/// # Safety
/// As [`send_slowly`].
#[cold]
#[inline(never)]
unsafe fn send_slowly_short<M: Message, P: Packed<M>>(
    mailbox: &'static Mailbox,
    cell: CellRef,
    word: Word,
    deliver: Deliver,
    packed: P,
) -> Result<(), SendError<M>> {
    let packed = ManuallyDrop::new(packed);
    // SAFETY: promised by the caller; it is not used again, nor dropped.
    unsafe { send_slowly(mailbox, cell, word, deliver, &raw const *packed, Gives::ByRule) }
}

/// # Safety
/// As [`send_slowly`].
#[inline(always)]
unsafe fn write_or_send_slowly<M: Message, P: Packed<M>>(
    mailbox: &'static Mailbox,
    cell: CellRef,
    word: Word,
    deliver: Deliver,
    packed: *const P,
) -> Result<(), SendError<M>> {
    // SAFETY: promised by the caller; if it is written the message is not used again, nor dropped.
    unsafe {
        let none_waits = mailbox.waiting() == 0;
        if write_at_once(mailbox, none_waits, Target::from_parts(cell, word, deliver), packed) {
            return Ok(());
        }
        apart(packed, |packed| send_slowly(mailbox, cell, word, deliver, packed, Gives::ByRule))
    }
}

/// Writes the message at `packed` where its target's mailbox has room for it at once, and tells its worker, if its actor is attached.
/// Otherwise it stays where it is. Whether it was written. The caller has seen nothing wait in the queue if `none_waits`.
///
/// # Safety
/// As [`send_packed`]. If the message is written, that at `packed` is not used again, nor dropped.
#[inline(always)]
unsafe fn write_at_once<M: Message, P: Packed<M>>(
    mailbox: &'static Mailbox,
    none_waits: bool,
    target: Target<M>,
    packed: *const P,
) -> bool {
    let bytes = const { envelope::size_of_envelope::<M>() };
    let here = PreemptGuard::new();
    // Here and below the acquire is for who delivers it without a look of its own (`mail/hand/checks.rs`).
    if none_waits {
        if target.cell.word() != target.word {
            return false;
        }
        if let Some(place) = mailbox.hand.reserve_at_rest(bytes, &here) {
            // SAFETY: so many bytes were reserved, aligned, and the rest is promised by the caller.
            unsafe { envelope::write(place, target, packed) };
            mailbox.hand.wake(mailbox, &here);
            return true;
        }
        let place = mailbox.hand.reserve(bytes, &here);
        let is_full = place.is_none() && mailbox.hand.is_here(&here);
        if is_full && !run::make_room_in_lane(mailbox, bytes, &here) {
            return false;
        }
        if let Some(place) = if is_full { mailbox.hand.reserve(bytes, &here) } else { place } {
            // SAFETY: as above.
            unsafe { envelope::write(place, target, packed) };
            return true;
        }
    }
    sched::charge(1);
    let mut inside = mailbox.inside.lock_here(here);
    // With the lock: for mail that was taken out before, this has not been in time to be counted in.
    if target.cell.word() != target.word {
        drop(inside);
        return false;
    }
    let Some(place) = inside.queue.reserve_plain(bytes) else {
        drop(inside);
        return false;
    };
    // SAFETY: the queue reserved that many bytes, aligned; the rest is promised by the caller.
    unsafe { envelope::write(place, target, packed) };
    count(mailbox, inside, (target.cell, target.word));
    true
}

/// Appends a message to what this core's worker has in hand of the mailbox, without a preemption guard, if it has
/// something and the actor is attached. The caller has seen nothing wait in the queue.
///
/// # Safety
/// As [`write_at_once`].
#[inline(always)]
unsafe fn append_in_hand<M: Message, P: Packed<M>>(
    mailbox: &Mailbox,
    target: Target<M>,
    packed: *const P,
) -> bool {
    let base = ptr::from_ref(mailbox).cast();
    let attached = (target.cell.word_cell().atomic(), target.word.bits());
    if is_long::<M>() {
        // SAFETY: a mailbox's gate lies there; whoever opens it keeps its contract; the caller has the message.
        return unsafe {
            append::append_block::<_, { Mailbox::GATE_AT }>(base, target.head(), packed, attached)
        };
    }
    // SAFETY: promised by the caller.
    let words = unsafe { words(target, packed) };
    let count = const { envelope::size_of_envelope::<M>() / size_of::<u64>() };
    // SAFETY: a mailbox's gate lies there; whoever opens it keeps its contract.
    unsafe {
        match count {
            3 => append::append::<3, { Mailbox::GATE_AT }>(base, &words, attached),
            4 => append::append::<4, { Mailbox::GATE_AT }>(base, &words, attached),
            5 => append::append::<5, { Mailbox::GATE_AT }>(base, &words, attached),
            6 => append::append::<6, { Mailbox::GATE_AT }>(base, &words, attached),
            _ => append::append::<7, { Mailbox::GATE_AT }>(base, &words, attached),
        }
    }
}

/// Appends a message that is not long to the mailbox's queue, without a preemption guard, if its lock is free, the actor attached, and there is
/// room without a second look: so only where something waits. It is charged, whether that is so or not.
///
/// # Safety
/// As [`write_at_once`].
#[inline(always)]
unsafe fn append_locked<M: Message, P: Packed<M>>(
    mailbox: &Mailbox,
    target: Target<M>,
    packed: *const P,
) -> bool {
    let queue = ptr::from_ref(mailbox).cast();
    let attached = (target.cell.word_cell().atomic(), target.word.bits());
    // SAFETY: promised by the caller.
    let words = unsafe { words(target, packed) };
    let count = const { envelope::size_of_envelope::<M>() / size_of::<u64>() };
    // SAFETY: a mailbox begins with such a queue.
    unsafe {
        match count {
            3 => locked_append::append::<3>(queue, &words, attached),
            4 => locked_append::append::<4>(queue, &words, attached),
            5 => locked_append::append::<5>(queue, &words, attached),
            6 => locked_append::append::<6>(queue, &words, attached),
            _ => locked_append::append::<7>(queue, &words, attached),
        }
    }
}

/// The envelope of a message that is not long.
///
/// # Safety
/// As [`write_at_once`].
#[inline(always)]
unsafe fn words<M: Message, P: Packed<M>>(target: Target<M>, packed: *const P) -> append::Words {
    let mut words: append::Words = [const { MaybeUninit::uninit() }; append::MOST_WORDS];
    // SAFETY: the words have room for the envelope, and are aligned; the rest is promised by the caller.
    unsafe { envelope::write(NonNull::from(&mut words).cast(), target, packed) };
    words
}

/// Counts the envelope that was written for the actor with this word in its cell, and wakes the mailbox's worker if it was the first one.
#[inline(always)]
pub(super) fn count(mailbox: &Mailbox, inside: Locked<'_>, actor: (CellRef, Word)) {
    let before = mailbox.waiting();
    if before == 0 {
        debug_assert!(!inside.queue.admits(), "a queue admits more, and nobody was told of the first");
        return count_first(mailbox, inside, actor);
    }
    mailbox.set_waiting(before + 1);
    drop(inside);
}

/// The first message: the mailbox is taken in hand here, or its worker is told.
#[inline(never)]
fn count_first(mailbox: &Mailbox, mut inside: Locked<'_>, actor: (CellRef, Word)) {
    mailbox.note_first();
    // While the lock is held the mailbox stays open, and so the executor alive.
    // SAFETY: the mailbox is open, as whoever wrote the message has seen; it cannot be closed while the lock is held.
    let executor = unsafe { ExecutorState::of(mailbox) };
    let (data, here) = inside.parts();
    if executor.take_in_hand(mailbox, data, actor, here) {
        return;
    }
    data.queue.admit();
    mailbox.set_waiting(1);
    run::leave_lane(mailbox, inside.preempt());
    if !mailbox.hand.wake_from_rest(mailbox, inside.preempt()) {
        trace::note_if_on(Kind::Sent, ptr::from_ref(mailbox).addr() as u64, 0, None);
        executor.notify(mailbox, inside.preempt());
    }
}

/// What a full mailbox's bound says, and whether the sender may let it drop what the application has made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Gives {
    /// As the bound says.
    ByRule,
    /// The new message up, to the sender.
    Up,
}

/// The actor has ended or is detached, or the queue is closed, bounded or full, or somebody else has its lock. It was charged, if it was about to be written.
///
/// # Safety
/// As [`send_packed`], and the function is that of a target for messages of type `M`. What is at `packed` is valid.
#[cold]
#[inline(never)]
unsafe fn send_slowly<M: Message, P: Packed<M>>(
    mailbox: &Mailbox,
    cell: CellRef,
    word: Word,
    deliver: Deliver,
    packed: *const P,
    gives: Gives,
) -> Result<(), SendError<M>> {
    // SAFETY: taken apart by the caller.
    let target = unsafe { Target::from_parts(cell, word, deliver) };
    let bytes = const { envelope::size_of_envelope::<M>() };
    if cell.word_relaxed().is_same_actor(word)
        && let Some((place, is_first, here)) = room_in_hand(mailbox, bytes)
    {
        // SAFETY: so many bytes were reserved, aligned, and the rest is promised by the caller.
        unsafe { envelope::write(place, target, packed) };
        // As in `write_at_once`.
        if cell.word() != word {
            mailbox.hand.note_unchecked(&here);
        }
        if is_first {
            mailbox.hand.wake(mailbox, &here);
        }
        return Ok(());
    }
    // SAFETY: it was not written, and from here on it is used here alone.
    let packed = unsafe { ptr::read(packed) };
    if !cell.word_relaxed().is_same_actor(word) {
        return Err(SendError::Ended(packed.unpack()));
    }
    loop {
        let mut inside = mailbox.inside.lock();
        if inside.closed {
            drop(inside);
            return Err(SendError::Ended(packed.unpack()));
        }
        let aside = if inside.bound.is_of_one() {
            // The mailbox may be another's since we looked; who takes its lock after that sees here that it is.
            if !cell.word_relaxed().is_same_actor(word) {
                drop(inside);
                return Err(SendError::Ended(packed.unpack()));
            }
            run::messages_aside(cell, word)
        } else {
            0
        };
        match inside.bound.exceeded_by(mailbox.waiting().saturating_add(aside)) {
            None => {}
            Some(refused) => {
                let forgotten = match refused {
                    WhenFull::DropOldest if gives == Gives::ByRule && aside > 0 => {
                        drop(inside);
                        run::forget_oldest(cell, word)
                    }
                    // With the lock that this was seen under: afterwards there may be room, or the mailbox be another actor's.
                    WhenFull::DropOldest if gives == Gives::ByRule => oldest::forget(mailbox, inside),
                    WhenFull::DropNewest if gives == Gives::ByRule => {
                        drop(inside);
                        Err(Stays)
                    }
                    WhenFull::Refuse | WhenFull::DropNewest | WhenFull::DropOldest => {
                        drop(inside);
                        return Err(SendError::Full(packed.unpack()));
                    }
                };
                if forgotten == Err(Stays) {
                    drop(packed);
                    return Ok(());
                }
                // There is room by now, or less is in the way.
                continue;
            }
        }
        if let Some(place) = inside.queue.reserve(bytes) {
            // As in `write_at_once`.
            if cell.word() != word {
                inside.queue.note_unchecked();
            }
            let packed = ManuallyDrop::new(packed);
            // SAFETY: the queue reserved that many bytes, aligned; the rest is promised by the caller.
            unsafe { envelope::write(place, target, &raw const *packed) };
            count(mailbox, inside, (cell, word));
            return Ok(());
        }
        let capacity = inside.queue.next_capacity_bytes(bytes);
        drop(inside);
        if !grow(mailbox, bytes, capacity) {
            return Err(SendError::OutOfMemory(packed.unpack()));
        }
    }
}
