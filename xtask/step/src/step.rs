//! Which cores take part, and how many of them have come to the end of the window. Each core has a thread in QEMU, which waits here.

use crate::{WINDOW, clock, main_loop};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// For so long a window lasts at least where a core rests: what another one has sent it wakes its thread meanwhile, so that it is not late by many windows.
const NAP: Duration = Duration::from_micros(20);

/// Has Linux end the naps of the threads that are begun from here on when they are over: by itself it takes another 50 microseconds.
pub fn nap_exactly() {
    const ONE_NANOSECOND: libc::c_ulong = 1;
    // SAFETY: changes nothing in memory. If it fails, naps are longer.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, ONE_NANOSECOND) };
}

/// How far the cores have come.
pub struct Step {
    /// Which of them take part, by number.
    awake: Vec<bool>,
    /// How many do.
    active: usize,
    /// How many of these wait for the end of the window.
    arrived: usize,
    window: u64,
    /// One of them sees to the end of the window.
    is_ending: bool,
}

static STEP: Mutex<Step> =
    Mutex::new(Step { awake: Vec::new(), active: 0, arrived: 0, window: 1, is_ending: false });
static NEXT: Condvar = Condvar::new();

/// The only one. A thread that has panicked has ended QEMU.
pub fn lock() -> MutexGuard<'static, Step> {
    STEP.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Step {
    /// There is another core, which rests.
    pub fn exists(&mut self) {
        self.awake.push(false);
    }

    /// A core waits for an interrupt.
    pub fn rests(&mut self, core: usize) {
        if self.set(core, false) {
            self.active -= 1;
            if self.active == 0 {
                clock::runs_by_itself();
            } else if self.is_complete() {
                // One of those that wait. This one has a lock that the main loop takes.
                NEXT.notify_all();
            }
        }
    }

    /// A core does not wait any more, or not yet.
    pub fn is_awake(&mut self, core: usize) {
        if self.set(core, true) {
            if self.active == 0 {
                clock::is_driven();
            }
            self.active += 1;
        }
    }

    /// Whether that is news.
    fn set(&mut self, core: usize, is_awake: bool) -> bool {
        self.awake.get_mut(core).is_some_and(|awake| std::mem::replace(awake, is_awake) != is_awake)
    }

    /// Which window it is.
    pub fn window(&self) -> u64 {
        self.window
    }

    /// Whether a core waits for others.
    pub fn somebody_waits(&self) -> bool {
        self.arrived > 0
    }

    fn is_complete(&self) -> bool {
        self.arrived > 0 && self.arrived >= self.active
    }

    /// The next window begins, for all who wait. The clock has been put forward.
    pub fn next(&mut self) {
        self.arrived = 0;
        self.window += 1;
        self.is_ending = false;
        NEXT.notify_all();
    }
}

/// A core has come to the end of the window, and waits for the others. On its thread.
pub fn arrive(core: usize) {
    let mut step = lock();
    step.is_awake(core);
    step.arrived += 1;
    let window = step.window;
    while step.window == window {
        if step.is_complete() && !step.is_ending {
            step.is_ending = true;
            clock::advance(WINDOW);
            let some_rest = step.active < step.awake.len();
            // What is due now may wake others, which take this lock.
            drop(step);
            main_loop::go_round();
            if some_rest {
                thread::sleep(NAP);
            }
            step = lock();
            // Unless they were out of step, and had to go on.
            if step.window == window {
                step.next();
            }
        } else {
            step = NEXT.wait(step).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
