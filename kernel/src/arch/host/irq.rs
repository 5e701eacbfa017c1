//! Interrupt masking: a host core has no interrupts but those it takes while parked, so these do
//! nothing.

/// Unmasks interrupts on this core.
///
/// # Safety
/// The caller is not inside a section that relies on them being masked.
pub unsafe fn enable() {}

/// Masks interrupts on this core. Whether they were.
pub fn mask() -> bool {
    false
}

/// Masks interrupts on this core.
pub fn disable() {}

/// A device's interrupt, of which a host core has none.
pub enum Device {}

impl Device {
    /// Its number.
    pub fn number(&self) -> u32 {
        match *self {}
    }

    /// It was handled.
    pub fn end(self) {
        match self {}
    }
}

/// Takes an interrupt that is pending: none is.
pub fn take_pending() -> Option<Device> {
    None
}
