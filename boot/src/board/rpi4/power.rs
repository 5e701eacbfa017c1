//! How a run ends on the board: the power manager's watchdog resets it, or switches it off. And the same watchdog while it runs.

use crate::memory::Range;
use magpie::internals::arch::cpu;
use magpie::machine;

use crate::exit;

/// The power manager.
const POWER_MANAGER: usize = 0xfe10_0000;
/// Its page.
pub(super) const PAGE: Range = Range { start: POWER_MANAGER, end: POWER_MANAGER + 0x1000 };
const RESET_CONTROL: usize = POWER_MANAGER + 0x1c;
const RESET_STATUS: usize = POWER_MANAGER + 0x20;
const WATCHDOG: usize = POWER_MANAGER + 0x24;
/// The password, which every write needs in its upper byte.
const PASSWORD: u32 = 0x5a00_0000;
const CONFIGURATION: u32 = 0x30;
const FULL_RESET: u32 = 0x20;
/// The partition number that tells the firmware to stay off.
const STAY_OFF: u32 = 0x555;
/// Nothing happens when the watchdog has counted to zero: what the register holds after a reset.
const NO_RESET: u32 = 0x102;
/// The watchdog counts 65536 in a second, 20 bits of them.
const SOON: u32 = 10;
const WATCHDOG_SECONDS: u32 = 15;

fn read(register: usize) -> u32 {
    // SAFETY: a register of the board's power manager, mapped before the console was.
    unsafe { core::ptr::with_exposed_provenance::<u32>(register).read_volatile() }
}

fn write(register: usize, value: u32) {
    // SAFETY: as in `read`.
    unsafe { core::ptr::with_exposed_provenance_mut::<u32>(register).write_volatile(PASSWORD | value) }
}

/// Ends the run as the boot argument `end` says: `reset`, `off`, or (without one) by waiting for ever.
pub(super) fn end() -> ! {
    match machine::argument("end") {
        Some("reset") => reset(),
        Some("off") => {
            write(RESET_STATUS, read(RESET_STATUS) & !0xff00_0000 | STAY_OFF);
            reset();
            // The reset takes a moment. Firmware that takes calls can do it, too.
            exit::switch_off()
        }
        // Nobody tells it any more that all is well.
        _ => tell_watchdog(false),
    }
    loop {
        cpu::wait_for_interrupt();
    }
}

/// Resets the board, in a moment.
pub(super) fn reset() {
    reset_after(SOON);
}

/// Has the watchdog wait again, or not at all.
pub(super) fn tell_watchdog(is_well: bool) {
    if is_well { reset_after(WATCHDOG_SECONDS << 16) } else { write(RESET_CONTROL, NO_RESET) }
}

fn reset_after(ticks: u32) {
    write(WATCHDOG, ticks);
    write(RESET_CONTROL, read(RESET_CONTROL) & !0xff00_0000 & !CONFIGURATION | FULL_RESET);
}
