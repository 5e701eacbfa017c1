//! The interrupt controller: version 2 or 3, as the device tree says.

mod v2;
mod v3;

use crate::arch::atomic::{AtomicU32, Ordering};
use crate::arch::{CoreId, Trigger};

/// The wake-up interrupt's number: a software-generated interrupt.
pub const WAKE_UP: u32 = 0;
/// The number of the interrupt that stops a core for good: another one.
pub const STOP: u32 = 1;
/// Numbers from here on say that nothing is pending.
pub const SPURIOUS: u32 = 1020;
/// Below this, those that cores send to one another; from here on, devices'.
pub const FIRST_OF_DEVICE: u32 = 16;
/// Interrupts below this number are each core's own.
pub const FIRST_SHARED: u32 = 32;
/// For how many interrupts one register says what triggers them.
const TRIGGERS: usize = 16;

/// Where the controller is.
#[derive(Clone, Copy, Debug)]
pub enum Controller {
    /// GICv2 (or the GIC-400): distributor and CPU interface.
    V2 {
        /// Address of the distributor.
        distributor: usize,
        /// Address of the CPU interface.
        cpu_interface: usize,
    },
    /// GICv3: distributor and redistributors; the CPU interface is system registers.
    V3 {
        /// Address of the distributor.
        distributor: usize,
        /// Address of the first redistributor.
        redistributors: usize,
        /// Bytes of the redistributors' region.
        redistributors_bytes: usize,
    },
}

/// Why an interrupt controller cannot be used on a core.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GicError {
    /// No redistributor in the region is this core's.
    NoRedistributor,
}

/// What was acknowledged, as it must be given back to `end`.
#[derive(Clone, Copy)]
pub struct Interrupt {
    acknowledged: u32,
    /// By which version, which is looked up once for an interrupt.
    is_v3: bool,
}

impl Interrupt {
    /// The interrupt's number. GICv2 carries the sending core in bits 10 to 12; those are cut off.
    pub fn number(self) -> u32 {
        self.acknowledged & if self.is_v3 { 0xff_ffff } else { 0x3ff }
    }
}

// Written once at boot before interrupts are unmasked anywhere, hence relaxed.
static IS_V3: AtomicU32 = AtomicU32::new(0);
static TIMER: AtomicU32 = AtomicU32::new(u32::MAX);

/// Sets up the part that all cores share; called once, on the first core.
///
/// # Safety
/// The addresses are those of the controller, mapped as device memory.
pub unsafe fn init(controller: Controller, timer_interrupt: u32) {
    TIMER.store(timer_interrupt, Ordering::Relaxed);
    // SAFETY: the caller promised the controller's addresses.
    unsafe {
        match controller {
            Controller::V2 { distributor, cpu_interface } => v2::init(distributor, cpu_interface),
            Controller::V3 { distributor, redistributors, redistributors_bytes } => {
                IS_V3.store(1, Ordering::Relaxed);
                v3::init(distributor, redistributors, redistributors_bytes);
            }
        }
    }
}

/// Sets up the calling core's own part: priorities, the wake-up interrupt, the timer's.
///
/// # Errors
/// The controller does not know the core.
pub fn init_core(core: CoreId) -> Result<(), GicError> {
    let timer = TIMER.load(Ordering::Relaxed);
    if is_v3() { v3::init_core(core, timer) } else { v2::init_core(core, timer) }
}

/// How many interrupts there may be: their numbers are below this.
pub fn lines() -> u32 {
    let kind = if is_v3() { v3::kind() } else { v2::kind() };
    // The number of words of 32 interrupts, less one.
    ((kind & 0x1f) + 1).saturating_mul(32).min(SPURIOUS)
}

/// Sets up a device's interrupt, masked, for a core.
///
/// # Safety
/// One caller at a time. The number is one that all cores share, from [`FIRST_SHARED`] on, and below [`lines`]. The core was started.
pub unsafe fn prepare(number: u32, trigger: Trigger, core: CoreId) {
    // SAFETY: by contract.
    unsafe {
        if is_v3() {
            v3::prepare(number, trigger, core);
        } else {
            v2::prepare(number, trigger, core);
        }
    }
}

