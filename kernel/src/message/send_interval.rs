//! Messages that are sent again and again, at equal distances.
//!
//! One timer is armed for all, and the message is copied where it waits: so only what may be copied without asking the application
//! (`Copy`) is sent so, by the core's own loop, and a period takes no memory but a place in the mailbox. What is due never waits
//! for such a place, because the next message follows: it is left out, and counted.
//!
//! Where it goes is known to those alone who send it: the functions `send_interval` in `actor` and `channel`.

use core::fmt;
use core::time::Duration;

use super::{Message, SendError};
use crate::sched::{Outcome, Repeat, Repeating};
use crate::time::{Instant, Schedule};

/// A message that is sent again and again, to whomever it goes. Dropping this lets it go on, until nobody can receive it any
/// more; it counts as work as long.
///
/// Each time is one period after the one before, however late that was. A time is left out, and counted, when the next has
/// come before it was noticed, and when there was no room in the mailbox.
///
/// ```
/// # use magpie::sched;
/// use core::time::Duration;
/// use magpie::actor::Recipient;
/// use magpie::channel::{ProcessAddr, ProcessMailbox};
/// use magpie::message::{SendError, SendInterval};
///
/// fn beat(heart: Recipient<u32>, clerk: &ProcessAddr<u32>) -> Result<[SendInterval; 2], SendError<u32>> {
///     const A_MINUTE: Duration = Duration::from_secs(60);
///     Ok([heart.send_interval(A_MINUTE, 1)?, clerk.send_interval(A_MINUTE, 2)?])
/// }
///
/// # sched::run_on_threads(2, 1, async {
/// let mut mailbox = ProcessMailbox::new(10)?;
/// let ticks = mailbox.address().send_interval(Duration::from_millis(1), "tick")?;
/// assert_eq!((mailbox.receive().await, mailbox.receive().await), (Some("tick"), Some("tick")));
/// assert!(!ticks.has_ended());
/// magpie::log::text!("{} ticks were left out", ticks.missed());
/// ticks.cancel();
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// # }).unwrap().unwrap();
/// ```
pub struct SendInterval(Repeat);

impl SendInterval {
    /// Sends `message` every `period`, first in one period.
    ///
    /// # Errors
    /// [`SendError::OutOfMemory`], with the message.
    ///
    /// # Panics
    /// If the period is zero.
    #[track_caller]
    pub(crate) fn set<M: Message + Copy>(
        period: Duration,
        message: M,
        what: impl Repeating,
    ) -> Result<Self, SendError<M>> {
        let schedule = Schedule::new(Instant::now() + period, period);
        Repeat::set(schedule, what).map(Self).map_err(|_| SendError::OutOfMemory(message))
    }

    /// Sends it no more. If it is being sent at this very moment, that is the last time.
    pub fn cancel(self) {
        self.0.cancel();
    }

    /// Whether it is sent no more, because nobody can receive it: found out when the next was due.
    pub fn has_ended(&self) -> bool {
        self.0.is_over()
    }

    /// How many times it was left out so far; at most 2^32 - 1 are counted.
    pub fn missed(&self) -> u32 {
        self.0.missed()
    }
}

/// What came of sending it once.
pub(crate) fn outcome<M>(sent: Result<(), SendError<M>>) -> Outcome {
    match sent {
        Ok(()) => Outcome::Done,
        Err(SendError::Ended(_)) => Outcome::Over,
        Err(SendError::Full(_) | SendError::OutOfMemory(_)) => Outcome::LeftOut,
    }
}

impl fmt::Debug for SendInterval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.has_ended() { "SendInterval(ended)" } else { "SendInterval(goes on)" })
    }
}
