//! What an actor is to its author: state, and a behaviour for each type of message.

use super::storage::{CellRef, Outcome, Word};
use crate::message::Message;

/// State with behaviours. Its behaviours are its implementations of [`Receive`].
///
/// The state moves between cores with its mailbox, so it must be able to:
///
/// ```compile_fail,E0277
/// use magpie::actor::Actor;
/// struct Homebody(std::rc::Rc<u32>);
/// impl Actor for Homebody {}
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an actor",
    label = "not an actor",
    note = "write `impl Actor for {Self} {{}}`"
)]
pub trait Actor: Send + Sized + 'static {
    /// What is done when an actor starts: on its worker, as a behaviour is run, before its first message. Spawned again
    /// into old storage, or in storage of the application's own, it starts, too.
    ///
    /// The function says whether there is a hook, and which; so an actor without one pays nothing for it.
    ///
    /// ```
    /// use magpie::actor::{Actor, Hook};
    /// struct Clock { ticks: u64 }
    /// impl Actor for Clock {
    ///     fn started() -> Option<Hook<Self>> {
    ///         Some(|clock, _context| clock.ticks = 1)
    ///     }
    /// }
    /// ```
    fn started() -> Option<Hook<Self>> {
        None
    }

    /// What is done when an actor ends in an ordinary way: by [`Context::end`], [`vacate`](Context::vacate) or
    /// [`retire`](Context::retire), or because its executor stops. Before the state is dropped, on its worker, or in a process
    /// of the executor that stops. That one may end actors which had no time to start.
    ///
    /// Not after a crash, for then the state may be half changed. What it says about the actor's end is ignored: the actor has
    /// ended, and takes no messages any more.
    ///
    /// ```
    /// use magpie::actor::{Actor, Addr, Hook, Receive};
    /// struct Guest<H: 'static> { house: Addr<H> }
    /// struct Farewell;
    /// impl<H: Actor + Receive<Farewell>> Actor for Guest<H> {
    ///     fn stopped() -> Option<Hook<Self>> {
    ///         // A house that has ended misses nobody.
    ///         Some(|guest, _context| drop(guest.house.send(Farewell)))
    ///     }
    /// }
    /// ```
    fn stopped() -> Option<Hook<Self>> {
        None
    }
}

/// What is done at the beginning or the end of an actor's life.
pub type Hook<A> = fn(&mut A, &mut Context<A>);

/// The behaviour of an actor for messages of type `M`.
///
/// A message for which an actor has no behaviour cannot be sent to it, in whatever way; with the behaviour, it
/// can:
///
/// ```
/// use magpie::actor::{Actor, Addr, Answer, Context, Receive};
/// struct Keen;
/// impl Actor for Keen {}
/// impl Receive<u32> for Keen {
///     type Reply = String;
///
///     fn receive(&mut self, number: u32, _: &mut Context<Self>) -> String { number.to_string() }
/// }
/// fn tell(keen: Addr<Keen>) { let _ = keen.send(1u32); }
/// fn ask(keen: Addr<Keen>) -> Answer<String> { keen.ask(1u32) }
/// fn know(keen: Addr<Keen>) -> magpie::actor::Recipient<u32> { keen.recipient() }
/// ```
///
/// ```compile_fail,E0277
/// use magpie::actor::{Actor, Addr};
/// struct Deaf;
/// impl Actor for Deaf {}
/// fn tell(deaf: Addr<Deaf>) { let _ = deaf.send(1u32); }
/// ```
///
/// ```compile_fail,E0277
/// use magpie::actor::{Actor, Addr};
/// struct Deaf;
/// impl Actor for Deaf {}
/// fn know(deaf: Addr<Deaf>) -> magpie::actor::Recipient<u32> { deaf.recipient() }
/// ```
///
/// What becomes of the actor is said through the context: [`Context::end`], [`Context::vacate`], [`Context::retire`]. One
/// that says nothing waits for its next message.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no behaviour for messages of type `{M}`",
    label = "no behaviour for `{M}`",
    note = "write `impl Receive<{M}> for {Self}`"
)]
pub trait Receive<M: Message>: Actor {
    /// What whoever asks gets; `()` for a message that is only told. Of a message that was told it is dropped.
    type Reply: Send + 'static;

    /// Handles one message, to completion. The actor handles one message at a time.
    fn receive(&mut self, message: M, context: &mut Context<Self>) -> Self::Reply;
}

/// What a behaviour knows about itself, and where it says what becomes of its actor.
///
/// ```
/// use magpie::actor::{Actor, Addr, Context, NotSpawned, Receive};
/// use magpie::arch::CoreId;
///
/// /// Adds up what its helpers find.
/// struct Leader { found: u64, missing: u32 }
/// struct Helper { leader: Addr<Leader> }
/// impl Actor for Leader {}
/// impl Actor for Helper {}
/// struct Begin;
/// struct Search;
///
/// impl Receive<Begin> for Leader {
///     type Reply = Result<(), NotSpawned<()>>;
///
///     fn receive(&mut self, _: Begin, context: &mut Context<Self>) -> Self::Reply {
///         let leader = context.address();
///         // One that never runs at the same time as the leader, one that may, and one in a chosen place.
///         let core = context.executor().cores().iter().last().unwrap_or(CoreId::BOOT);
///         for helper in [
///             context.spawn_beside(Helper { leader }),
///             context.spawn(Helper { leader }),
///             context.executor().spawn_on(core, Helper { leader }),
///         ] {
///             let helper = helper.map_err(|error| error.without_actor())?;
///             self.missing += u32::from(helper.send(Search).is_ok());
///         }
///         Ok(())
///     }
/// }
/// impl Receive<Search> for Helper {
///     type Reply = ();
///
///     fn receive(&mut self, _: Search, context: &mut Context<Self>) {
///         let _ = self.leader.send(14);
///         // Another may be spawned in its place.
///         context.vacate();
///     }
/// }
/// impl Receive<u64> for Leader {
///     type Reply = ();
///
///     fn receive(&mut self, found: u64, context: &mut Context<Self>) {
///         self.found += found;
///         self.missing -= 1;
///         if self.missing == 0 {
///             // Whoever has started the leader takes it, with what it has found.
///             context.retire();
///         }
///     }
/// }
/// ```
///
/// It stays with the behaviour:
///
/// ```compile_fail,E0277
/// fn can_change_cores<T: Send>() {}
/// fn does<A>() { can_change_cores::<magpie::actor::Context<A>>() }
/// ```
///
/// ```compile_fail,E0277
/// fn can_be_shared<T: Sync>() {}
/// fn is<A>() { can_be_shared::<magpie::actor::Context<A>>() }
/// ```
pub struct Context<A> {
    pub(super) cell: CellRef,
    pub(super) word: Word,
    /// What the behaviour has said last.
    pub(super) outcome: Outcome,
    /// The executor, where a test calls behaviours: that may go on when the mailbox leads nowhere any more, or to another executor.
    #[cfg(not(any(target_os = "none", shuttle)))]
    pub(super) of_test: Option<core::ptr::NonNull<super::run::ExecutorState>>,
    // As in `Addr`, which is made of it.
    actor: core::marker::PhantomData<fn(A) -> A>,
}

impl<A: Actor> Context<A> {
    #[inline(always)]
    pub(super) fn new(cell: CellRef, word: Word) -> Self {
        Self {
            cell,
            word,
            outcome: Outcome::Continue,
            #[cfg(not(any(target_os = "none", shuttle)))]
            of_test: None,
            actor: core::marker::PhantomData,
        }
    }
}
