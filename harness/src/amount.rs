//! How much a test does: little by default, more when the boot arguments say so.

use magpie::machine;

/// The boot argument `name=NUMBER`, or `usual` where there is none or it is no number.
pub fn amount(name: &str, usual: u64) -> u64 {
    machine::argument(name).and_then(|text| text.parse().ok()).unwrap_or(usual)
}
