//! Watching actors, and actors that watch: the message is made in the memory of the watch, and put in front of what waits in the
//! watcher's mailbox, as a segment of its own. From there on it is a message like others: it moves with its mailbox, waits for a behaviour
//! that is suspended, and is dropped if its actor has ended.

use core::mem::{MaybeUninit, size_of};
use core::ptr::NonNull;

use super::address::Addr;
use super::behaviour::{Actor, Context, Receive};
use super::mail::envelope::{self, Inline, Target};
use super::mail::segment::HEADER_BYTES;
use super::mail::{Segment, directory};
use super::recipient::Recipient;
use super::run;
use super::storage::cell;
use crate::mem::OutOfMemory;
use crate::watch::{self, Asked, Ended, Linked, Means, Node, Sealed, Watch, Watcher};

/// Bytes of a segment for the message.
const CAPACITY_BYTES: u32 = envelope::size_of_envelope::<Ended>() as u32;

const _: () = assert!(
    size_of::<Node>() <= HEADER_BYTES + CAPACITY_BYTES as usize
        && size_of::<Target<Ended>>() <= size_of::<watch::Data>(),
    "a watch fits into the memory of the message that it becomes"
);

impl<A: Actor> Addr<A> {
    /// Has `watcher` told when the actor ends, whatever ends it: exactly once, and at once if it has ended already. See
    /// [`watch`](mod@crate::watch).
    ///
    /// ```
    /// # use magpie::sched;
    /// use magpie::actor::{Actor, Config, Context, Executor, Receive, stop};
    /// use magpie::channel::ProcessMailbox;
    /// use magpie::watch::{Ended, Exit, Watch};
    ///
    /// struct Child;
    /// impl Actor for Child {}
    /// struct Parent(Option<Watch>);
    /// impl Actor for Parent {}
    /// struct Begin;
    /// impl Receive<Begin> for Parent {
    ///     type Reply = ();
    ///
    ///     fn receive(&mut self, _: Begin, context: &mut Context<Self>) {
    ///         if let Ok(child) = context.spawn(Child) {
    ///             self.0 = context.watch(child).ok();
    ///             let _ = child.send(stop::End);
    ///         }
    ///     }
    /// }
    /// impl Receive<Ended> for Parent {
    ///     type Reply = ();
    ///
    ///     fn receive(&mut self, ended: Ended, context: &mut Context<Self>) {
    ///         let is_childs = self.0.is_some_and(|watch| watch.id().number() == ended.watch().number());
    ///         if is_childs && !ended.exit().is_failure() {
    ///             context.end();
    ///         }
    ///     }
    /// }
    /// # sched::run_on_threads(2, 1, async {
    /// let executor = Executor::start(&Config::default())?;
    /// let parent = executor.handle().spawn(Parent(None))?;
    /// let mut ends = ProcessMailbox::<Ended>::new(1)?;
    /// parent.watch(&ends.address())?;
    /// parent.send(Begin)?;
    /// assert_eq!(ends.receive().await.map(|ended| ended.exit()), Some(Exit::Normal));
    /// # executor.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// # }).unwrap().unwrap();
    /// ```
    ///
    /// # Errors
    /// When there is no memory for it: 64 bytes.
    pub fn watch(&self, watcher: &impl Watcher) -> Result<Watch, OutOfMemory> {
        let (cell, word) = (self.cell(), self.word());
        watch::watch(run::identity(cell, word), watcher, cell::watched(cell, word), || self.is_alive())
    }
}

impl<A: Actor> Linked for Addr<A> {
    fn watch_for(&self, watcher: &impl Watcher) -> Result<Watch, OutOfMemory> {
        self.watch(watcher)
    }

    fn fate(&self) -> Option<Means> {
        run::fate(self.cell(), self.word())
    }
}

impl<A: Receive<Ended>> Context<A> {
    /// As [`Addr::watch`]: the actor itself is told.
    ///
    /// ```
    /// use magpie::actor::{Actor, Addr, Context, Receive};
    /// use magpie::watch::Ended;
    /// struct Heir { testator: Option<Addr<Heir>>, inherits: bool }
    /// impl Actor for Heir {}
    /// struct Begin;
    /// impl Receive<Begin> for Heir {
    ///     type Reply = ();
    ///
    ///     fn receive(&mut self, _: Begin, context: &mut Context<Self>) {
    ///         // Without memory for a watch it would wait for ever.
    ///         if self.testator.is_none_or(|testator| context.watch(testator).is_err()) {
    ///             context.end();
    ///         }
    ///     }
    /// }
    /// impl Receive<Ended> for Heir {
    ///     type Reply = ();
    ///
    ///     fn receive(&mut self, _: Ended, _: &mut Context<Self>) {
    ///         self.inherits = true;
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    /// As there.
    pub fn watch<B: Actor>(&self, other: Addr<B>) -> Result<Watch, OutOfMemory> {
        other.watch(&self.address().recipient())
    }
}

impl Sealed for Recipient<Ended> {
    fn means(&self) -> Option<Means> {
        let memory = Segment::new(CAPACITY_BYTES as usize)?.cast();
        let mut data = watch::Data::uninit();
        // SAFETY: it has room, as was asserted.
        unsafe { data.as_mut_ptr().cast::<Target<Ended>>().write(self.target()) };
        Some(Means { memory, act, data })
    }
}

/// # Safety
/// As [`Act`](crate::watch::node::Act); the node has the means of a recipient.
unsafe fn act(node: NonNull<Node>, asked: Asked) -> bool {
    // SAFETY: by contract; written in `means`.
    let target = unsafe { node.as_ref().data().cast::<Target<Ended>>().read() };
    let lives = target.cell.word_relaxed().is_same_actor(target.word);
    if asked == Asked::IsPointless {
        return !lives;
    }
    let segment = node.cast::<Segment>();
    // SAFETY: by contract it is the caller's alone, who gives it up; its memory was made as a segment's. The message is two words,
    // and not boxed.
    unsafe {
        let Asked::Tell(exit) = asked else {
            Segment::begin_anew(segment, CAPACITY_BYTES);
            Segment::free(segment);
            return true;
        };
        let ended = MaybeUninit::new(Inline(Ended::of(node.as_ref(), exit)));
        Segment::begin_anew(segment, CAPACITY_BYTES);
        let place = Segment::begin(segment);
        envelope::write(place, target, ended.as_ptr());
        (*segment.as_ptr()).set_end(place.add(CAPACITY_BYTES as usize));
        run::put_in_front(directory::get(target.word.mailbox()), segment);
    }
    true
}
