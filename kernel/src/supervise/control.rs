//! What a supervisor shares with a child: how that is asked to end, how its end is told, and what ends it with its supervisor. It is
//! made with the child and kept through all its lives. So a life needs no memory for any of this, and no crash leaves another behind.

use core::cell::UnsafeCell;
use core::mem::{MaybeUninit, size_of};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use core::task::Waker;

use super::ends::{Ends, Line};
use super::handle::ChildId;
use super::inspect::{CHILDREN, ChildInfo, Entry};
use crate::mem::OutOfMemory;
use crate::message::Shared;
use crate::sched::{self, ProcessRef};
use crate::sync::{SpinLock, take_kept};
use crate::watch::{self, Asked, Exit, Means, Node, Watch};

/// What a supervisor and its child share.
pub(super) struct Control {
    /// First, so that it is struck off before the rest is dropped.
    entry: Entry,
    ends: Shared<Ends>,
    /// No other child of any supervisor has the same.
    number: u64,
    name: &'static str,
    /// How often it was started. For those who look from outside, as all of these.
    lives: AtomicU64,
    /// The number of the actor that is tended in this life, or 0.
    actor: AtomicUsize,
    asking: SpinLock<Asking>,
    line: UnsafeCell<Line>,
    /// The watch for the end of a life. From the moment when a life is watched until its end was taken from the supervisor's [`Ends`] it is in use.
    end: UnsafeCell<MaybeUninit<Node>>,
    /// The watch for the end of the supervisor.
    link: UnsafeCell<MaybeUninit<Node>>,
}

struct Asking {
    /// The last life that was asked to end, or has.
    asked: u64,
    /// The last that was to be killed.
    killed: u64,
    /// The last that tends an actor: it is told that it is to be killed, and ends when the actor has. 0 if none does.
    tends: u64,
    /// Of whoever waits for that. One that has crashed leaves it here for the next.
    waker: Option<Waker>,
}

/// What a supervisor wants of a life.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Wish {
    /// That it lives.
    Life,
    /// That it ends.
    End,
    /// That the actor is killed that it tends.
    Kill,
}

impl Asking {
    fn wish(&self, life: u64) -> Wish {
        match () {
            () if self.killed >= life => Wish::Kill,
            () if self.asked >= life => Wish::End,
            () => Wish::Life,
        }
    }
}

// SAFETY: `line` is used under the lock of `ends`; the nodes by whoever has them: the supervisor until it watches, then the list that they
// are in, then who tells.
unsafe impl Sync for Control {}
// SAFETY: as above; what is in the nodes may be told from whatever core.
unsafe impl Send for Control {}

const _: () = assert!(size_of::<Shared<Control>>() <= size_of::<watch::Data>(), "it fits into a watch");

