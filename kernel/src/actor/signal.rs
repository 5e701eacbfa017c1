//! Signals: messages that an interrupt sends.
//!
//! An interrupt's handler may have interrupted whoever holds a mailbox's lock, so it sends nothing itself: it raises a signal, and
//! its core's loop sends, right after the interrupt (`sched/cores/raised.rs`). Who is told, and what, was said before; the message is copied, so
//! it must be `Copy`, because a clone would be the application's code.
//!
//! A signal that is raised again before its message was sent is sent once. So a storm of interrupts takes no memory and keeps nobody
//! from working: between two messages of a signal its core's loop goes on.

use core::fmt;
use core::ptr::NonNull;

use super::recipient::Recipient;
use crate::arch::atomic::{AtomicU32, Ordering};
use crate::message::{Message, SendError};
use crate::sched::Raisable;
use crate::sync::SpinLock;

/// A message that an interrupt sends to an actor, without a process in between.
///
/// What a driver has in a `static`: its actor says with [`send_to`](Self::send_to) what is to be sent to whom, and the handler of the
/// device's interrupt calls [`raise`](Self::raise) when it has quietened the device.
///
/// ```
/// # use magpie::sched;
/// use magpie::actor::{Actor, Config, Context, Executor, Hook, Receive, Signal};
///
/// /// A byte, or several, have arrived.
/// #[derive(Clone, Copy)]
/// struct Arrived;
///
/// static LINE: Signal<Arrived> = Signal::new();
///
/// /// The handler: it masks the device's interrupt, and says so.
/// fn on_interrupt() {
///     LINE.raise();
/// }
///
/// struct Port;
/// impl Actor for Port {
///     fn started() -> Option<Hook<Self>> {
///         Some(|_, context| LINE.send_to(context.address().recipient(), Arrived))
///     }
/// }
/// impl Receive<Arrived> for Port {
///     type Reply = ();
///
///     fn receive(&mut self, _: Arrived, context: &mut Context<Self>) {
///         // Here it would take what has arrived, and unmask the device's interrupt.
///         context.end();
///     }
/// }
/// # sched::run_on_threads(2, 1, async {
/// let executor = Executor::start(&Config::default())?;
/// executor.handle().spawn(Port)?;
/// # while !LINE.has_recipient() { sched::yield_now().await }
/// # on_interrupt();
/// executor.all_ended().await;
/// // The next one finds that nobody is there.
/// on_interrupt();
/// assert!(!LINE.has_recipient());
/// LINE.send_to_nobody();
/// assert_eq!(LINE.missed(), 0);
/// # executor.stop().await;
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// # }).unwrap().unwrap();
/// ```
///
/// - *Raised again* before the message was sent, it is sent once: whoever receives it looks at the device, not at how often it came. Each
///   time for which no message was sent is counted by [`missed`](Self::missed).
/// - *If the mailbox is full*, or there is no memory for it, the message is left out and counted likewise, whatever the mailbox's rule for
///   that is. The handler never waits.
/// - *When the actor has ended*, or crashed, nobody is told any more: [`has_recipient`](Self::has_recipient) says so after the next time.
/// - *An urgent actor*, one of an executor of priority `Max` or `High`, gets it at once, by a preemption of what is less urgent.
///   Another gets it when the turn is over that was interrupted, as any message.
/// - *It is no work:* while an interrupt is expected, keep an [`ExternalSource`](crate::sched::ExternalSource).
#[repr(C)]
pub struct Signal<M> {
    /// First, so that the whole is found by its address.
    raisable: Raisable,
    missed: AtomicU32,
    told: SpinLock<Told<M>>,
}

/// Who is told, and what.
struct Told<M> {
    who: Option<(Recipient<M>, M)>,
    /// How often that was changed: who finds that an actor has ended forgets that one, and not the next.
    changes: u64,
}

impl<M> Signal<M> {
    /// A signal that nobody is told of yet.
    pub const fn new() -> Self
    where
        M: Message + Copy,
    {
        Self {
            raisable: Raisable::new(Self::send),
            missed: AtomicU32::new(0),
            told: SpinLock::new(Told { who: None, changes: 0 }),
        }
    }
}

impl<M: Message + Copy> Signal<M> {
    /// From now on `message` is sent to `recipient`, and to nobody who was told before, unless that is being done at this very moment.
    pub fn send_to(&self, recipient: Recipient<M>, message: M) {
        let mut told = self.told.lock();
        *told = Told { who: Some((recipient, message)), changes: told.changes + 1 };
        self.raisable.set_urgent(recipient.is_urgent());
    }

    /// From now on nobody is told, unless that is being done at this very moment.
    pub fn send_to_nobody(&self) {
        let mut told = self.told.lock();
        *told = Told { who: None, changes: told.changes + 1 };
    }

    /// Whether anybody is told. That an actor has ended is found out when it should have been told.
    pub fn has_recipient(&self) -> bool {
        self.told.lock().who.is_some()
    }

    /// Sends the message. In an interrupt's handler this notes only that it is to be sent, and the core sends it right after; elsewhere it is sent
    /// by the caller. It takes a few instructions, and never waits. While nobody is told it does nothing.
    pub fn raise(&'static self) {
        if self.raisable.raise() {
            self.note_missed();
        }
    }

    /// How often it was raised, or tried to be sent, and no message of its own was: at most 2^32 - 1 are counted.
    pub fn missed(&self) -> u32 {
        // Relaxed: a statistic.
        self.missed.load(Ordering::Relaxed)
    }

    /// What an interrupt raises for it.
    pub(crate) fn raisable(&'static self) -> &'static Raisable {
        &self.raisable
    }

    fn note_missed(&self) {
        // Relaxed: a statistic. It stays at the most that can be counted.
        let _ =
            self.missed.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |missed| missed.checked_add(1));
    }

    /// # Safety
    /// The first part of a whole signal for messages of this type.
    unsafe fn send(raisable: NonNull<Raisable>) {
        // SAFETY: by contract, and it is the first field of a type with a fixed layout.
        let this = unsafe { raisable.cast::<Self>().as_ref() };
        // Copied, so that no lock is held while it is sent.
        let (who, changes) = {
            let told = this.told.lock();
            (told.who, told.changes)
        };
        let Some((recipient, message)) = who else { return };
        match recipient.send_dropping_nothing(message) {
            Ok(()) => {}
            Err(SendError::Full(_) | SendError::OutOfMemory(_)) => this.note_missed(),
            Err(SendError::Ended(_)) => {
                let mut told = this.told.lock();
                if told.changes == changes {
                    told.who = None;
                }
            }
        }
    }
}

impl<M: Message + Copy> Default for Signal<M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<M> fmt::Debug for Signal<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Relaxed: a statistic.
        write!(f, "Signal({} missed)", self.missed.load(Ordering::Relaxed))
    }
}
