//! Inspection: supervisors and their children as they are seen from outside, without asking them, so also when they do not answer. All of it
//! is stale as soon as it is read.
//!
//! Two rolls lead to what supervisors have anyway: what each shares with all its children (`ends.rs`), and with each (`control.rs`). Both are on
//! theirs from when they are made until they are freed. A life of a child costs a number that is written.
//!
//! Locks are taken in this order: that of a roll, that of [`Ends`].

use core::ptr::NonNull;
use core::sync::atomic::{AtomicPtr, Ordering};

use super::control::Control;
use super::ends::Ends;
use super::handle::ChildId;
use crate::mem::OutOfMemory;
use crate::roll::{Place, Roll};
use crate::sched::ProcessRef;

/// Of [`Ends`].
pub(super) static SUPERVISORS: Roll = Roll::new();
/// Of [`Control`]s.
pub(super) static CHILDREN: Roll = Roll::new();

/// What is on a roll has this, and is struck off when it is dropped.
pub(super) struct Entry {
    roll: &'static Roll,
    place: AtomicPtr<Place>,
}

impl Entry {
    pub(super) const fn new(roll: &'static Roll) -> Self {
        Self { roll, place: AtomicPtr::new(core::ptr::null_mut()) }
    }

    /// Enters what has this.
    ///
    /// # Safety
    /// It is what the roll is of, and stays there until this is dropped. Called once, by who alone has it.
    pub(super) unsafe fn enter(&self, item: NonNull<()>) -> Result<(), OutOfMemory> {
        // SAFETY: by contract; its address is even, because it has pointers in it.
        let place = unsafe { self.roll.enter(item, true) }.ok_or(OutOfMemory)?;
        // Relaxed: whoever drops it has synchronised with the caller.
        self.place.store(core::ptr::from_ref(place).cast_mut(), Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        // SAFETY: null, or a place, which stays for ever.
        if let Some(place) = unsafe { (*self.place.get_mut()).as_ref() } {
            self.roll.strike(place);
        }
    }
}

/// What is seen of a supervisor.
#[derive(Clone)]
#[non_exhaustive]
pub struct SupervisorInfo {
    /// Its process, which says the rest: state, core, age.
    pub process: ProcessRef,
    /// As it was declared.
    pub name: Option<&'static str>,
}

/// What is seen of a child of a supervisor.
#[derive(Clone)]
#[non_exhaustive]
pub struct ChildInfo {
    /// Which.
    pub id: ChildId,
    /// As it was declared.
    pub name: &'static str,
    /// The number of its supervisor's process.
    pub supervisor: usize,
    /// Its process, which says the rest: state, core, age, whether it is a supervisor itself. That of an actor is the one that tends it, and as
    /// old as the actor. `None` while it does not live.
    pub process: Option<ProcessRef>,
    /// The number of the actor, if it is one: see [`ActorInfo`](crate::actor::ActorInfo).
    pub actor: Option<usize>,
    /// How often it was started again, for whatever reason.
    pub restarts: u64,
}

/// The supervisors that live, in no order. Each is looked at at a moment of its own. It asks none of them, and takes no memory.
///
/// ```
/// # use magpie::sched;
/// use magpie::supervise::{self, Supervisor};
/// # sched::run_on_threads(2, 1, async {
/// let workers = Supervisor::one_for_one().named("doc/seen").start()?;
/// while !supervise::supervisors().any(|seen| seen.name == Some("doc/seen")) {
///     sched::yield_now().await;
/// }
/// workers.stop().await?;
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// # }).unwrap().unwrap();
/// ```
pub fn supervisors() -> impl Iterator<Item = SupervisorInfo> {
    SUPERVISORS.each(|ends| {
        // SAFETY: what is on this roll lives under its lock.
        let ends = unsafe { ends.cast::<Ends>().as_ref() };
        // One that was killed while it ran has dropped nothing, and without children nobody has closed what it shared.
        let process = ends.own().filter(|process| !process.is_done())?;
        Some(SupervisorInfo { process, name: ends.name() })
    })
}

/// The children of all supervisors, in no order; with the [ids](ChildId) in that in which they were declared. As [`supervisors`].
///
/// ```
/// use magpie::supervise;
/// // Who was restarted more than three times.
/// for child in supervise::children().filter(|child| child.restarts > 3) {
///     println!("{} of supervisor {:x}: {} restarts", child.name, child.supervisor, child.restarts);
/// }
/// ```
pub fn children() -> impl Iterator<Item = ChildInfo> {
    // SAFETY: what is on this roll lives under its lock.
    CHILDREN.each(|control| unsafe { control.cast::<Control>().as_ref() }.look())
}

/// Who has a supervisor, by the number of a [process](ProcessRef::id) or an [actor](crate::actor::ActorInfo): which child of which supervisor that
/// is. Looks at all children.
///
/// ```
/// # use magpie::sched;
/// use magpie::supervise;
/// # sched::run_on_threads(2, 1, async {
/// let own = sched::current_process().ok_or("no process runs")?;
/// assert!(supervise::supervised(own.id()).is_none());
/// # Ok::<(), &str>(())
/// # }).unwrap().unwrap();
/// ```
pub fn supervised(number: usize) -> Option<ChildInfo> {
    children().find(|child| {
        child.actor == Some(number) || child.process.as_ref().is_some_and(|process| process.id() == number)
    })
}