impl Control {
    /// That of a child of `supervisor`, which is the caller, and a watch that ends it with that; to be cancelled when it is a child no more.
    pub(super) fn new(
        ends: &Shared<Ends>,
        supervisor: &ProcessRef,
        (number, name): (u64, &'static str),
    ) -> Result<(Shared<Self>, Watch), OutOfMemory> {
        let control = Self {
            ends: ends.clone(),
            number,
            name,
            lives: AtomicU64::new(0),
            actor: AtomicUsize::new(0),
            entry: Entry::new(&CHILDREN),
            asking: SpinLock::new(Asking { asked: 0, killed: 0, tends: 0, waker: None }),
            line: UnsafeCell::new(Line::new()),
            end: UnsafeCell::new(MaybeUninit::uninit()),
            link: UnsafeCell::new(MaybeUninit::uninit()),
        };
        let control = Shared::new(control).map_err(|error| error.without_message())?;
        // SAFETY: it lies there until it is freed, with its entry.
        unsafe { control.entry.enter(control.pointer().cast()) }?;
        let link = supervisor.watch(&EndsWith(&control))?;
        Ok((control, link))
    }

    /// Has the end of a life told to the supervisor. Of the life before it that was told.
    pub(super) fn watch(this: &Shared<Self>, process: &ProcessRef) -> Result<Watch, OutOfMemory> {
        process.watch(&Tells(this))
    }

    /// Another life begins, the so many-th.
    #[inline(always)]
    pub(super) fn note_life(&self, life: u64) {
        // Relaxed, here and below: seen from outside, and nothing is inferred.
        self.lives.store(life, Ordering::Relaxed);
    }

    /// In this life it is that actor; there is none yet.
    pub(super) fn note_actor(&self, number: Option<usize>) {
        self.actor.store(number.unwrap_or(0), Ordering::Relaxed);
    }

    /// What is seen of it, while its supervisor lives.
    pub(super) fn look(&self) -> Option<ChildInfo> {
        let (supervisor, process) = self.ends.life(self)?;
        let actor = self.actor.load(Ordering::Relaxed);
        Some(ChildInfo {
            id: ChildId(self.number),
            name: self.name,
            supervisor,
            actor: (process.is_some() && actor != 0).then_some(actor),
            process,
            restarts: self.lives.load(Ordering::Relaxed).saturating_sub(1),
        })
    }

    /// Where the end is told.
    pub(super) fn ends(&self) -> &Ends {
        &self.ends
    }

    /// Where `ends` keeps what it knows of this.
    pub(super) fn line(&self) -> *mut Line {
        self.line.get()
    }

    /// A life begins, of which the caller is the process: from here on it ends with its supervisor. Whether that lives.
    #[inline(always)]
    pub(super) fn begin(&self) -> bool {
        self.ends.begin(self, sched::current_process())
    }

    /// Asks this life, and those before it, to end.
    pub(super) fn ask(&self, life: u64) {
        let mut asking = self.asking.lock();
        asking.asked = asking.asked.max(life);
        let waker = take_kept(&mut asking.waker);
        // Whoever is killed before the waking would leave the child asleep.
        let _here = asking.unlock();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// This life is to be killed. Whether it was told so, because it tends an actor, which it kills; else the caller kills it.
    ///
    /// Under the lock, as [`Self::begin_tending`]: so a life that is killed by the caller has no actor, and comes to have none.
    pub(super) fn kill(&self, life: u64) -> bool {
        let mut asking = self.asking.lock();
        (asking.asked, asking.killed) = (asking.asked.max(life), asking.killed.max(life));
        let tends = asking.tends == life;
        let waker = take_kept(&mut asking.waker);
        // As in `ask`.
        let _here = asking.unlock();
        if let Some(waker) = waker {
            waker.wake();
        }
        tends
    }

    /// This life is about to tend an actor. Whether it may: not if it is being killed.
    pub(super) fn begin_tending(&self, life: u64) -> bool {
        let mut asking = self.asking.lock();
        let may = asking.killed < life;
        if may {
            asking.tends = life;
        }
        may
    }

    /// It has no actor, after all. Whether it was told that it is to be killed: then it has to see to that itself.
    pub(super) fn end_tending(&self, life: u64) -> bool {
        let mut asking = self.asking.lock();
        asking.tends = 0;
        asking.killed >= life
    }

    pub(super) fn wish(&self, life: u64) -> Wish {
        self.asking.lock().wish(life)
    }

    /// Leaves a waker, unless more is wanted of that life already than that.
    pub(super) fn leave(&self, life: u64, known: Wish, waker: Waker) -> bool {
        let mut asking = self.asking.lock();
        if asking.wish(life) > known {
            return false;
        }
        let previous = asking.waker.replace(waker);
        drop(asking);
        // After the lock: it may free a process.
        drop(previous);
        true
    }
}

/// A watcher: the supervisor, of the end of a life of this child.
struct Tells<'a>(&'a Shared<Control>);

/// A watcher: this child, which is killed when its supervisor ends as a failure.
struct EndsWith<'a>(&'a Shared<Control>);

impl watch::Sealed for Tells<'_> {
    fn means(&self) -> Option<Means> {
        // SAFETY: it is alive; the node is reached without a reference to the rest.
        let memory = unsafe { &raw mut (*self.0.pointer().as_ptr()).end };
        Some(means(self.0, memory, act_at_end))
    }
}

impl watch::Sealed for EndsWith<'_> {
    fn means(&self) -> Option<Means> {
        // SAFETY: as above.
        let memory = unsafe { &raw mut (*self.0.pointer().as_ptr()).link };
        Some(means(self.0, memory, act_on_link))
    }
}

/// A watch in this part of `control`, which it keeps.
fn means(
    control: &Shared<Control>,
    memory: *mut UnsafeCell<MaybeUninit<Node>>,
    act: unsafe fn(NonNull<Node>, Asked) -> bool,
) -> Means {
    let mut data = watch::Data::uninit();
    // SAFETY: it has room, as was asserted.
    unsafe { data.as_mut_ptr().cast::<Shared<Control>>().write(control.clone()) };
    // SAFETY: it is a part of what lies in a box.
    Means { memory: unsafe { NonNull::new_unchecked(memory.cast()) }, act, data }
}

/// What a watch of [`means`] keeps, if it is asked for more than whether it is pointless. That it is not, as long as it is not cancelled.
///
/// # Safety
/// As [`Act`](watch::Node).
unsafe fn given_up(node: NonNull<Node>, asked: Asked) -> Option<Shared<Control>> {
    if asked == Asked::IsPointless {
        return None;
    }
    // SAFETY: by contract the node is the caller's alone, who gives it up: moved out once. Its memory goes with what it is a part of.
    Some(unsafe { node.as_ref().data().cast::<Shared<Control>>().read() })
}

/// # Safety
/// As [`Act`](watch::Node); the node is that of a [`Tells`].
unsafe fn act_at_end(node: NonNull<Node>, asked: Asked) -> bool {
    // SAFETY: by contract.
    if let Some(control) = unsafe { given_up(node, asked) }
        && let Asked::Tell(exit) = asked
    {
        Ends::note(control, exit);
    }
    false
}

/// # Safety
/// As [`Act`](watch::Node); the node is that of an [`EndsWith`].
unsafe fn act_on_link(node: NonNull<Node>, asked: Asked) -> bool {
    // SAFETY: by contract.
    if let Some(control) = unsafe { given_up(node, asked) }
        && matches!(asked, Asked::Tell(exit) if Exit::from_bits(exit).ends_linked())
    {
        control.ends.kill_orphan(&control);
    }
    false
}
