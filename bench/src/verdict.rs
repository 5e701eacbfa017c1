//! Whether what a benchmark computed is right. A benchmark checks its own result after it has stopped the clock; the
//! first thing found wrong is kept until the run asks for it, and makes the benchmark fail.
//!
//! With the boot argument `doubt` every comparison counts as wrong: so it can be tested that one would be noticed.

use alloc::format;
use alloc::string::String;
use core::fmt::Display;

use magpie::internals::sync::SpinLock;
use magpie::machine;

static WRONG: SpinLock<Option<String>> = SpinLock::new(None);

/// Something is wrong.
pub fn wrong(what: String) {
    let mut first = WRONG.lock();
    if first.is_none() {
        *first = Some(what);
    }
}

/// `found` must be `expected`.
pub fn expect_equal<T: PartialEq + Display>(what: &str, found: T, expected: T) {
    if found != expected || machine::argument("doubt").is_some() {
        wrong(format!("{what}: {found} in place of {expected}"));
    }
}

/// What was found wrong since the last call.
pub fn take() -> Option<String> {
    WRONG.lock().take()
}
