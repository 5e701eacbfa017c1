//! Bounds: a mailbox may refuse, or forget, what goes beyond a number of messages.

/// What happens to a message that would exceed a mailbox's bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WhenFull {
    /// The sender gets it back: [`SendError::Full`](crate::actor::SendError::Full).
    Refuse,
    /// It is dropped; the sender is not told.
    DropNewest,
    /// The oldest one waiting in the mailbox is dropped in its favour, whoever it was for: in a mailbox
    /// [of one actor](crate::actor::ExecutorHandle::spawn_bounded), its own. Where an actor that has a hook for
    /// its beginning has yet to start first, the newest is.
    DropOldest,
}

/// A mailbox's bound.
///
/// ```
/// use magpie::actor::{Bound, Config, WhenFull};
/// // Of measurements the newest count, so old ones may go.
/// let recent = Config::default().bound(Bound::new(100, WhenFull::DropOldest));
/// assert_ne!(recent.bound, Bound::NONE);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bound {
    messages: u32,
    when_full: WhenFull,
    /// The mailbox is one actor's own: what is put aside while that is suspended counts.
    of_one: bool,
}

impl Bound {
    /// As much as memory holds.
    pub const NONE: Self = Self { messages: u32::MAX, when_full: WhenFull::Refuse, of_one: false };

    /// At most `messages` waiting in each mailbox, at least 1.
    pub const fn new(messages: u32, when_full: WhenFull) -> Self {
        Self { messages: if messages == 0 { 1 } else { messages }, when_full, of_one: false }
    }

    /// The same, for a mailbox that is one actor's own.
    pub(crate) const fn of_one(self) -> Self {
        Self { of_one: true, ..self }
    }

    /// Whether it is for a mailbox that is one actor's own.
    pub(crate) const fn is_of_one(self) -> bool {
        self.of_one
    }

    /// How many messages may wait, if that is limited.
    pub(crate) const fn most(self) -> Option<u32> {
        if self.messages == u32::MAX { None } else { Some(self.messages) }
    }

    pub(super) const fn is_some(self) -> bool {
        self.messages != u32::MAX || self.of_one
    }

    /// What to do with one more message when so many wait.
    pub(crate) fn exceeded_by(self, waiting: u32) -> Option<WhenFull> {
        (waiting >= self.messages).then_some(self.when_full)
    }
}
