//! QEMU's main loop: timers fire there. At the end of each window it goes round once, or on a host that does something else meanwhile they would come late.
//!
//! It waits in `ppoll`, which this library takes the place of: one file more, the *bell*, is looked at there, and each call says that a round is over.

use libc::{EFD_CLOEXEC, EFD_NONBLOCK, POLLIN, SYS_ppoll, c_int, c_void, nfds_t, pollfd, sigset_t, timespec};
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

struct Rounds {
    /// How often it has come to wait.
    count: u64,
    /// It waits.
    waits: bool,
    /// How often those who wait for it were sent away.
    sent_away: u64,
}

static ROUNDS: Mutex<Rounds> = Mutex::new(Rounds { count: 0, waits: false, sent_away: 0 });
static CAME_ROUND: Condvar = Condvar::new();

/// The bell, and the thread of the loop; 0 until it begins.
static BELL: AtomicI32 = AtomicI32::new(0);
static THREAD: AtomicI32 = AtomicI32::new(0);

fn lock() -> MutexGuard<'static, Rounds> {
    ROUNDS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn this_thread() -> i32 {
    // SAFETY: it has no conditions.
    unsafe { libc::gettid() }
}

/// On the thread of the loop, before that. Whether it can be rung for.
pub fn begin() -> bool {
    // SAFETY: it has no conditions.
    let bell = unsafe { libc::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
    if bell > 0 {
        BELL.store(bell, Ordering::Relaxed);
        // Release pairs with the acquire below: who knows the thread knows the bell.
        THREAD.store(this_thread(), Ordering::Release);
    }
    bell > 0
}

/// It may be waiting itself for those that wait for it: so it is as QEMU ends.
pub fn send_away() {
    lock().sent_away += 1;
    CAME_ROUND.notify_all();
}

/// Has it go round: what was due when this was called has been seen to when it returns, unless the caller was [sent away](send_away). The caller holds no lock that the loop takes.
pub fn go_round() {
    let mut rounds = lock();
    // One that is under way may have looked at the clock before.
    let until = rounds.count + if rounds.waits { 1 } else { 2 };
    let once = 1_u64;
    // SAFETY: an event's file takes so many bytes. It fails only if it has been rung very often, and then it rings.
    unsafe {
        libc::write(BELL.load(Ordering::Relaxed), (&raw const once).cast::<c_void>(), size_of::<u64>())
    };
    let sent_away = rounds.sent_away;
    while rounds.count < until && rounds.sent_away == sent_away {
        rounds = CAME_ROUND.wait(rounds).unwrap_or_else(PoisonError::into_inner);
    }
}

/// The system call itself.
///
/// # Safety
/// As of the function below.
unsafe fn wait(fds: *mut pollfd, count: nfds_t, time: *const timespec, signals: *const sigset_t) -> c_int {
    /// Bytes of a set of signals, to the kernel.
    const SET_BYTES: usize = 8;
    // It is written to.
    // SAFETY: by contract.
    let mut time = unsafe { time.as_ref() }.copied();
    let time = time.as_mut().map_or(ptr::null_mut(), ptr::from_mut);
    // SAFETY: by contract.
    unsafe { libc::syscall(SYS_ppoll, fds, count, time, signals, SET_BYTES) as c_int }
}

/// In the place of the C library's.
///
/// # Safety
/// As there: so many `fds`, and `time` and `signals` if they are given.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ppoll(
    fds: *mut pollfd,
    count: nfds_t,
    time: *const timespec,
    signals: *const sigset_t,
) -> c_int {
    // Acquire: pairs with the release of `begin`.
    if THREAD.load(Ordering::Acquire) != this_thread() {
        // SAFETY: by contract.
        return unsafe { wait(fds, count, time, signals) };
    }
    let bell = BELL.load(Ordering::Relaxed);
    let asked: &mut [pollfd] =
        // SAFETY: by contract.
        if count == 0 { &mut [] } else { unsafe { std::slice::from_raw_parts_mut(fds, count as usize) } };
    let mut all = asked.to_vec();
    all.push(pollfd { fd: bell, events: POLLIN, revents: 0 });
    {
        let mut rounds = lock();
        rounds.count += 1;
        rounds.waits = true;
        CAME_ROUND.notify_all();
    }
    // SAFETY: by contract, and one file more.
    let mut ready = unsafe { wait(all.as_mut_ptr(), all.len() as nfds_t, time, signals) };
    lock().waits = false;
    if ready > 0 {
        let rang = all.pop().is_some_and(|bell| bell.revents != 0);
        if rang {
            let mut times = 0_u64;
            // SAFETY: an event's file gives so many bytes.
            unsafe { libc::read(bell, (&raw mut times).cast::<c_void>(), size_of::<u64>()) };
            ready -= 1;
        }
        asked.copy_from_slice(&all);
    }
    ready
}
