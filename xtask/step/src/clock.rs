//! The time that QEMU asks for: what the cores have executed; but while all of them rest it goes on as the host's does, or nothing would wake them.

use libc::{CLOCK_MONOTONIC, SYS_clock_gettime, c_int, clockid_t, timespec};
use std::mem::MaybeUninit;
use std::sync::{Mutex, MutexGuard, PoisonError};

struct Clock {
    /// In nanoseconds; 0 until it begins.
    time: u64,
    /// When it began to run by itself, by the host's clock, if it does.
    since: Option<u64>,
}

impl Clock {
    fn now(&self) -> u64 {
        self.time + self.since.map_or(0, |since| hosts().saturating_sub(since))
    }
}

static CLOCK: Mutex<Clock> = Mutex::new(Clock { time: 0, since: None });

fn lock() -> MutexGuard<'static, Clock> {
    CLOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the host's clock says, or an error's number.
fn ask_host(clock: clockid_t) -> Result<timespec, c_int> {
    let mut time = MaybeUninit::<timespec>::uninit();
    // SAFETY: the call writes one such, if it succeeds.
    unsafe {
        match libc::syscall(SYS_clock_gettime, clock, time.as_mut_ptr()) {
            0 => Ok(time.assume_init()),
            failed => Err(failed as c_int),
        }
    }
}

/// The host's monotonic clock in nanoseconds.
fn hosts() -> u64 {
    ask_host(CLOCK_MONOTONIC).map_or(0, |time| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// From now on it is this one.
pub fn begin() {
    let now = hosts();
    *lock() = Clock { time: now, since: Some(now) };
}

/// All cores rest.
pub fn runs_by_itself() {
    lock().since = Some(hosts());
}

/// One does not any more.
pub fn is_driven() {
    let mut clock = lock();
    clock.time = clock.now();
    clock.since = None;
}

/// The cores have executed so much.
pub fn advance(nanoseconds: u64) {
    lock().time += nanoseconds;
}

/// In the place of the C library's.
///
/// # Safety
/// As there: `time` points to where the time is to be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(clock: clockid_t, time: *mut timespec) -> c_int {
    if clock == CLOCK_MONOTONIC {
        let pretended = lock();
        if pretended.time != 0 {
            let now = pretended.now();
            let now = timespec {
                tv_sec: (now / 1_000_000_000) as libc::time_t,
                tv_nsec: (now % 1_000_000_000) as libc::c_long,
            };
            // SAFETY: by contract.
            unsafe { time.write(now) };
            return 0;
        }
    }
    match ask_host(clock) {
        Ok(now) => {
            // SAFETY: by contract.
            unsafe { time.write(now) };
            0
        }
        Err(failed) => failed,
    }
}
