//! Where the ends of a supervisor's children come together, in the order in which they ended. Nothing is allocated for one: what is shared
//! with a child (`control.rs`) has room for it, and is put into a list.
//!
//! A supervisor that is gone takes nothing any more. If it was not dropped, because it crashed, the first link to it that tells of its end
//! closes this; so the list and what is in it do not keep each other for ever.
//!
//! It is also what others see of a supervisor: it is on a [`Roll`](crate::roll::Roll) until it is freed.

use core::ops::Deref;
use core::ptr;

use super::control::Control;
use super::inspect::{Entry, SUPERVISORS};
use crate::arch::atomic::{AtomicBool, Ordering};
use crate::mem::OutOfMemory;
use crate::message::Shared;
use crate::sched::ProcessRef;
use crate::sync::SpinLock;
use crate::watch::Exit;

/// What a supervisor shares with all its children.
pub(super) struct Ends {
    /// First, so that it is struck off before the rest is dropped.
    entry: Entry,
    inside: SpinLock<Inside>,
    /// Whether the list has any; written under the lock.
    has_any: AtomicBool,
    name: Option<&'static str>,
}

/// What the lock guards, and with it the [`Line`] of each child.
struct Inside {
    first: Option<Shared<Control>>,
    /// Means something while there is a first.
    last: *const Control,
    /// Until this is closed.
    supervisor: Option<ProcessRef>,
}

// SAFETY: `last` is used under the lock only, and leads to what the list keeps.
unsafe impl Send for Inside {}

/// What a child has for this, guarded by the lock of its supervisor's [`Ends`].
pub(super) struct Line {
    /// The one that ended after it.
    next: Option<Shared<Control>>,
    /// How it ended, in bits.
    exit: u64,
    /// The life that runs.
    process: Option<ProcessRef>,
}

impl Line {
    pub(super) const fn new() -> Self {
        Self { next: None, exit: 0, process: None }
    }
}

impl Ends {
    fn new(supervisor: ProcessRef, name: Option<&'static str>) -> Self {
        let inside = Inside { first: None, last: ptr::null(), supervisor: Some(supervisor) };
        let (inside, has_any) = (SpinLock::new(inside), AtomicBool::new(false));
        Self { inside, has_any, name, entry: Entry::new(&SUPERVISORS) }
    }

    /// As it was declared.
    pub(super) fn name(&self) -> Option<&'static str> {
        self.name
    }

    /// The supervisor, while it lives.
    pub(super) fn own(&self) -> Option<ProcessRef> {
        self.inside.lock().supervisor.clone()
    }

    /// The number of the supervisor and the process of this child, while both live.
    pub(super) fn life(&self, control: &Control) -> Option<(usize, Option<ProcessRef>)> {
        let inside = self.inside.lock();
        // SAFETY: under the lock, once.
        let process = unsafe { &mut *control.line() }.process.clone();
        Some((inside.supervisor.as_ref()?.id(), process))
    }

    /// A life of a child has begun, which `process` runs. Whether it has a supervisor; if not, it is to end.
    #[inline(always)]
    pub(super) fn begin(&self, control: &Control, process: Option<ProcessRef>) -> bool {
        let inside = self.inside.lock();
        if inside.supervisor.is_none() {
            return false;
        }
        // SAFETY: under the lock, once.
        let line = unsafe { &mut *control.line() };
        let previous = core::mem::replace(&mut line.process, process);
        drop(inside);
        // After the lock: it may free a process.
        drop(previous);
        true
    }

    /// A child has ended: its supervisor has it told, and is woken. Called where nothing of the application's may run, and runs nothing.
    pub(super) fn note(control: Shared<Control>, exit_bits: u64) {
        let place = control.pointer();
        // SAFETY: the child keeps its supervisor's, and is kept itself: by this call, and from where it is in the list by whoever takes it out,
        // which needs the lock. To free the lock is the last that is done here.
        let ends = unsafe { place.as_ref() }.ends();
        let mut inside = ends.inside.lock();
        // SAFETY: under the lock, once; it is in no list, because its last end was taken out before it was started anew.
        let line = unsafe { &mut *place.as_ref().line() };
        let process = line.process.take();
        line.exit = exit_bits;
        let left = if inside.supervisor.is_none() {
            Some(control)
        } else {
            match &inside.first {
                None => inside.first = Some(control),
                // SAFETY: under the lock; the list keeps its last, which is another than this.
                Some(_) => unsafe { (*(*inside.last).line()).next = Some(control) },
            }
            inside.last = place.as_ptr();
            // Relaxed: published by the wake-up.
            ends.has_any.store(true, Ordering::Relaxed);
            None
        };
        // Under the lock, so that nobody has to keep it. A turn that begins after this sees what was put into the list.
        if let Some(supervisor) = &inside.supervisor {
            supervisor.wake();
        }
        drop(inside);
        // After the lock: it may free what it is the last to know.
        drop((process, left));
    }

    /// For the supervisor: who has ended first, and how; without, it is woken by the next.
    #[inline(always)]
    pub(super) fn take(&self) -> Option<(Shared<Control>, Exit)> {
        // Relaxed: who woke the supervisor before this turn began is seen, because the beginning acquires what comes before a wake-up; and
        // who wakes it later brings about another turn.
        if !self.has_any.load(Ordering::Relaxed) {
            return None;
        }
        let mut inside = self.inside.lock();
        let control = inside.first.take()?;
        // SAFETY: under the lock, once.
        let line = unsafe { &mut *control.line() };
        inside.first = line.next.take();
        self.has_any.store(inside.first.is_some(), Ordering::Relaxed);
        let exit = Exit::from_bits(line.exit);
        drop(inside);
        Some((control, exit))
    }

    /// The supervisor is gone, or about to be.
    fn close(&self) {
        let mut inside = self.inside.lock();
        let (mut first, supervisor) = (inside.first.take(), inside.supervisor.take());
        drop(inside);
        // After the lock: it may free the supervisor.
        drop(supervisor);
        // One after the other: each keeps the next.
        while let Some(control) = first {
            // SAFETY: what was in the list is this call's alone: a child that has ended is put there once.
            first = unsafe { &mut *control.line() }.next.take();
        }
    }

    /// The supervisor has failed, and its children are to end: kills this one.
    pub(super) fn kill_orphan(&self, control: &Control) {
        self.close();
        let inside = self.inside.lock();
        // SAFETY: under the lock, once.
        let process = unsafe { &mut *control.line() }.process.take();
        drop(inside);
        if let Some(process) = process {
            process.kill();
        }
    }
}

/// The supervisor's own: closed when it is dropped.
pub(super) struct EndsHere(Shared<Ends>);

impl EndsHere {
    /// Those of the children of that supervisor, and its name.
    pub(super) fn new(supervisor: ProcessRef, name: Option<&'static str>) -> Result<Self, OutOfMemory> {
        let ends = Self(Shared::new(Ends::new(supervisor, name)).map_err(|error| error.without_message())?);
        // SAFETY: it lies there until it is freed, with its entry.
        unsafe { ends.entry.enter(ends.pointer().cast()) }.map(|()| ends)
    }
}

impl Deref for EndsHere {
    type Target = Shared<Ends>;

    fn deref(&self) -> &Shared<Ends> {
        &self.0
    }
}

impl Drop for EndsHere {
    fn drop(&mut self) {
        self.0.close();
    }
}
