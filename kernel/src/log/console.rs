//! The console: whole lines of text, one at a time.

use core::fmt::{self, Write};
use core::sync::atomic::{AtomicUsize, Ordering};

use spin::Once;

use crate::sync::SpinLock;

/// Where bytes go: a serial port, or the host's standard output.
pub trait Sink: Sync {
    /// Writes all of `bytes`, waiting as long as the line needs.
    fn write(&self, bytes: &[u8]);
}

static SINK: Once<&'static dyn Sink> = Once::new();
static LINE: SpinLock<()> = SpinLock::new(());
/// How many write without waiting for the line.
static PANICKING: AtomicUsize = AtomicUsize::new(0);

/// Sets where output goes; later calls change nothing.
pub fn register(sink: &'static dyn Sink) {
    SINK.call_once(|| sink);
}

/// Bytes of the longest piece of text that is never mixed with what another core writes.
const PIECE_BYTES: usize = 1024;

/// Text that is being formatted. The line is held only while a full buffer is written, never while the application's own
/// `Display` runs, which may write lines itself and may fail.
struct Piece {
    bytes: [u8; PIECE_BYTES],
    used: usize,
}

impl Piece {
    fn flush(&mut self) {
        bytes(&[&self.bytes[..self.used]]);
        self.used = 0;
    }

    fn push(&mut self, mut text: &[u8]) {
        while !text.is_empty() {
            if self.used == PIECE_BYTES {
                self.flush();
            }
            let count = text.len().min(PIECE_BYTES - self.used);
            self.bytes[self.used..self.used + count].copy_from_slice(&text[..count]);
            self.used += count;
            text = &text[count..];
        }
    }
}

impl Write for Piece {
    /// A zero byte would begin something that is not text, so a replacement is shown instead.
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for (index, part) in text.split('\0').enumerate() {
            if index > 0 {
                self.push("\u{fffd}".as_bytes());
            }
            self.push(part.as_bytes());
        }
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

/// Writes one line of text. Lines of several cores do not mix, up to `PIECE_BYTES`; a longer one is written in pieces of
/// that length.
pub fn line(arguments: fmt::Arguments<'_>) {
    write_line(b"", arguments);
}

/// Writes one line for the host tool. It begins as no text can.
pub fn notice(arguments: fmt::Arguments<'_>) {
    write_line(&[0, 2], arguments);
}

fn write_line(begin: &[u8], arguments: fmt::Arguments<'_>) {
    let mut piece = Piece { bytes: [0; PIECE_BYTES], used: 0 };
    piece.push(begin);
    // If a `Display` fails, what it has written so far is the line.
    let _ = piece.write_fmt(arguments);
    piece.push(b"\n");
    piece.flush();
}

/// Writes bytes as they are, in one piece.
pub(crate) fn bytes(parts: &[&[u8]]) {
    let _line = hold();
    for part in parts {
        write_now(part);
    }
}

/// The line, unless the system is going down: then whoever held it may never give it back.
fn hold() -> Option<crate::sync::SpinGuard<'static, ()>> {
    // Relaxed: at worst one more line is interleaved.
    if PANICKING.load(Ordering::Relaxed) != 0 { LINE.try_lock() } else { Some(LINE.lock()) }
}

/// From now on output waits for no lock: the system is stopping with a failure.
pub fn enter_panic() {
    PANICKING.fetch_add(1, Ordering::Relaxed);
}

/// Ends what [`enter_panic`] began, where the system goes on.
#[cfg(target_os = "none")]
pub(crate) fn leave_panic() {
    PANICKING.fetch_sub(1, Ordering::Relaxed);
}

/// Writes one line of text to the console, formatted as by `format!`. Lines of several cores do not mix; one of more than
/// 1024 bytes may have others between its pieces.
///
/// ```
/// use magpie::log::text;
/// let (words, lines) = (894, 99);
/// text!("{words} words in {lines} lines");
/// ```
#[macro_export]
macro_rules! text {
    ($($arguments:tt)*) => {
        $crate::log::line(format_args!($($arguments)*))
    };
}
