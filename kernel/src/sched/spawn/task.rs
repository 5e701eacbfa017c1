//! Processes whose body is a future: storage, one turn, the result, and what happens at the end.
//!
//! The future lives in the process and is dropped on the core where it ends, before its result is
//! handed to whoever joins.
//!
//! **A crash drops nothing, so nothing that the kernel links to may lie in memory that a crash gives back.** A future may lie
//! on a stack (`pin!`), and its process may be freed while it waits for something, if it was polled with a waker that keeps
//! nothing. So every future of the kernel's, whatever it waits for, links only what has an allocation of its own, which a
//! crash does not free, or leaves nothing but a waker:
//!
//! | future | what it leaves behind when its process crashes |
//! |---|---|
//! | `time::sleep`, `timeout`, `background_timeout`, `ask_within`, `receive_within` | a timer in an allocation of its own, which the crash takes out of its queue |
//! | `send_after`, `send_interval` (no future, but a timer) | the call, which is the system's from the moment when it was set: the message is sent |
//! | `Answer` of an ask | a slot in an allocation of its own, filed under the one who was asked |
//! | `JoinHandle` | a waker in the process that it waits for, which its reference keeps |
//! | `Receive`, `ReceiveMatching` of a process mailbox | nothing: the crash closes the mailbox; the block stays with the addresses |
//! | `out_of_work`, `Executor::all_ended`, `Stopping` | a waker in a list ([`crate::sync::Waiters`]) until the event |
//! | `yield_now` | nothing |
//!
//! **Nothing of the application's runs under a kernel lock or with preemption disabled**, because a failure there stops
//! the kernel. The result is the application's: it is dropped by whoever drops the handle, or by the process itself in
//! its last turn if the handle is gone, and never with the process's memory, which anyone may free. A waker that the
//! application has made itself is called, and dropped, by a process of its own (`sched::spawn::foreign`).
//!
//! ```text
//!                     the process ends                the handle takes it
//! Running ──────────────────────────────────► Ended ─────────────────────► Taken
//!    │ the handle is dropped                    │ the handle is dropped
//!    ▼                                          ▼
//! Abandoned ◄───────────────────────────────────┘   the result is dropped, after the lock
//! ```

use alloc::boxed::Box;
use core::cell::UnsafeCell;
use core::fmt;
use core::future::Future;
use core::mem::{ManuallyDrop, size_of};
use core::pin::Pin;
use core::ptr::NonNull;
use core::task::{Context, Poll, Waker};

use crate::arch::CoreId;
use crate::mem::stack::StackBlock;
use crate::mem::{self, Payer, orphans};
use crate::sched::place::waker;
use crate::sched::process::{Deadline, Header, Priority, ProcessRef, ShareRef, Step, VTable};
use crate::stats;
use crate::sync::{PreemptGuard, SpinLock, account_here, is_kept_for, keep_waker};
use crate::watch::Exit;

/// Why there is no result of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum JoinError {
    /// It panicked or faulted; what it held is lost, the rest of the system goes on.
    Crashed,
    /// It was killed: [`ProcessRef::kill`].
    Killed,
    /// The result was taken before: the handle was awaited again, or after [`JoinHandle::try_take`].
    Taken,
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Crashed => "the process has crashed: see the panic or register dump",
            Self::Killed => "the process was killed",
            Self::Taken => "the process's result was taken before: await its handle once",
        })
    }
}

impl core::error::Error for JoinError {}

enum Outcome<T> {
    Running(Option<Waker>),
    Ended(Result<T, JoinError>),
    Taken,
    /// Nobody will ask for the result.
    Abandoned,
}

/// The part of a task that does not depend on its future's type, only on its result's.
#[repr(C)]
struct Joinable<T> {
    header: Header,
    outcome: SpinLock<Outcome<T>>,
    /// Whether there is, or was, a handle; without, the outcome is abandoned from the beginning.
    is_joined: bool,
}

#[repr(C)]
struct Task<F: Future> {
    joinable: Joinable<F::Output>,
    body: UnsafeCell<ManuallyDrop<F>>,
}

