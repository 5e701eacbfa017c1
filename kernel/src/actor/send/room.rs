//! How a mailbox gets room for a message where it has none: by a segment that its sender makes, or, with memory used up, by one that is kept
//! for something else.
//!
//! Segments are made with preemption enabled and under no lock. How long they are is decided in `mail/growth.rs`.

use core::ptr::NonNull;

use crate::actor::mail::{Mailbox, Room, Segment};
use crate::actor::run::{self, ExecutorState};
use crate::sync::PreemptGuard;

/// Room for `bytes` in hand, if the mailbox is in hand on this core and nothing waits in its queue, and whether it rests there.
/// If there is no memory the queue may have room still, and comes behind what is in hand.
pub(super) fn room_in_hand(mailbox: &Mailbox, bytes: usize) -> Option<(NonNull<u8>, bool, PreemptGuard)> {
    let mut fresh = None;
    let room = loop {
        let here = PreemptGuard::new();
        if mailbox.waiting() > 0 {
            break None;
        }
        match mailbox.hand.make_room(bytes, &mut fresh, &here) {
            Room::At { place, is_first } => break Some((place, is_first, here)),
            Room::Elsewhere => break None,
            Room::InLane => run::leave_lane(mailbox, &here),
            Room::Needs(capacity) => {
                // Allocated with preemption enabled; then this may be another core, and the mailbox in other hands.
                drop(here);
                fresh = make_segment(mailbox, bytes, capacity);
                if fresh.is_none() {
                    break None;
                }
            }
        }
    };
    if let Some(segment) = fresh {
        keep_for_next(mailbox, segment);
    }
    room
}

/// Makes a segment for a mailbox with room for `bytes`: one of `capacity`, unless somebody else makes a long one or memory is short.
fn make_segment(mailbox: &Mailbox, bytes: usize, capacity: usize) -> Option<NonNull<Segment>> {
    let made_bytes = mailbox.growth.begin(capacity).max(bytes);
    let segment = Segment::new(made_bytes);
    mailbox.growth.end(made_bytes);
    // With little memory left a smaller one may still do.
    segment.or_else(|| Segment::new(bytes))
}

/// A segment was made, which may have taken longer than a slice, and is not needed any more: the mailbox keeps it where that is possible, or each
/// message would make another one.
#[cold]
#[inline(never)]
fn keep_for_next(mailbox: &Mailbox, segment: NonNull<Segment>) {
    let inside = mailbox.inside.lock();
    // While the lock is held the mailbox stays open, and so the executor alive.
    // SAFETY: the mailbox is open; the segment was just made.
    let is_short = || unsafe { segment.as_ref().capacity_bytes() < ExecutorState::of(mailbox).segment_bytes };
    let unused = if !inside.closed && mailbox.may_keep_spare(inside.preempt()) && !is_short() {
        // SAFETY: just made, empty, and given up.
        unsafe { mailbox.hand.exchange_for_larger(segment) }
    } else {
        Some(segment)
    };
    drop(inside);
    if let Some(segment) = unused {
        // SAFETY: empty, and nobody else has it.
        unsafe { Segment::free(segment) };
    }
}

/// There is no memory for another segment: gives a mailbox one with room for `bytes` that is kept for something else: by itself for the next time that it is taken in hand, or by this core's
/// worker. Whether there was one. Who is to have an empty segment later, and finds none, makes one or waits until there is memory.
#[cold]
#[inline(never)]
fn grow_by_spare(mailbox: &Mailbox, bytes: usize) -> bool {
    let mut inside = mailbox.inside.lock();
    if inside.closed || inside.queue.has_room(bytes) {
        return true;
    }
    let here = inside.preempt();
    let spare = if mailbox.may_keep_spare(here) { mailbox.hand.take_spare_of(bytes) } else { None };
    let Some(segment) = spare.or_else(|| run::take_of_worker(mailbox, bytes, here)) else { return false };
    inside.queue.extend(segment);
    inside.most_bytes = inside.most_bytes.max(inside.queue.capacity_bytes());
    true
}

/// Gives a mailbox another segment with room for `bytes`, allocated outside its lock. Whether it could.
pub(in crate::actor) fn grow(mailbox: &Mailbox, bytes: usize, capacity: usize) -> bool {
    let Some(segment) = make_segment(mailbox, bytes, capacity) else { return grow_by_spare(mailbox, bytes) };
    let mut inside = mailbox.inside.lock();
    // Another sender, or a gulp, may have made room meanwhile; or the executor has stopped.
    if inside.closed || inside.queue.has_room(bytes) {
        drop(inside);
        // SAFETY: just made, and empty.
        unsafe { Segment::free(segment) };
    } else {
        inside.queue.extend(segment);
        inside.most_bytes = inside.most_bytes.max(inside.queue.capacity_bytes());
    }
    true
}
