//! Listening to the serial line: an interrupt says that something has arrived (`serial/port.rs`), and a process takes it.

use core::future::poll_fn;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Poll, Waker};

use magpie::arch::CoreId;
use magpie::log::text;
use magpie::machine;
use magpie::sched::{LoadMonitor, Priority, Spawn};
use spin::Once;

use super::carry_out::answer;
use super::line::Line;
use crate::pl011::CONSOLE;
use crate::serial::port::{self, Refused, Taker};

/// Something has arrived that the process has not looked at.
static ARRIVED: AtomicBool = AtomicBool::new(false);
static LISTENER: Once<Waker> = Once::new();

/// With the boot argument `commands`, listens on the console's port.
pub(crate) fn begin() {
    if machine::argument("commands").is_none() {
        return;
    }
    match port::take(Taker::Commands) {
        Ok(()) => {}
        Err(Refused::NoInterrupt) => {
            text!("boot argument commands ignored: the device tree names no interrupt of the serial port");
            return;
        }
        // Nobody else has run yet.
        Err(Refused::Taken) => return,
    }
    // Urgent, because otherwise a loaded system would not answer; on the core that takes the interrupt.
    let listener = Spawn::new().priority(Priority::High).pinned(CoreId::BOOT).start(listen());
    if let Err(error) = listener {
        text!("boot argument commands ignored: {error}");
        port::leave();
    }
}

/// The handler of the port's interrupt, which has masked it.
pub(crate) fn on_arrival() {
    // Release: pairs with the acquire in `arrival`; the wake-up orders it as well.
    ARRIVED.store(true, Ordering::Release);
    if let Some(listener) = LISTENER.get() {
        listener.wake_by_ref();
    }
}

/// Waits until the interrupt says that something has arrived.
async fn arrival() {
    poll_fn(|context| {
        // A process keeps the same waker as long as it lives, and only one process awaits this.
        LISTENER.call_once(|| context.waker().clone());
        // Acquire: pairs with the release in `on_arrival`. An interrupt after this look wakes the process again.
        if ARRIVED.swap(false, Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

async fn listen() {
    let mut line = Line::new();
    let mut monitor = LoadMonitor::new().ok();
    text!("commands are taken on this line: help lists them");
    loop {
        while let Some(byte) = CONSOLE.receive() {
            if let Some(completed) = line.push(byte) {
                answer(completed, &mut monitor);
            }
        }
        CONSOLE.unmask_receive();
        arrival().await;
    }
}
