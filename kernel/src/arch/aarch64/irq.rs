//! Masking interrupts on this core.

pub use super::exceptions::take_pending;

/// Unmasks interrupts on this core.
///
/// # Safety
/// The caller is not inside a section that relies on them being masked.
#[inline(always)]
pub unsafe fn enable() {
    // SAFETY: changes the mask bit only; by contract nothing relies on it.
    unsafe { core::arch::asm!("msr daifclr, #2", options(nostack, preserves_flags)) };
}

/// Masks interrupts on this core. Whether they were.
#[inline(always)]
pub fn mask() -> bool {
    const IRQ: u64 = 1 << 7;
    let before: u64;
    // SAFETY: reads the mask, and changes its bit only.
    unsafe {
        core::arch::asm!("mrs {}, daif", "msr daifset, #2", out(reg) before, options(nostack, preserves_flags))
    };
    before & IRQ != 0
}

/// Masks interrupts on this core.
#[inline(always)]
pub fn disable() {
    // SAFETY: changes the mask bit only.
    unsafe { core::arch::asm!("msr daifset, #2", options(nostack, preserves_flags)) };
}
