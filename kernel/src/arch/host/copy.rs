//! Moving values of known size out of where they lie: what the compiler makes of it.

/// As `read`.
///
/// # Safety
/// As for `read`; and as on the machine.
#[inline(always)]
pub unsafe fn take<T>(from: *const T) -> T {
    // SAFETY: by contract.
    unsafe { from.read() }
}
