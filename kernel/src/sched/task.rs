//! Processes whose body is a future: storage, one turn, the result, and what happens at the end.
//!
//! The future lives in the process and is dropped on the core where it ends, before its result is
//! handed to whoever joins.

use alloc::boxed::Box;
use core::cell::UnsafeCell;
use core::fmt;
use core::future::Future;
use core::mem::ManuallyDrop;
use core::pin::Pin;
use core::ptr::NonNull;
use core::task::{Context, Poll, Waker};

use super::priority::Priority;
use super::process::{Header, ProcessRef, VTable};
use super::step::Step;
use super::waker;
use crate::arch::CoreId;
use crate::sync::SpinLock;

/// Why there is no result of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JoinError {
    /// It panicked or faulted; what it held is lost, the rest of the system goes on.
    Crashed,
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Crashed => f.write_str("the process has crashed: see the panic or register dump"),
        }
    }
}

impl core::error::Error for JoinError {}

enum Outcome<T> {
    Running(Option<Waker>),
    Ended(Result<T, JoinError>),
    Taken,
}

/// The part of a task that does not depend on its future's type, only on its result's.
#[repr(C)]
struct Joinable<T> {
    header: Header,
    outcome: SpinLock<Outcome<T>>,
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
    const VTABLE: VTable = VTable { step: Self::step, crash: Self::crash, free: Self::free, detach: None };

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
            Poll::Pending => Step::Pending,
            Poll::Ready(output) => {
                // SAFETY: the future has returned and no turn follows, so this is its only drop.
                unsafe { ManuallyDrop::drop(&mut *task.body.get()) };
                task.joinable.end(Ok(output));
                Step::Done
            }
        }
    }

    /// # Safety
    /// As [`VTable::crash`], for a header that is the first field of a `Task<F>`.
    unsafe fn crash(header: NonNull<Header>) {
        // SAFETY: the scheduler's reference keeps the task alive.
        let task = unsafe { header.cast::<Self>().as_ref() };
        // The body is not dropped: it was interrupted at an unknown point, and its destructor could
        // touch a half-changed state. What it owned is lost, as a dead process's stack is.
        task.joinable.end(Err(JoinError::Crashed));
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
            drop(Box::from_raw(task.as_ptr()));
        }
    }
}

impl<T> Joinable<T> {
    fn end(&self, result: Result<T, JoinError>) {
        let before = core::mem::replace(&mut *self.outcome.lock(), Outcome::Ended(result));
        if let Outcome::Running(Some(waker)) = before {
            waker.wake();
        }
    }
}

/// Makes a task with one reference for the scheduler and one for the handle; not yet queued.
///
/// Gives the future back when there is no memory for it.
pub(super) fn create<F>(
    future: F,
    priority: Priority,
    affinity: u64,
    home: CoreId,
) -> Result<(NonNull<Header>, JoinHandle<F::Output>), F>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let header = Header::new(&Task::<F>::VTABLE, priority, affinity, home);
    let joinable = Joinable { header, outcome: SpinLock::new(Outcome::Running(None)) };
    let task = Task { joinable, body: UnsafeCell::new(ManuallyDrop::new(future)) };
    match crate::mem::try_box(task) {
        Ok(task) => {
            let header = NonNull::from(Box::leak(task)).cast::<Header>();
            // SAFETY: the task was made with one reference and is alive.
            let reference = unsafe { ProcessRef::count(header) };
            Ok((header, JoinHandle { reference, result: core::marker::PhantomData }))
        }
        Err((_, task)) => Err(ManuallyDrop::into_inner(task.body.into_inner())),
    }
}

/// The right to wait for a process and take its result. Dropping it lets the process run on.
pub struct JoinHandle<T> {
    reference: ProcessRef,
    result: core::marker::PhantomData<fn() -> T>,
}

impl<T> JoinHandle<T> {
    /// The process itself.
    pub fn process(&self) -> &ProcessRef {
        &self.reference
    }

    fn joinable(&self) -> &Joinable<T> {
        // SAFETY: a handle is made in `create` only, for a task whose first part is a `Joinable<T>`, and
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
        let mut outcome = self.joinable().outcome.lock();
        match core::mem::replace(&mut *outcome, Outcome::Taken) {
            Outcome::Ended(result) => Poll::Ready(result),
            Outcome::Running(previous) => {
                *outcome = Outcome::Running(Some(context.waker().clone()));
                drop(outcome);
                // After the lock: dropping a waker may free a process.
                drop(previous);
                Poll::Pending
            }
            Outcome::Taken => panic!("a process's result was awaited twice; await a JoinHandle once"),
        }
    }
}
