//! Messages that are sent later: timers as messages.
//!
//! The message waits in a delayed call of the timer queue, not in the mailbox, and counts as work there. When its
//! time has come the core whose queue it is in sends it like any other. It is then handled, or dropped in a
//! process of its own; or it was taken back before: one of these, once.
//!
//! Where it goes is known to those alone who send it: the functions `send_after` and `send_at` in `actor` and `channel`. What is sent
//! again and again is in `send_interval.rs`.

use core::fmt;

use super::{Message, SendError};
use crate::sched::{Later, Waiting};
use crate::time::Instant;

/// A message that waits for its moment, to whomever it goes. Dropping this lets it go on.
///
/// ```
/// use core::time::Duration;
/// use magpie::actor::Recipient;
/// use magpie::channel::ProcessAddr;
/// use magpie::message::{SendAfter, SendError};
/// use magpie::time::Instant;
///
/// fn warn(guard: Recipient<u32>, clerk: ProcessAddr<u32>) -> Result<(), SendError<u32>> {
///     const AN_HOUR: Duration = Duration::from_secs(3600);
///     let later = Instant::now() + AN_HOUR;
///     let alarms: [SendAfter<u32>; 4] = [
///         guard.send_after(AN_HOUR, 1)?,
///         guard.send_at(later, 2)?,
///         clerk.send_after(AN_HOUR, 3)?,
///         clerk.send_at(later, 4)?,
///     ];
///     for alarm in alarms {
///         if alarm.is_pending() {
///             // Nothing, if it was sent at this very moment.
///             let _taken_back: Option<u32> = alarm.cancel();
///         }
///     }
///     Ok(())
/// }
/// ```
pub struct SendAfter<M>(Later<M>);

impl<M: Message> SendAfter<M> {
    /// Lets a message wait with the way that it goes.
    ///
    /// # Errors
    /// [`SendError::OutOfMemory`], with the message.
    pub(crate) fn set(moment: Instant, waiting: impl Waiting<Taken = M>) -> Result<Self, SendError<M>> {
        Later::set(moment, waiting).map(Self).map_err(|(_, waiting)| match waiting.taken_back() {
            Some(message) => SendError::OutOfMemory(message),
            None => unreachable!("what was not kept came back without its message"),
        })
    }

    /// Takes the message back; `None` if it was sent already.
    pub fn cancel(self) -> Option<M> {
        self.0.cancel()
    }

    /// Whether the message still waits; it may be sent at any moment.
    pub fn is_pending(&self) -> bool {
        self.0.is_pending()
    }
}

impl<M: Message> fmt::Debug for SendAfter<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_pending() { "SendAfter(pending)" } else { "SendAfter(sent)" })
    }
}
