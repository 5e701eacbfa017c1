//! Assembly with store-exclusives that can be made to fail: the one place that the feature `forced-failure` has in it.
//!
//! `exclusive_asm!` is `asm!`, and `may_fail!` stands between an exclusive load and its store; its argument is one of the
//! names in `fails`. In ordinary builds both leave nothing behind. With the feature, each name is an operand that says
//! whether the next store is to fail (`arch::forced_failure`), and a CLREX makes that failure a real one, once.

#[cfg(not(feature = "forced-failure"))]
macro_rules! exclusive_asm {
    (fails($($force:ident),*); $($body:tt)*) => {
        core::arch::asm!($($body)*)
    };
}
#[cfg(feature = "forced-failure")]
macro_rules! exclusive_asm {
    (fails($($force:ident),*); $($body:tt)*) => {
        core::arch::asm!($($body)* $($force = inout(reg) u64::from($crate::arch::forced_failure::due()) => _),*)
    };
}

#[cfg(not(feature = "forced-failure"))]
macro_rules! may_fail {
    ($force:literal) => {
        ""
    };
}
#[cfg(feature = "forced-failure")]
macro_rules! may_fail {
    ($force:literal) => {
        concat!("cbz {", $force, "}, 77f\n clrex\n mov {", $force, "}, xzr\n 77:")
    };
}

pub(super) use {exclusive_asm, may_fail};
