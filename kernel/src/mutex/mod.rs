//! A mutex for applications: data that several processes and actors change in place.
//!
//! A process that waits for it awaits it, so its core runs others. It disables no preemption: its holder may be
//! preempted, may take long, and may crash. Then the data may be half-changed, so the mutex is *poisoned*: whoever
//! waits for it is told, and nobody can access the data again. What must outlive a crash belongs in an actor of its
//! own, or is started anew by whoever is told.
//!
//! How the kernel knows: destructors do not run in a crash. But a guard cannot leave the turn in which it was taken,
//! because it is not `Send`: it lives and ends on one stack. So the word of the mutex says which stack holds it, and
//! how often code on that stack had crashed before (see [`StackBlock`]). If it has once more since, the holder is gone.
//! That alone releases nothing, because a leaked guard may have left a reference to the data anywhere. A poisoned mutex
//! hands out nothing, so it is sound whatever happened to the guard.
//!
//! A crash wakes whoever waits for a mutex, and each looks again. All wait in a few lists of the kernel's, because a
//! mutex may lie in memory that goes with its holder; a few processes can wait in each without memory from the heap.
//!
//! It is not fair: whoever tries when it is free gets it.

pub(crate) mod lock_word;

use core::cell::UnsafeCell;
use core::fmt;
use core::future::Future;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::pin::Pin;
use core::task::{Context, Poll};

use crate::mem::stack::StackBlock;
use crate::sync::{PreemptGuard, Seat, Waiters};
use lock_word::{Holder, LockWord, Taken};

/// Data that only one holder at a time may change.
///
/// ```
/// use magpie::mutex::Mutex;
///
/// static TOTAL: Mutex<u64> = Mutex::new(0);
///
/// async fn add(number: u64) {
///     match TOTAL.lock().await {
///         Ok(mut total) => *total += number,
///         Err(poisoned) => magpie::log::text!("{poisoned}"),
///     }
/// }
/// fn start() { let _ = magpie::sched::spawn(add(3)); }
/// ```
///
/// ```
/// use magpie::mutex::{Mutex, TryLockError};
///
/// let mut names = Mutex::new(vec!["ada"]);
/// // Nobody else has it yet, so it need not be locked.
/// names.get_mut().push("grace");
/// let guard = names.try_lock()?;
/// assert!(matches!(names.try_lock(), Err(TryLockError::Held)));
/// drop(guard);
/// assert!(!names.is_poisoned());
/// assert_eq!(names.into_inner(), ["ada", "grace"]);
/// # Ok::<(), TryLockError>(())
/// ```
///
/// A guard stays in the turn in which it was taken: it ends before the next `await`.
///
/// ```compile_fail
/// use magpie::mutex::Mutex;
/// static TOTAL: Mutex<u64> = Mutex::new(0);
/// async fn hold() {
///     let total = TOTAL.lock().await;
///     magpie::sched::yield_now().await;
///     drop(total);
/// }
/// fn start() { let _ = magpie::sched::spawn(hold()); }
/// ```
pub struct Mutex<T> {
    word: LockWord,
    data: UnsafeCell<T>,
}

// SAFETY: the word gives the data to one holder at a time, so sharing the mutex moves the data between cores but never
// shares it.
unsafe impl<T: Send> Sync for Mutex<T> {}

/// The holder has crashed: the data may be half-changed, and nobody can access it again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Poisoned;

impl fmt::Display for Poisoned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the mutex is poisoned: who held it has crashed; start anew what it guards")
    }
}

impl core::error::Error for Poisoned {}

/// Why a mutex was not taken at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum TryLockError {
    /// Somebody holds it.
    Held,
    /// Its holder has crashed: see [`Poisoned`].
    Poisoned,
}

impl fmt::Display for TryLockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held => f.write_str("somebody holds the mutex: try again later"),
            Self::Poisoned => Poisoned.fmt(f),
        }
    }
}

impl core::error::Error for TryLockError {}

impl<T> Mutex<T> {
    /// A free mutex around `data`.
    pub const fn new(data: T) -> Self {
        Self { word: LockWord::new(), data: UnsafeCell::new(data) }
    }

