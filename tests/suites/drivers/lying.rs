//! A device that lies.

use magpie_drivers::lying::believe_nothing;
use magpie_tests::{Failure, amount, ensure, kernel_test};

kernel_test! {
    /// Whatever a device says it has done: what is taken for done was asked, and what it says to have written fits. Of two thousand rings each sees up to forty lies.
    #[machine("virtio devices")]
    async fn a_device_is_believed_nothing() -> Outcome {
        let lies = believe_nothing(amount("seed", 7), amount("lies", 2000)).map_err(Failure::from)?;
        magpie::log::text!("{lies:?}");
        ensure!(lies.done > 2000 && lies.noticed > 1000, "{lies:?}");
        Ok(())
    }
}
