//! Calling the firmware: the two conduits of PSCI (Arm DEN 0022).

use core::arch::asm;

/// How the firmware is called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Conduit {
    /// The hypervisor call.
    Hvc,
    /// The secure monitor call.
    Smc,
}

/// Why a core was not started, or the machine not switched off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PsciError(pub i32);

impl core::fmt::Display for PsciError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self.0 {
            -1 => "the firmware cannot do that",
            -2 => "the firmware knows no such core or address",
            -3 => "the firmware refuses",
            -4 => "the core is running already",
            -5 => "the core is being started already",
            -6 => "the firmware failed",
            -7 => "there is no such core",
            -8 => "the core is disabled",
            -9 => "the address is not valid",
            _ => "the firmware gave an unknown error",
        })
    }
}

const CPU_ON_64: u64 = 0xc400_0003;
const SYSTEM_OFF: u64 = 0x8400_0008;
const SYSTEM_RESET: u64 = 0x8400_0009;

fn call(conduit: Conduit, function: u64, arguments: [u64; 3]) -> i32 {
    let mut result = function;
    let [a, b, c] = arguments;
    // SAFETY: the SMC calling convention (Arm DEN 0028): x0 to x17 may change, the rest is kept.
    unsafe {
        match conduit {
            Conduit::Hvc => {
                asm!("hvc #0", inout("x0") result, in("x1") a, in("x2") b, in("x3") c, clobber_abi("C"))
            }
            Conduit::Smc => {
                asm!("smc #0", inout("x0") result, in("x1") a, in("x2") b, in("x3") c, clobber_abi("C"))
            }
        }
    }
    result as i32
}

/// Starts the core with this affinity value at `entry`, a physical address, with `context` in its x0.
///
/// # Safety
/// What is at `entry` may run on the core as it comes from the firmware, with that context.
///
/// # Errors
/// What the firmware says.
pub unsafe fn cpu_on(conduit: Conduit, affinity: u64, entry: usize, context: usize) -> Result<(), PsciError> {
    match call(conduit, CPU_ON_64, [affinity, entry as u64, context as u64]) {
        0 => Ok(()),
        error => Err(PsciError(error)),
    }
}

/// Switches the machine off; returns only if the firmware cannot.
pub fn system_off(conduit: Conduit) {
    call(conduit, SYSTEM_OFF, [0; 3]);
}

/// Starts the machine again; returns only if the firmware cannot.
pub fn system_reset(conduit: Conduit) {
    call(conduit, SYSTEM_RESET, [0; 3]);
}
