//! A driver of one's own: for the clock of QEMU's `virt`, a PL031, which tells the time in seconds and interrupts when one has come. It is found in the device
//! tree, claims its registers and its interrupt, and waits for four seconds, one by one. At the second it crashes, on purpose: the clock is quiet at once, and the
//! supervisor starts the driver anew.
#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;

use magpie::device::{self, Registers};
use magpie::interrupt::Interrupt;
use magpie::prelude::*;

magpie::entry!(clock);

// Registers (Arm DDI 0224B).
const SECONDS: usize = 0x00;
const ALARM: usize = 0x04;
const INTERRUPT_MASK: usize = 0x10;
const INTERRUPT_CLEAR: usize = 0x1c;

/// How many seconds have come.
static CAME: AtomicU32 = AtomicU32::new(0);

/// In a crash, or when the driver ends.
fn quiet(registers: &Registers) {
    registers.write_u32(INTERRUPT_MASK, 0);
}

async fn drive() -> magpie::Result {
    let clock = device::find("arm,pl031").next().ok_or("this machine has no PL031")?;
    let range = clock.registers(0).ok_or("the device tree does not say where it is")?;
    // SAFETY: the tree says that a PL031 is there, and it reads and writes no memory.
    let registers = unsafe { Registers::claim(range, quiet)? };
    let mut interrupt = Interrupt::claim(clock.line(0)?)?;
    text!("driving {}", clock.name());
    while CAME.load(Ordering::Relaxed) < 4 {
        let now = registers.read_u32(SECONDS);
        registers.write_u32(ALARM, now + 1);
        registers.write_u32(INTERRUPT_MASK, 1);
        interrupt.wait().await?;
        // It asks until it is told that it was heard.
        registers.write_u32(INTERRUPT_CLEAR, 1);
        let later = registers.read_u32(SECONDS) - now;
        let came = CAME.fetch_add(1, Ordering::Relaxed) + 1;
        text!("second {came} came, {later} later");
        assert!(came != 2, "on purpose");
    }
    Ok(())
}

async fn clock() -> magpie::Result {
    let drivers =
        Supervisor::one_for_one().child(Child::process("clock", |_| drive()).transient()).start()?;
    while CAME.load(Ordering::Relaxed) < 4 {
        if drivers.process().is_done() {
            return Err("the clock cannot be driven".into());
        }
        time::sleep(Duration::from_millis(50)).await;
    }
    drivers.stop().await?;
    Ok(())
}
