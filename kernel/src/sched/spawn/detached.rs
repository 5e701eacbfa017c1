//! The process that stands for a detached piece of a resident's work.
//!
//! It begins its life suspended on a lent stack, so its `step` is never called; it ends when the
//! piece returns.

use alloc::boxed::Box;
use core::ptr::NonNull;

use crate::arch::CoreId;
use crate::sched::cores::{ThisCore, population};
use crate::sched::process::{AtWork, Detached, EndOfPiece, Header, PieceNow, Runnable, Step, VTable};
use crate::watch::Exit;

#[repr(C)]
struct DetachedProcess {
    header: Header,
    /// Until the piece has ended: somebody may refer to the process for longer. Absent in a [`Reservation`], too.
    token: Option<Box<dyn Detached>>,
}

static VTABLE: VTable = VTable {
    name: || "a suspended behaviour",
    step,
    cancel: Some(step),
    crash,
    piece: Some(piece),
    free,
    detach: None,
    is_to_end: Some(is_to_end),
    at_work: Some(at_work),
};

/// # Safety
/// The contract of [`VTable::step`].
unsafe fn step(_header: NonNull<Header>) -> Step {
    panic!("a detached piece was given a turn: it was overwritten")
}

/// # Safety
/// The contract of [`VTable::crash`].
unsafe fn crash(header: NonNull<Header>, exit: Exit) {
    // SAFETY: as below; nothing of the piece runs any more.
    if let Some(token) = unsafe { take_token(header) } {
        token.crashed(exit);
    }
}

/// # Safety
/// The contract of [`VTable::piece`].
unsafe fn piece(header: NonNull<Header>, now: PieceNow) {
    // SAFETY: this table is used for detached pieces only. By contract the core's loop has this one in hand.
    let Some(token) = (unsafe { token(header) }) else { return };
    match now {
        PieceNow::GoesOn => token.goes_on(),
        PieceNow::Stops | PieceNow::Ends => token.stops(),
    }
    if now == PieceNow::Ends {
        // SAFETY: by contract.
        drop(unsafe { take_token(header) });
    }
}

/// What stands for the piece, until that has ended.
///
/// # Safety
/// The header is that of a detached piece, which is alive, and the caller's turn or in its hand.
unsafe fn token<'a>(header: NonNull<Header>) -> Option<&'a dyn Detached> {
    // SAFETY: by contract.
    unsafe { header.cast::<DetachedProcess>().as_ref() }.token.as_deref()
}

/// What stands for the piece, which has ended.
///
/// # Safety
/// The header is that of a detached piece, and alive; its turn is over, so no interrupt in it asks the token anything.
unsafe fn take_token(header: NonNull<Header>) -> Option<Box<dyn Detached>> {
    // SAFETY: by contract. Who refers to the process from elsewhere has no access to the token.
    unsafe { (*header.cast::<DetachedProcess>().as_ptr()).token.take() }
}

/// # Safety
/// The contract of [`VTable::is_to_end`].
unsafe fn is_to_end(header: NonNull<Header>, asked: EndOfPiece) -> bool {
    // SAFETY: this table is used for detached pieces only, which are alive while they run.
    unsafe { token(header) }.is_some_and(|token| token.is_to_end(asked))
}

/// # Safety
/// The contract of [`VTable::at_work`].
unsafe fn at_work(header: NonNull<Header>) -> Option<AtWork> {
    // SAFETY: as in `is_to_end`.
    unsafe { token(header) }?.at_work()
}

/// # Safety
/// The contract of [`VTable::free`].
unsafe fn free(header: NonNull<Header>) {
    // SAFETY: the process was boxed in `Reservation`, and the last reference is gone.
    drop(unsafe { Box::from_raw(header.cast::<DetachedProcess>().as_ptr()) });
}

/// A record made before the piece is handed over, so that handing over cannot fail for lack of memory.
pub(crate) struct Reservation(Box<DetachedProcess>);

impl Reservation {
    /// Memory for one record, of a piece of that process: as urgent, and due when that is.
    pub(crate) fn new(of: &Header, home: CoreId) -> Option<Self> {
        let deadline = match of.kept_deadline() {
            Some(deadline) => Some(deadline.try_clone()?),
            None => None,
        };
        let header = Header::new(&VTABLE, of.priority(), u64::MAX, home)
            .with_deadline(deadline)
            .with_limits(0, of.share().cloned());
        header.run_state().mark_running();
        crate::mem::kernel_box(DetachedProcess { header, token: None }).ok().map(Self)
    }

    /// The process of the piece that `token` stands for.
    pub(crate) fn fill(mut self, token: Box<dyn Detached>, core: &ThisCore<'_>) -> Runnable {
        let affinity = token.affinity();
        self.0.header.set_affinity(affinity);
        self.0.token = Some(token);
        population::count_detached(affinity, core);
        // SAFETY: just made, with the scheduler's reference.
        unsafe { Runnable::new(NonNull::from(Box::leak(self.0)).cast()) }
    }
}
