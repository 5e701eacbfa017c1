//! The console: whole lines of text, one at a time.

use core::fmt::{self, Write};
use core::sync::atomic::{AtomicBool, Ordering};

use spin::Once;

use crate::sync::SpinLock;

/// Where bytes go: a serial port, or the host's standard output.
pub trait Sink: Sync {
    /// Writes all of `bytes`, waiting as long as the line needs.
    fn write(&self, bytes: &[u8]);
}

static SINK: Once<&'static dyn Sink> = Once::new();
static LINE: SpinLock<()> = SpinLock::new(());
static PANICKING: AtomicBool = AtomicBool::new(false);

/// Says where output goes; later calls change nothing.
pub fn register(sink: &'static dyn Sink) {
    SINK.call_once(|| sink);
}

struct Raw;

impl Write for Raw {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        write_now(text.as_bytes());
        Ok(())
    }
}

fn write_now(bytes: &[u8]) {
    match SINK.get() {
        Some(sink) => sink.write(bytes),
        None => {
            #[cfg(not(target_os = "none"))]
            {
                use std::io::Write as _;
                // Nobody can be told when the standard output is gone.
                let _ = std::io::stdout().write_all(bytes);
            }
        }
    }
}

/// Writes one line of text; lines of several cores do not mix.
pub fn line(arguments: fmt::Arguments<'_>) {
    let _line = hold();
    // The sink does not fail.
    let _ = Raw.write_fmt(arguments);
    write_now(b"\n");
}

/// Writes bytes as they are, in one piece.
pub(super) fn bytes(parts: &[&[u8]]) {
    let _line = hold();
    for part in parts {
        write_now(part);
    }
}

/// The line, unless the system is going down: then whoever held it may never give it back.
fn hold() -> Option<crate::sync::SpinGuard<'static, ()>> {
    // Relaxed: at worst one more line is interleaved.
    if PANICKING.load(Ordering::Relaxed) { LINE.try_lock() } else { Some(LINE.lock()) }
}

/// From now on output waits for nobody: the system is stopping with a failure.
pub fn enter_panic() {
    PANICKING.store(true, Ordering::Relaxed);
}

/// Writes one line of text to the console, formatted as by `format!`.
#[macro_export]
macro_rules! text {
    ($($arguments:tt)*) => {
        $crate::log::console::line(format_args!($($arguments)*))
    };
}