impl<F> Task<F>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    /// What it is seen by is the name of the type `N`.
    const fn table<N>() -> VTable {
        VTable { name: core::any::type_name::<N>, cancel: Some(Self::cancel), ..Self::LASTING }
    }

    /// Of one that nobody can kill.
    const LASTING: VTable = VTable {
        name: core::any::type_name::<F>,
        step: Self::step,
        cancel: None,
        crash: Self::crash,
        piece: None,
        free: Self::free,
        detach: None,
        is_to_end: None,
        at_work: None,
    };

    /// # Safety
    /// As [`VTable::step`], for a header that is the first field of a `Task<F>`.
    unsafe fn step(header: NonNull<Header>) -> Step {
        let task = header.cast::<Self>();
        // SAFETY: the scheduler's reference keeps the task alive during the turn.
        let task = unsafe { task.as_ref() };
        // SAFETY: `header` is alive for as long as the waker, which counts a reference of its own if it
        // is cloned and is otherwise not dropped.
        let waker = ManuallyDrop::new(unsafe { waker::borrowed(header) });
        let mut context = Context::from_waker(&waker);
        // SAFETY: one core at a time runs a turn, so the body is not aliased; it is never moved after
        // the task was boxed, and dropped in place below.
        let body = unsafe { Pin::new_unchecked(&mut **task.body.get()) };
        match body.poll(&mut context) {
            // If it has said that it has more to do the end of the turn knows.
            Poll::Pending => Step::Pending,
            // SAFETY: the future has returned, and no turn follows.
            Poll::Ready(output) => unsafe { task.complete(Ok(output)) },
        }
    }

    /// The last turn ends. Out of line, because no turn but that one needs its registers.
    ///
    /// # Safety
    /// The caller is the process, which does not touch the future any more.
    #[inline(never)]
    unsafe fn complete(&self, result: Result<F::Output, JoinError>) -> Step {
        // SAFETY: by contract, so this is its only drop.
        unsafe { ManuallyDrop::drop(&mut *self.body.get()) };
        self.joinable.end(result);
        // It may have been about to yield, and found more to do.
        StackBlock::current().forget_yield();
        Step::Done
    }

    /// # Safety
    /// As [`VTable::cancel`], for a header that is the first field of a `Task<F>`.
    unsafe fn cancel(header: NonNull<Header>) -> Step {
        // SAFETY: the scheduler's reference keeps the task alive during the turn.
        let task = unsafe { header.cast::<Self>().as_ref() };
        // SAFETY: it waits, or never began, so nobody borrows the future; no turn follows.
        unsafe { task.complete(Err(JoinError::Killed)) }
    }

    /// # Safety
    /// As [`VTable::crash`], for a header that is the first field of a `Task<F>`.
    unsafe fn crash(header: NonNull<Header>, exit: Exit) {
        // SAFETY: the scheduler's reference keeps the task alive.
        let task = unsafe { header.cast::<Self>().as_ref() };
        // SAFETY: the body is neither polled nor dropped any more, and that is where it lies.
        unsafe { orphans::note_and_clear(task.body.get().cast(), size_of::<F>()) };
        // The body is not dropped: it was interrupted at an unknown point, and its destructor could
        // touch a half-changed state. Its memory is given back with the last reference.
        task.joinable.end(Err(if exit == Exit::Killed { JoinError::Killed } else { JoinError::Crashed }));
    }

    /// # Safety
    /// As [`VTable::free`], for a header that is the first field of a boxed `Task<F>`.
    unsafe fn free(header: NonNull<Header>) {
        let task = header.cast::<Self>();
        // SAFETY: the last reference is gone and the task was boxed at spawn. A task that never ended
        // still holds its future, which is dropped here.
        unsafe {
            if !header.as_ref().is_done() {
                ManuallyDrop::drop(&mut *task.as_ref().body.get());
            }
            if header.as_ref().has_crashed() {
                let _here = PreemptGuard::new();
                stats::core_here().crash_bytes_returned.add(size_of::<Self>() as u64);
            }
            drop(Box::from_raw(task.as_ptr()));
        }
    }
}

impl<T> Joinable<T> {
    /// The process has ended. A result that nobody will take is dropped here: that of a process that returned with
    /// preemption enabled, in its own turn; that of one that crashed has no destructor.
    fn end(&self, result: Result<T, JoinError>) {
        if !self.is_joined {
            return;
        }
        let mut outcome = self.outcome.lock();
        match &mut *outcome {
            Outcome::Running(waker) => {
                let waker = waker.take();
                *outcome = Outcome::Ended(result);
                // Whoever is killed before the waking would have whoever joins wait for ever.
                let _here = outcome.unlock();
                if let Some(waker) = waker {
                    waker.wake();
                }
            }
            // The first word holds: it crashed afterwards, in the destructor of its result, or in a waker.
            Outcome::Ended(_) | Outcome::Taken | Outcome::Abandoned => {
                drop(outcome);
                drop(result);
            }
        }
    }
}

/// Whether a task's result is asked for, and whether it can be killed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sort {
    Joined,
    Alone,
    /// Nobody will ask for its result, or can kill it: the kernel's own.
    Lasting,
}

