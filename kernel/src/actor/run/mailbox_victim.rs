//! How a thief chooses its victim: the rules that an executor may be started with.

/// How a thief chooses its victim among the workers of its executor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MailboxVictim {
    /// Nobody steals.
    None,
    /// The one that has not run dry for the longest time: the rule of C∀.
    LongestVictim,
    /// Any other that has mail, with equal chance.
    Random,
    /// The one with most mailboxes that have mail.
    Load,
    /// The nearest that has mail.
    Locality,
    /// By load seven times in ten, else at random.
    Hybrid,
}

impl MailboxVictim {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::None, Self::LongestVictim, Self::Random, Self::Load, Self::Locality, Self::Hybrid];
}