/// Sends a device's interrupt to another core from now on, which was started. What is pending goes there, too.
pub fn route(number: u32, core: CoreId) {
    if is_v3() { v3::route(number, core) } else { v2::route(number, core) }
}

/// Lets a device's interrupt through.
#[inline(always)]
pub fn unmask(number: u32) {
    if is_v3() { v3::unmask(number) } else { v2::unmask(number) }
}

/// Lets a device's interrupt through no more. One that is on its way to a core may arrive there still.
#[inline(always)]
pub fn mask(number: u32) {
    if is_v3() { v3::mask(number) } else { v2::mask(number) }
}

/// Makes a device's interrupt pending, as if the device had asked once.
pub fn set_pending(number: u32) {
    if is_v3() { v3::set_pending(number) } else { v2::set_pending(number) }
}

/// Lets an interrupt through that each core has of its own, to the calling core.
pub fn enable_own(number: u32) {
    if is_v3() { v3::enable_own(number) } else { v2::enable_own(number) }
}

/// Whether this is the timer's interrupt.
pub(super) fn is_timer(number: u32) -> bool {
    number == TIMER.load(Ordering::Relaxed)
}

/// Takes the most urgent pending interrupt.
#[inline(always)]
pub(super) fn acknowledge() -> Interrupt {
    let is_v3 = is_v3();
    Interrupt { acknowledged: if is_v3 { v3::acknowledge() } else { v2::acknowledge() }, is_v3 }
}

/// Tells the controller that the interrupt was handled. Its number is below [`SPURIOUS`].
#[inline(always)]
pub(super) fn end(interrupt: Interrupt) {
    let Interrupt { acknowledged, is_v3 } = interrupt;
    if is_v3 { v3::end(acknowledged) } else { v2::end(acknowledged) }
}

/// Sends the wake-up interrupt.
pub(super) fn send_wake_up(core: CoreId) {
    if is_v3() { v3::send(core, WAKE_UP) } else { v2::send(core, WAKE_UP) }
}

/// The wake-up interrupt is not pending on this core any more, whoever has sent it.
pub(super) fn take_back_wake_up() {
    if is_v3() {
        v3::clear_own(WAKE_UP)
    } else {
        v2::clear_sent(WAKE_UP)
    }
    // It is cleared before anything else is read.
    aarch64_cpu::asm::barrier::dsb(aarch64_cpu::asm::barrier::SY);
}

/// Sends the interrupt that stops it.
pub(super) fn send_stop(core: CoreId) {
    if is_v3() { v3::send(core, STOP) } else { v2::send(core, STOP) }
}

/// The register of triggers with that of one interrupt changed: the upper one of two bits says that it is an edge.
fn with_trigger(register: u32, index: usize, trigger: Trigger) -> u32 {
    let edge = 2 << (2 * (index % TRIGGERS));
    match trigger {
        Trigger::Edge => register | edge,
        Trigger::Level => register & !edge,
    }
}

fn is_v3() -> bool {
    IS_V3.load(Ordering::Relaxed) != 0
}

/// A 32-bit register of a device.
///
/// # Safety
/// `base + offset` is a register of the device, mapped as device memory.
unsafe fn read(base: usize, offset: usize) -> u32 {
    // SAFETY: the caller promised a register of the device.
    unsafe { core::ptr::with_exposed_provenance::<u32>(base + offset).read_volatile() }
}

/// # Safety
/// As for [`read`]; writing the value is what the device expects.
unsafe fn write(base: usize, offset: usize, value: u32) {
    // SAFETY: the caller promised a register of the device that may have this value.
    unsafe { core::ptr::with_exposed_provenance_mut::<u32>(base + offset).write_volatile(value) }
}
