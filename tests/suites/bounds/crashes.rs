//! How long something urgent waits while others panic far down their stacks: what is left there takes long to look at.

use core::hint::black_box;

use magpie::sched::{self, JoinError};
use magpie_tests::{ensure_eq, kernel_test};

use crate::crowds::beside_urgent;

/// So many panic, one after the other.
const PANICS: usize = 20;

/// So deep it panics, with half a KiB on the stack for each call.
const CALLS: u64 = 64;

fn deeper(depth: u64) -> u64 {
    assert!(depth < CALLS, "on purpose");
    let here = black_box([depth; 64]);
    deeper(here[0] + 1) + here[63]
}

kernel_test! {
    async fn somebody_urgent_does_not_wait_for_panics() -> Outcome {
        beside_urgent("panics", async {
            for _ in 0..PANICS {
                let panicked = sched::spawn(async { deeper(black_box(0)) })?;
                ensure_eq!(panicked.await, Err(JoinError::Crashed), "it crashes");
            }
            Ok(())
        })
        .await
    }
}
