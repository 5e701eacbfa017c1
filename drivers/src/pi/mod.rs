//! Devices of the Raspberry Pi 4 (BCM2711), found in the device tree by the names that Linux has for them. On another machine each says that there is none.

pub mod firmware;
pub mod gpio;
pub mod i2c;
pub mod random;
pub mod sd;
