//! Messages that are sent later: timers as messages.
//!
//! The message waits in a delayed call of the timer queue, not in the mailbox, and counts as work there. When its
//! time has come the core whose queue it is in sends it like any other. It is then handled, or dropped in a
//! process of its own; or it was taken back before: one of these, once.
//!
//! Where it goes is known to those alone who send it: the functions `send_after` in `actor` and `channel`.

use core::fmt;
use core::time::Duration;

use super::{Message, SendError};
use crate::sched::{Later, Waiting};

/// A message that waits for its moment, to whomever it goes. Dropping this lets it go on.
///
/// ```
/// use core::time::Duration;
/// use magpie::actor::Recipient;
/// use magpie::channel::ProcessAddr;
/// use magpie::message::{SendAfter, SendError};
///
/// fn warn(guard: Recipient<u32>, clerk: ProcessAddr<u32>) -> Result<(), SendError<u32>> {
///     const AN_HOUR: Duration = Duration::from_secs(3600);
///     let alarms: [SendAfter<u32>; 2] = [guard.send_after(AN_HOUR, 1)?, clerk.send_after(AN_HOUR, 2)?];
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
    pub(crate) fn set(delay: Duration, waiting: impl Waiting<Taken = M>) -> Result<Self, SendError<M>> {
        Later::set(delay, waiting).map(Self).map_err(|(_, waiting)| match waiting.taken_back() {
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
