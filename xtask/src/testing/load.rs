//! A busy host, on request: loops that only use processor time, beside the tests. They are threads of this tool, so they
//! end with it however it ends.

use std::hint;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Loops for each of the host's processors: a guest's core then gets a fifth of one.
const FOR_EACH_PROCESSOR: usize = 4;

/// Loops that run until this is dropped.
pub struct Load(Arc<AtomicBool>);

impl Load {
    /// Starts the loops and says how many they are.
    pub fn start() -> (Self, usize) {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let stop = Arc::new(AtomicBool::new(false));
        let count = processors * FOR_EACH_PROCESSOR;
        for _ in 0..count {
            let stop = stop.clone();
            // Relaxed: a flag on its own.
            thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    hint::spin_loop();
                }
            });
        }
        (Self(stop), count)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
