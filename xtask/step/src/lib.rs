//! A plugin of QEMU's that holds the cores of a guest in step: `cargo xtask bench --in-step`.
//!
//! QEMU knows two clocks. With `-icount` one core runs after the other, and time is what all of them execute together; who is held up by another core
//! does not show. Without it the cores run at once, and time is the host's, on however many processors it has. Here the cores run at once, and time is
//! their own: an instruction takes a nanosecond, on each core. After [`WINDOW`] instructions a core waits until all others have executed as
//! many. One that waits for an interrupt takes no part, and is not waited for.
//!
//! - [`step`] says who has come how far, and who waits.
//! - [`clock`] is the time that QEMU asks for: this library is loaded before the C library (`LD_PRELOAD`), and so takes the place of its
//!   `clock_gettime`.
//! - [`main_loop`] is that of QEMU, where timers fire: at the end of each window.
//! - [`plugin`] has what it needs of QEMU.
//!
//! It is no model of a processor: there are no caches, every instruction takes as long as any other, and what two cores do within a window comes
//! in whatever order the host has them run. So figures differ a little from run to run.

#![cfg(target_os = "linux")]

mod clock;
mod main_loop;
mod plugin;
mod step;

use plugin::{Block, Count, Counter, Id};
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

/// How many instructions a core executes before it waits for the others. Timers fire that much too late.
const WINDOW: u64 = 500;

/// A core that is not in step for so long is waited for no more: QEMU may be holding it up until the others stop.
const PATIENCE: Duration = Duration::from_millis(3);

/// What each core has executed of its window.
static EXECUTED: OnceLock<Counter> = OnceLock::new();

extern "C" fn on_core(_: Id, _: c_uint) {
    step::lock().exists();
}

extern "C" fn on_rest(_: Id, core: c_uint) {
    step::lock().rests(core as usize);
}

extern "C" fn on_awake(_: Id, core: c_uint) {
    step::lock().is_awake(core as usize);
}

/// A core has executed what it may in this window.
extern "C" fn on_full(core: c_uint, _: *mut c_void) {
    if let Some(executed) = EXECUTED.get() {
        executed.take(core, WINDOW);
    }
    step::arrive(core as usize);
}

/// Code is translated: it is to count what it executes.
extern "C" fn on_translation(_: Id, block: *mut Block) {
    if let Some(executed) = EXECUTED.get() {
        plugin::count(block, executed, WINDOW, on_full);
    }
}

/// Those who are out of step go on.
fn keep_going() {
    let mut last = 0;
    loop {
        thread::sleep(PATIENCE);
        let mut step = step::lock();
        if step.window() == last && step.somebody_waits() {
            main_loop::send_away();
            clock::advance(WINDOW);
            step.next();
        }
        last = step.window();
    }
}

/// QEMU begins.
///
/// # Safety
/// The caller is QEMU, as it loads its plugins.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    id: Id,
    _: *const c_void,
    _: c_int,
    _: *const *const c_char,
) -> c_int {
    if !main_loop::begin() {
        return 1;
    }
    step::nap_exactly();
    EXECUTED.get_or_init(Counter::new);
    clock::begin();
    thread::spawn(keep_going);
    plugin::register(id, &plugin::Callbacks { on_core, on_rest, on_awake, on_translation });
    0
}

/// Of the interface that this plugin was made for: that of QEMU 9.1, which has what it needs.
#[unsafe(no_mangle)]
pub static qemu_plugin_version: c_int = 3;

const _: () = assert!(size_of::<Count>() == 16);
