//! The chain loader: takes a kernel over the serial line and starts it, so that trying a new build needs no card
//! swap. The protocol is in `docs/serial-loader.md`, and the loader's half of it in the library beside this program.
//!
//! It runs on one core, as the firmware left it: at EL2, MMU off. Without the MMU all memory is as strict as device
//! registers, so every access is aligned, which the target demands of the compiler anyway, and nothing here uses an atomic exchange. The other
//! cores stay on the firmware's spin table, where the kernel finds them.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod board;
#[cfg(target_os = "none")]
mod entry;
#[cfg(target_os = "none")]
mod serial;

#[cfg(target_os = "none")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    serial::say("@loader failed: a fault of the loader's own; reset the board\n");
    loop {
        core::hint::spin_loop();
    }
}

/// It is useful on the board only.
#[cfg(not(target_os = "none"))]
fn main() {
    eprintln!("the chain loader runs on the board: cargo xtask image loader --board rpi4");
}
