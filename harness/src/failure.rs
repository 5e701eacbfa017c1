//! How a test says that it failed.

use alloc::string::String;
use core::fmt::Display;
use core::panic::Location;

/// What a test found wrong, in words.
#[derive(Debug)]
pub struct Failure(pub String);

/// What a test returns.
pub type Outcome = Result<(), Failure>;

impl<E: Display> From<E> for Failure {
    /// With the place of the `?`.
    #[track_caller]
    fn from(error: E) -> Self {
        Self(alloc::format!("{error} ({})", Location::caller()))
    }
}

/// Fails the test unless the condition holds.
#[macro_export]
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            let place = ::core::concat!(::core::file!(), ":", ::core::line!());
            return Err($crate::Failure($crate::failure::text(format_args!($($message)+), place)));
        }
    };
}

/// Fails the test unless the two are equal, and says what they are.
#[macro_export]
macro_rules! ensure_eq {
    ($left:expr, $right:expr, $($what:tt)+) => {{
        let (left, right) = (&$left, &$right);
        if left != right {
            let place = ::core::concat!(::core::file!(), ":", ::core::line!());
            return Err($crate::Failure($crate::failure::text(
                format_args!("{}: found {left:?}, expected {right:?}", format_args!($($what)+)),
                place,
            )));
        }
    }};
}

/// The text of formatted arguments, and where in the test that is; for the macros, whose users need not name an allocator.
pub fn text(arguments: core::fmt::Arguments<'_>, place: &str) -> String {
    alloc::format!("{arguments} ({place})")
}
