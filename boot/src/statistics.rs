//! The table at the end of a run.

use magpie::log::text;
use magpie::stats::Table;

/// Prints what each core did.
pub(crate) fn print() {
    text!("{Table}");
}
