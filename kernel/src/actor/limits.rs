//! What one actor is held to by itself, whoever shares its executor.

use super::mail::Bound;
use crate::mem::{MemoryLimit, Payer};

/// What one actor is held to by itself, and that it is counted by itself: for
/// [`ExecutorHandle::spawn_limited`](super::ExecutorHandle::spawn_limited).
///
/// - How often it was run, with how many reductions, since when, and on how many cores, is known of such an actor:
///   [`ActorInfo`](super::ActorInfo).
/// - With a memory limit, what it allocates in its behaviours and hooks is charged to that, until it is freed, and so is what those start. If
///   it cannot be refused, the actor ends alone, with [`CrashKind::OutOfMemory`](crate::crash::CrashKind::OutOfMemory). Others of its
///   executor and its mailbox are not touched. An actor that it spawns is held to nothing unless it is spawned so, too.
/// - With a bound it has a [mailbox alone](super::ExecutorHandle::spawn_bounded).
///
/// A message to it costs some more than one to another actor; those to others cost what they do without. 4095 such actors may live at once.
///
/// ```
/// # use magpie::sched;
/// use magpie::actor::{Actor, Bound, Config, Context, Executor, Limits, Receive, WhenFull};
/// use magpie::mem::MemoryLimit;
///
/// struct Parser(Vec<u8>);
/// impl Actor for Parser {}
/// impl Receive<u8> for Parser {
///     type Reply = bool;
///
///     fn receive(&mut self, byte: u8, _: &mut Context<Self>) -> bool {
///         self.0.try_reserve(1).is_ok_and(|()| { self.0.push(byte); true })
///     }
/// }
/// # sched::run_on_threads(2, 1, async {
/// let executor = Executor::start(&Config::default().own_mailboxes(1))?;
/// let limit = MemoryLimit::new(1 << 20)?;
/// let limits = Limits::new().memory(&limit).mailbox(Bound::new(100, WhenFull::Refuse));
/// let parser = executor.handle().spawn_limited(Parser(Vec::new()), limits)?;
/// assert!(parser.ask(7).await?);
/// let seen = parser.inspect().ok_or("it has ended")?;
/// assert_eq!((seen.messages, seen.is_alone), (Some(1), true));
/// # executor.stop().await;
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// # }).unwrap().unwrap();
/// ```
#[derive(Clone, Copy, Default)]
pub struct Limits {
    pub(super) bound: Option<Bound>,
    pub(super) payer: Option<Payer>,
}

impl Limits {
    /// Nothing: the actor is counted by itself, and that is all.
    pub const fn new() -> Self {
        Self { bound: None, payer: None }
    }

    /// It may have so much memory in use, together with whatever else is given the same limit.
    pub fn memory(self, limit: &MemoryLimit) -> Self {
        Self { payer: Some(limit.payer()), ..self }
    }

    /// So many messages may wait for it, in a mailbox that is its alone: one of the executor's
    /// [`Config::own_mailboxes`](super::Config::own_mailboxes).
    pub const fn mailbox(self, bound: Bound) -> Self {
        Self { bound: Some(bound), ..self }
    }
}

impl core::fmt::Debug for Limits {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(
            f,
            "Limits({:?}, {})",
            self.bound,
            if self.payer.is_some() { "of memory" } else { "no memory limit" }
        )
    }
}
