//! How a test says that it failed.

use alloc::string::String;
use core::fmt::Display;

/// What a test found wrong, in words.
#[derive(Debug)]
pub struct Failure(pub String);

/// What a test returns.
pub type Outcome = Result<(), Failure>;

impl<E: Display> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(alloc::format!("{error}"))
    }
}

/// Fails the test unless the condition holds.
#[macro_export]
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err($crate::Failure($crate::failure::text(format_args!($($message)+))));
        }
    };
}

/// Fails the test unless the two are equal, and says what they are.
#[macro_export]
macro_rules! ensure_eq {
    ($left:expr, $right:expr, $($what:tt)+) => {{
        let (left, right) = (&$left, &$right);
        if left != right {
            return Err($crate::Failure($crate::failure::text(format_args!(
                "{}: found {left:?}, expected {right:?}",
                format_args!($($what)+)
            ))));
        }
    }};
}

/// The text of formatted arguments; for the macros, whose users need not name an allocator.
pub fn text(arguments: core::fmt::Arguments<'_>) -> String {
    alloc::format!("{arguments}")
}