/// Makes a task with one reference for the scheduler and one for the caller; not yet queued. It is seen under the name of the type `N`.
///
/// Gives the future back when there is no memory for it, or `payer`, or else who pays for the caller, cannot pay.
pub(crate) fn create<N, F>(
    future: F,
    sort: Sort,
    priority: Priority,
    (deadline, share): (Option<Box<Deadline>>, Option<ShareRef>),
    affinity: u64,
    payer: Option<Payer>,
) -> Result<(NonNull<Header>, ProcessRef), F>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let account = payer.map_or_else(account_here, |payer| payer.number().into());
    let table = if sort == Sort::Lasting { &Task::<F>::LASTING } else { const { &Task::<F>::table::<N>() } };
    let is_joined = sort == Sort::Joined;
    let header = Header::new(table, priority, affinity, CoreId::BOOT)
        .with_deadline(deadline)
        .with_limits(account, share);
    let outcome = if is_joined { Outcome::Running(None) } else { Outcome::Abandoned };
    let joinable = Joinable { header, outcome: SpinLock::new(outcome), is_joined };
    let task = Task { joinable, body: UnsafeCell::new(ManuallyDrop::new(future)) };
    match mem::try_box_paid_by(payer, task) {
        Ok(task) => {
            let header = NonNull::from(Box::leak(task)).cast::<Header>();
            // SAFETY: the task was made with one reference and is alive.
            Ok((header, unsafe { ProcessRef::count(header) }))
        }
        Err((_, task)) => Err(ManuallyDrop::into_inner(task.body.into_inner())),
    }
}

/// The right to wait for a process and take its result. Dropping it lets the process run on; the result is dropped with it,
/// or by the process itself when it ends later.
///
/// Awaited (polled) again after the result was taken, it is [`JoinError::Taken`] at once.
///
/// ```
/// # use magpie::sched;
/// use magpie::sched::JoinError;
///
/// # sched::run_on_threads(2, 1, async {
/// let mut sum = sched::procedure(|| 40 + 2)?;
/// let mut result = sum.try_take();
/// while result.is_none() {
///     sched::yield_now().await;
///     result = sum.try_take();
/// }
/// assert_eq!(result, Some(Ok(42)));
/// assert!(sum.process().is_done());
/// assert_eq!((&mut sum).await, Err(JoinError::Taken));
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// # }).unwrap().unwrap();
/// ```
pub struct JoinHandle<T> {
    reference: ProcessRef,
    result: core::marker::PhantomData<fn() -> T>,
}

impl<T> JoinHandle<T> {
    /// The one of that process.
    ///
    /// # Safety
    /// It was made by [`create`], to be joined, of a future with this result, and this is its only handle.
    pub(crate) unsafe fn of(reference: ProcessRef) -> Self {
        Self { reference, result: core::marker::PhantomData }
    }

    /// The process itself.
    pub fn process(&self) -> &ProcessRef {
        &self.reference
    }

    fn joinable(&self) -> &Joinable<T> {
        // SAFETY: a handle is made in `of` only, for a task whose first part is a `Joinable<T>`, and
        // its reference keeps that alive.
        unsafe { self.reference.pointer().cast::<Joinable<T>>().as_ref() }
    }

    /// The result, if the process has ended and nobody has taken it.
    pub fn try_take(&self) -> Option<Result<T, JoinError>> {
        let mut outcome = self.joinable().outcome.lock();
        match core::mem::replace(&mut *outcome, Outcome::Taken) {
            Outcome::Ended(result) => Some(result),
            other => {
                *outcome = other;
                None
            }
        }
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // Wakers are cloned and dropped outside the lock, because they may be the application's own and dropping one
        // may free a process.
        let mut waker: Option<Waker> = None;
        loop {
            let mut outcome = self.joinable().outcome.lock();
            match &mut *outcome {
                Outcome::Running(Some(known)) if is_kept_for(known, context.waker()) => return Poll::Pending,
                Outcome::Running(known) => {
                    if let Some(new) = waker.take() {
                        let previous = known.replace(new);
                        drop(outcome);
                        drop(previous);
                        return Poll::Pending;
                    }
                }
                Outcome::Ended(_) => {
                    if let Outcome::Ended(result) = core::mem::replace(&mut *outcome, Outcome::Taken) {
                        return Poll::Ready(result);
                    }
                }
                Outcome::Taken | Outcome::Abandoned => return Poll::Ready(Err(JoinError::Taken)),
            }
            drop(outcome);
            waker = keep_waker(context.waker());
            if waker.is_none() {
                // Without memory it is asked again at once.
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
    }
}

impl<T> Drop for JoinHandle<T> {
    fn drop(&mut self) {
        let outcome = core::mem::replace(&mut *self.joinable().outcome.lock(), Outcome::Abandoned);
        // After the lock: a result that nobody took may be anything, and dropping a waker may free a process.
        drop(outcome);
    }
}
