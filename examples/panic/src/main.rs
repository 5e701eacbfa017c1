//! What a crash looks like: one process panics, another runs into an unmapped page, a third has no room for what it has on
//! its stack, and each ends alone; then the main process panics, and the image ends with failure. With the boot argument
//! `seconds=N` it waits for so long before, for somebody who wants to look: `cargo xtask qemu panic --commands --append
//! seconds=60`, and then `crashes`.
#![cfg_attr(target_os = "none", no_std, no_main)]

use core::hint::black_box;
use core::time::Duration;

use magpie::ExitCode;
use magpie::log::text;
use magpie::{machine, sched, time};

magpie::entry!(crashes);

async fn crashes() -> ExitCode {
    let panicking = sched::procedure(|| {
        if black_box(true) {
            panic!("one process has a bug");
        }
    });
    let faulting = sched::procedure(|| {
        let nowhere = black_box(8_usize) as *const u64;
        // SAFETY: deliberately not: nothing is mapped there, and the process is to be ended for it.
        text!("read {}", unsafe { nowhere.read_volatile() });
    });
    let overflowing = sched::procedure(|| {
        // The usual stack has 51 KiB; with the boot argument stack_kib=256 there is room.
        let large = black_box([1_u8; 100 * 1024]);
        text!("{} bytes have room", large.len());
    });
    for started in [panicking, faulting, overflowing] {
        match started {
            Ok(handle) => text!("its end, as others see it: {:?}", handle.await),
            Err(error) => text!("not started: {error:?}"),
        }
    }
    if let Some(seconds) = machine::argument("seconds").and_then(|seconds| seconds.parse().ok()) {
        time::sleep(Duration::from_secs(seconds)).await;
    }
    panic!("the main process has a bug, too");
}
