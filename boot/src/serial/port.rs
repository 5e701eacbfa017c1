//! The port's interrupt, and who takes what arrives there: the kernel's commands, the application, or nobody.
//!
//! The interrupt says that something has arrived. Its handler masks it and tells whoever takes; that one empties the port's queue and
//! unmasks. The line is a level: what arrives between the last look and the unmasking raises the interrupt at once, so nothing is missed.

use core::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use magpie::internals::arch::gic;
use magpie::interrupt::{Line, Trigger};
use spin::Once;

use crate::commands::listen;
use crate::pl011::CONSOLE;

/// No interrupt has this number.
const NONE: u32 = u32::MAX;

/// The port's interrupt, if it is known.
static INTERRUPT: AtomicU32 = AtomicU32::new(NONE);
static TAKER: AtomicU8 = AtomicU8::new(Taker::Nobody as u8);
/// What the application does with it, once it has taken it: an image whose application never does has nothing of that.
static APPLICATION: Once<fn()> = Once::new();

/// Who takes what arrives.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Taker {
    Nobody,
    Commands,
    Application,
}

/// Why nobody can take what arrives.
pub(crate) enum Refused {
    /// It is not known what interrupt the port has.
    NoInterrupt,
    /// Another does already.
    Taken,
}

/// At boot, before anybody can ask: what interrupt the port has.
pub(crate) fn note_interrupt(interrupt: Option<u32>) {
    // Relaxed: other cores are released after this.
    INTERRUPT.store(interrupt.unwrap_or(NONE), Ordering::Relaxed);
    if let Some(number) = interrupt {
        // SAFETY: the port's, by the tree or the board; boot runs alone.
        unsafe { magpie::internals::interrupt::keep(Line { number, trigger: Trigger::Level }) };
    }
}

/// From now on `taker` takes what arrives. The receiver is switched on; the interrupt stays masked until [`CONSOLE`] is told.
pub(crate) fn take(taker: Taker) -> Result<(), Refused> {
    let interrupt = INTERRUPT.load(Ordering::Relaxed);
    if interrupt == NONE {
        return Err(Refused::NoInterrupt);
    }
    // Relaxed: what the handler does for either is ordered by the port, which is unmasked later.
    let first =
        TAKER.compare_exchange(Taker::Nobody as u8, taker as u8, Ordering::Relaxed, Ordering::Relaxed);
    if first.is_err() {
        return Err(Refused::Taken);
    }
    CONSOLE.prepare_receive();
    gic::unmask(interrupt);
    Ok(())
}

/// As [`take`], for the application, which is told by that function, in the handler.
pub(crate) fn take_for_application(on_arrival: fn()) -> Result<(), Refused> {
    APPLICATION.call_once(|| on_arrival);
    take(Taker::Application)
}

/// Nobody takes it any more.
pub(crate) fn leave() {
    CONSOLE.mask_receive();
    TAKER.store(Taker::Nobody as u8, Ordering::Relaxed);
}

/// A device's interrupt: the port's, if it has that number.
pub(crate) fn on_interrupt(number: u32) {
    if number != INTERRUPT.load(Ordering::Relaxed) {
        return;
    }
    CONSOLE.mask_receive();
    match TAKER.load(Ordering::Relaxed) {
        taker if taker == Taker::Commands as u8 => listen::on_arrival(),
        taker if taker == Taker::Application as u8 => {
            if let Some(on_arrival) = APPLICATION.get() {
                on_arrival();
            }
        }
        _ => {}
    }
}
