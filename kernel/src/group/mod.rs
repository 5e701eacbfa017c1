//! Groups: an actor that passes on what is published to it, to all who have subscribed: actors, and processes with mailboxes of
//! their own.

use alloc::vec::Vec;

use crate::actor::{Actor, Context, Receive, Recipient};
use crate::channel::ProcessAddr;
use crate::mem::OutOfMemory;
use crate::message::{Message, SendError};

/// Who wants to have what is published. The actor that is its group may have a name ([`registry`](crate::registry)), may be watched and
/// supervised, and ends as any other.
///
/// ```
/// # use magpie::sched;
/// use magpie::actor::{Actor, Config, Context, Executor, Receive};
/// use magpie::group::{Group, Publish, Published, Subscribe};
///
/// struct Display { shown: u32 }
/// impl Actor for Display {}
/// #[derive(Clone)]
/// struct Temperature(u32);
/// impl Receive<Temperature> for Display {
///     type Reply = ();
///
///     fn receive(&mut self, Temperature(degrees): Temperature, _: &mut Context<Self>) {
///         self.shown = degrees;
///     }
/// }
/// # sched::run_on_threads(2, 1, async {
/// let executor = Executor::start(&Config::default())?;
/// let group = executor.handle().spawn(Group::<Temperature>::new())?;
/// for _ in 0..2 {
///     let display = executor.handle().spawn(Display { shown: 0 })?;
///     group.ask(Subscribe(display.recipient())).await??;
/// }
/// let published = group.ask(Publish(Temperature(21))).await?;
/// assert_eq!(published, Published { reached: 2, refused: 0 });
/// # executor.stop().await;
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// # }).unwrap().unwrap();
/// ```
///
/// A process that has no actor subscribes with a mailbox of its own, by [`SubscribeMailbox`].
pub struct Group<M> {
    subscribers: Vec<Subscriber<M>>,
}

enum Subscriber<M> {
    Actor(Recipient<M>),
    Process(ProcessAddr<M>),
}

impl<M: Message> Subscriber<M> {
    fn send(&self, message: M) -> Result<(), SendError<M>> {
        match self {
            Self::Actor(recipient) => recipient.send(message).map(drop),
            Self::Process(address) => address.send(message).map(drop),
        }
    }

    fn is_alive(&self) -> bool {
        match self {
            Self::Actor(recipient) => recipient.is_alive(),
            Self::Process(address) => !address.has_closed(),
        }
    }

    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Actor(one), Self::Actor(other)) => one == other,
            (Self::Process(one), Self::Process(other)) => one.leads_where(other),
            _ => false,
        }
    }
}

/// Subscribes: from now on it gets what is published. Once is enough: who has subscribed already is not listed again.
pub struct Subscribe<M>(pub Recipient<M>);

/// Ends a subscription. Replies whether there was one. What was published before may still be on its way.
pub struct Unsubscribe<M>(pub Recipient<M>);

/// As [`Subscribe`], for a process: from now on its mailbox gets what is published. The group has an address of it until it is dropped, or its process
/// has crashed, or it is unsubscribed; and a mailbox that has addresses does not say that nothing will come any more.
///
/// ```
/// use magpie::actor::Addr;
/// use magpie::group::{Group, SubscribeMailbox};
/// use magpie::channel::ProcessMailbox;
/// async fn log(temperatures: Addr<Group<u32>>) -> Result<(), Box<dyn core::error::Error + Send + Sync>> {
///     let mut mailbox = ProcessMailbox::new(10)?;
///     temperatures.ask(SubscribeMailbox(mailbox.address())).await??;
///     while let Some(degrees) = mailbox.receive().await {
///         println!("{degrees}");
///     }
///     Ok(())
/// }
/// ```
pub struct SubscribeMailbox<M>(pub ProcessAddr<M>);

/// Ends such a subscription. Replies whether there was one. What was published before is in the mailbox already.
pub struct UnsubscribeMailbox<M>(pub ProcessAddr<M>);

/// Goes to all subscribers. Of something large publish a [`Shared`](crate::message::Shared), whose clone is a pointer.
pub struct Publish<M>(pub M);

/// What became of what was published.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Published {
    /// So many subscribers were sent it.
    pub reached: usize,
    /// So many were not, because their mailbox was full or memory was short. They stay subscribed.
    pub refused: usize,
}

impl<M> Group<M> {
    /// Without subscribers.
    pub const fn new() -> Self {
        Self { subscribers: Vec::new() }
    }
}

impl<M: Message> Group<M> {
    fn subscribe(&mut self, who: Subscriber<M>) -> Result<(), OutOfMemory> {
        if self.subscribers.iter().any(|known| known.is(&who)) {
            return Ok(());
        }
        if self.subscribers.len() == self.subscribers.capacity() {
            // Those who have ended make room first, so that who comes and goes does not let the list grow.
            self.subscribers.retain(Subscriber::is_alive);
            self.subscribers.try_reserve(1).map_err(|_| OutOfMemory)?;
        }
        self.subscribers.push(who);
        Ok(())
    }

    fn unsubscribe(&mut self, who: &Subscriber<M>) -> bool {
        let before = self.subscribers.len();
        self.subscribers.retain(|known| !known.is(who));
        self.subscribers.len() < before
    }
}

impl<M> Default for Group<M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<M: Message + Clone> Actor for Group<M> {}

impl<M: Message + Clone> Receive<Subscribe<M>> for Group<M> {
    /// An error if there is no memory for another: then it has not subscribed.
    type Reply = Result<(), OutOfMemory>;

    fn receive(&mut self, Subscribe(who): Subscribe<M>, _: &mut Context<Self>) -> Self::Reply {
        self.subscribe(Subscriber::Actor(who))
    }
}

impl<M: Message + Clone> Receive<SubscribeMailbox<M>> for Group<M> {
    /// As of [`Subscribe`].
    type Reply = Result<(), OutOfMemory>;

    fn receive(&mut self, SubscribeMailbox(who): SubscribeMailbox<M>, _: &mut Context<Self>) -> Self::Reply {
        self.subscribe(Subscriber::Process(who))
    }
}

impl<M: Message + Clone> Receive<Unsubscribe<M>> for Group<M> {
    type Reply = bool;

    fn receive(&mut self, Unsubscribe(who): Unsubscribe<M>, _: &mut Context<Self>) -> bool {
        self.unsubscribe(&Subscriber::Actor(who))
    }
}

impl<M: Message + Clone> Receive<UnsubscribeMailbox<M>> for Group<M> {
    type Reply = bool;

    fn receive(&mut self, UnsubscribeMailbox(who): UnsubscribeMailbox<M>, _: &mut Context<Self>) -> bool {
        self.unsubscribe(&Subscriber::Process(who))
    }
}

impl<M: Message + Clone> Receive<Publish<M>> for Group<M> {
    type Reply = Published;

    fn receive(&mut self, Publish(message): Publish<M>, _: &mut Context<Self>) -> Published {
        let mut published = Published { reached: 0, refused: 0 };
        self.subscribers.retain(|who| match who.send(message.clone()) {
            Ok(()) => {
                published.reached += 1;
                true
            }
            Err(SendError::Ended(_)) => false,
            Err(SendError::Full(_) | SendError::OutOfMemory(_)) => {
                published.refused += 1;
                true
            }
        });
        published
    }
}
