//! The green LED of the Raspberry Pi 4 blinks, five times, or as the boot argument `times=N` says. Who makes it blink knows no board: it is written for
//! `embedded-hal`. At the third time it crashes, on purpose: the LED is off at once, and the supervisor starts it anew.
#![cfg_attr(target_os = "none", no_std, no_main)]

use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;

use embedded_hal::digital::{PinState, StatefulOutputPin};
use magpie::prelude::*;
use magpie_drivers::pi::gpio::{LED, Output};

magpie::entry!(blink);

/// How long it is on, and how long off.
const HALF: Duration = Duration::from_millis(200);
/// The time in which it crashes.
const FATAL: u32 = 3;

/// How often it was on.
static LIT: AtomicU32 = AtomicU32::new(0);

async fn flash<P: StatefulOutputPin>(led: &mut P, times: u32) -> Result<(), P::Error> {
    while LIT.load(Ordering::Relaxed) < times {
        led.set_high()?;
        let time = LIT.fetch_add(1, Ordering::Relaxed) + 1;
        text!("{time}: {}", if led.is_set_high()? { "on" } else { "dark, although it was switched on" });
        time::sleep(HALF).await;
        assert!(time != FATAL, "on purpose");
        led.set_low()?;
        text!("{time}: {}", if led.is_set_low()? { "off" } else { "bright, although it was switched off" });
        time::sleep(HALF).await;
    }
    Ok(())
}

async fn blink() -> magpie::Result {
    let times = machine::argument("times").and_then(|text| text.parse().ok()).unwrap_or(5);
    let child = Child::process("blinks", move |_| async move {
        let mut led = Output::claim(LED, PinState::Low).inspect_err(|error| text!("the LED: {error}"))?;
        flash(&mut led, times).await
    });
    let blinks = Supervisor::one_for_one().child(child.transient()).start()?;
    // It ends when its child has.
    while !blinks.process().is_done() && LIT.load(Ordering::Relaxed) < times {
        time::sleep(HALF).await;
    }
    if LIT.load(Ordering::Relaxed) < times {
        return Err("there is no LED: cargo xtask qemu blink --board rpi4".into());
    }
    blinks.stop().await?;
    Ok(())
}