    /// Waits for it and takes it. The future of this does nothing until it is awaited.
    ///
    /// A holder that waits for it again waits for itself, for ever.
    pub fn lock(&self) -> Lock<'_, T> {
        Lock { mutex: self, seat: self.waiting().seat() }
    }

    /// Takes it if it is free: for a behaviour, which cannot wait.
    ///
    /// # Errors
    /// See [`TryLockError`].
    pub fn try_lock(&self) -> Result<MutexGuard<'_, T>, TryLockError> {
        match self.word.take(this_stack(), is_gone) {
            Taken::Yes => Ok(MutexGuard { mutex: self, not_send: PhantomData }),
            Taken::Held => Err(TryLockError::Held),
            Taken::Poisoned => Err(TryLockError::Poisoned),
        }
    }

    /// Whether its holder has crashed.
    pub fn is_poisoned(&self) -> bool {
        self.word.is_poisoned(is_gone)
    }

    /// The data, without a lock: nobody else has the mutex.
    pub fn get_mut(&mut self) -> &mut T {
        self.data.get_mut()
    }

    /// The data.
    pub fn into_inner(self) -> T {
        self.data.into_inner()
    }

    /// The list of those who wait for this mutex, among others.
    fn waiting(&self) -> &'static Waiters {
        &WAITING[((&raw const self.word).addr() >> 4) % LISTS]
    }
}

impl<T> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_poisoned() { "Mutex(poisoned)" } else { "Mutex" })
    }
}

/// The future of [`Mutex::lock`].
#[must_use = "the mutex is taken by who awaits this"]
pub struct Lock<'a, T> {
    mutex: &'a Mutex<T>,
    seat: Seat<'static>,
}

impl<'a, T> Future for Lock<'a, T> {
    type Output = Result<MutexGuard<'a, T>, Poisoned>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mutex = self.mutex;
        loop {
            match mutex.try_lock() {
                Ok(guard) => return Poll::Ready(Ok(guard)),
                Err(TryLockError::Poisoned) => return Poll::Ready(Err(Poisoned)),
                Err(TryLockError::Held) => {}
            }
            // Only the word counts, whatever the waiter was told.
            if self.seat.poll(context.waker(), |_told| !mutex.word.wait(is_gone)).is_pending() {
                return Poll::Pending;
            }
        }
    }
}

/// The data of a mutex, until dropped.
#[must_use = "dropped at once it guards nothing"]
pub struct MutexGuard<'a, T> {
    mutex: &'a Mutex<T>,
    /// The word names the stack that it was taken on.
    not_send: PhantomData<*mut ()>,
}

// SAFETY: a shared guard can only be read through.
unsafe impl<T: Sync> Sync for MutexGuard<'_, T> {}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the guard exists, so the mutex is held, or poisoned; nobody else gets a reference meanwhile.
        unsafe { &*self.mutex.data.get() }
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as for `deref`, and the guard is borrowed exclusively.
        unsafe { &mut *self.mutex.data.get() }
    }
}

impl<T: fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        let waiting = self.mutex.waiting();
        // Whoever is killed between the two would have those wait for ever who could take it.
        let whole = PreemptGuard::new();
        // After the mutex was given back it may be gone.
        let are_left = self.mutex.word.give() && waiting.tell_first();
        // Many may wait. From here on those who were told go on.
        drop(whole);
        if are_left {
            waiting.tell_rest();
        }
    }
}

/// Lists in which waiters of all mutexes wait, by the address of the mutex.
const LISTS: usize = 8;

static WAITING: [Waiters; LISTS] = [const { Waiters::new() }; LISTS];

/// The stack of the caller, as a word names it.
fn this_stack() -> Holder {
    Holder::new(StackBlock::current().life())
}

/// Whether code on that stack has crashed since.
fn is_gone(holder: Holder) -> bool {
    // SAFETY: a word names only holders that `this_stack` has made.
    unsafe { StackBlock::life_has_ended(holder.number()) }
}

/// The [life](StackBlock::end_life) of some code has ended: what it holds, if anything, it holds for ever. With interrupts unmasked, for many may wait.
pub(crate) fn tell_of_crash() {
    for list in &WAITING {
        list.tell_all(|| ());
    }
}
