//! Which registers belong to whom, and which memory hangs on that. What becomes of both in a crash is decided here.

use core::fmt;
use core::ops::Range;
use core::ptr;

use spin::Once;

#[cfg(target_os = "none")]
use super::DMA_PAGE_BYTES as PAGE_BYTES;
use super::memory::Area;
use super::registers::Registers;
#[cfg(target_os = "none")]
use crate::arch::mmu::{self, Tables, Use};
use crate::sched;
use crate::sync::{Identity, SpinLock, set_once, watch_crashes};

/// The most devices that are driven at a time.
const MOST: usize = 64;
/// The most ranges that are the kernel's.
#[cfg(target_os = "none")]
const MOST_KEPT: usize = 32;

/// Why registers were not claimed, or memory not shared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ClaimError {
    /// Some of it has been claimed by another, who lives.
    Taken,
    /// Some of it is memory, or a device that the kernel drives itself.
    Kernels,
    /// It is empty, or lies where nothing can be mapped as registers.
    Unfit,
    /// 64 devices are driven already, there is no room in the page tables, or the device tree has more ranges of memory than are kept.
    TooMany,
    /// Its owner has crashed, and the claim has ended with it.
    Revoked,
    /// There is no memory for it.
    OutOfMemory,
    /// The host has no devices.
    OnTheHost,
}

impl fmt::Display for ClaimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Taken => "another has claimed these registers: a device has one driver",
            Self::Kernels => "these addresses are memory, or a device that the kernel drives itself",
            Self::Unfit => "nothing can be mapped as registers there",
            Self::TooMany => "64 devices are driven already, the page tables are full, or the tree has too many ranges of memory",
            Self::Revoked => "the claim has ended, because its owner crashed or was killed",
            Self::OutOfMemory => "out of memory: give the machine more, or start less",
            Self::OnTheHost => "the host has no devices: boot the image",
        })
    }
}

impl core::error::Error for ClaimError {}

/// One device that is driven.
struct Claim {
    range: Range<usize>,
    /// Which part of the device it is, if others have other parts.
    part: Option<u32>,
    /// Which claim of all since the start.
    number: u64,
    /// Who ends with it.
    owner: Option<Identity>,
    /// Makes the device leave memory alone.
    quiet: fn(&Registers),
    /// What it shares with its driver, linked.
    memory: *mut Area,
}

// SAFETY: the areas are the claim's, and touched under the lock only.
unsafe impl Send for Claim {}

struct Claims {
    all: [Option<Claim>; MOST],
    last: u64,
}

static CLAIMS: SpinLock<Claims> = SpinLock::new(Claims { all: [const { None }; MOST], last: 0 });
/// Crashes are watched from the first claim on.
static WATCHING: Once<()> = Once::new();

/// What nobody may claim, and the page tables after boot.
#[cfg(target_os = "none")]
struct Map {
    kept: [(usize, usize); MOST_KEPT],
    count: usize,
    tables: Option<Tables<'static>>,
}

#[cfg(target_os = "none")]
static MAP: SpinLock<Map> = SpinLock::new(Map { kept: [(0, 0); MOST_KEPT], count: 0, tables: None });

/// At boot: a range that nobody may claim. With more than can be kept nothing can be claimed at all.
#[cfg(target_os = "none")]
#[inline(never)]
pub(crate) fn keep(start: usize, end: usize) {
    let mut map = MAP.lock();
    let count = map.count;
    if let Some(place) = map.kept.get_mut(count) {
        *place = (start, end);
    }
    map.count += 1;
}

/// At boot: the page tables, which nobody else fills from now on. All that is the kernel's was [kept](keep).
#[cfg(target_os = "none")]
#[inline(always)]
pub(crate) fn adopt(tables: Tables<'static>) {
    MAP.lock().tables = Some(tables);
}

#[cfg(target_os = "none")]
fn map(range: &Range<usize>) -> Result<(), ClaimError> {
    let mut map = MAP.lock();
    let Map { kept, count, tables: Some(tables) } = &mut *map else { return Err(ClaimError::TooMany) };
    // Whole pages, because that is what is mapped.
    let start = range.start & !(PAGE_BYTES - 1);
    let end = range.end.checked_next_multiple_of(PAGE_BYTES).ok_or(ClaimError::Unfit)?;
    if *count > MOST_KEPT {
        return Err(ClaimError::TooMany);
    }
    // To the byte: beside a device of the kernel's there may be others in its page.
    if kept.iter().any(|(from, to)| range.start < *to && *from < range.end) {
        return Err(ClaimError::Kernels);
    }
    let mapped = tables.map(start, end, Use::Device);
    mmu::flush();
    mapped.map_err(|error| match error {
        mmu::MapError::OutOfTables => ClaimError::TooMany,
        mmu::MapError::BadRange => ClaimError::Unfit,
        mmu::MapError::InUse => ClaimError::Kernels,
    })
}

#[cfg(not(target_os = "none"))]
fn map(_: &Range<usize>) -> Result<(), ClaimError> {
    Err(ClaimError::OnTheHost)
}

impl Claim {
    /// Whether these registers, or that part of them, cannot be another's beside this.
    fn forbids(&self, range: &Range<usize>, part: Option<u32>) -> bool {
        let overlaps = range.start < self.range.end && self.range.start < range.end;
        let are_parts = self.range == *range && self.part.zip(part).is_some_and(|(own, other)| own != other);
        overlaps && !are_parts
    }
}

/// Claims a range for the caller, or a part of its device, and maps it. Where its claim is, and which it is.
pub(super) fn claim(
    range: Range<usize>,
    part: Option<u32>,
    quiet: fn(&Registers),
) -> Result<(usize, u64), ClaimError> {
    if range.start >= range.end {
        return Err(ClaimError::Unfit);
    }
    set_once(&WATCHING, || watch_crashes(on_crash));
    let owner = sched::identity_here();
    let mut claims = CLAIMS.lock();
    if claims.all.iter().flatten().any(|claim| claim.forbids(&range, part)) {
        return Err(ClaimError::Taken);
    }
    let place = claims.all.iter().position(Option::is_none).ok_or(ClaimError::TooMany)?;
    map(&range)?;
    claims.last += 1;
    let number = claims.last;
    claims.all[place] = Some(Claim { range, part, number, owner, quiet, memory: ptr::null_mut() });
    Ok((place, number))
}

/// From now on the claim ends with the caller.
pub(super) fn pass_on(place: usize, number: u64) -> Result<(), ClaimError> {
    let owner = sched::identity_here();
    CLAIMS.lock().get(place, number)?.owner = owner;
    Ok(())
}

/// Hangs an area on a claim.
///
/// # Safety
/// The area is whole, in no list, and stays until it is taken off.
pub(super) unsafe fn hang(place: usize, number: u64, area: *mut Area) -> Result<(), ClaimError> {
    let mut claims = CLAIMS.lock();
    let claim = claims.get(place, number)?;
    // SAFETY: by contract; nobody else has seen it.
    unsafe { (*area).next = claim.memory };
    claim.memory = area;
    Ok(())
}

/// Takes an area off a claim, if it hangs there. From then on it is the caller's alone.
pub(super) fn take_off(place: usize, number: u64, area: *mut Area) -> bool {
    let mut claims = CLAIMS.lock();
    let Ok(claim) = claims.get(place, number) else { return false };
    let mut at: *mut *mut Area = &raw mut claim.memory;
    // SAFETY: the areas of a list are whole, and change under this lock only.
    unsafe {
        while !(*at).is_null() {
            if *at == area {
                *at = (*area).next;
                return true;
            }
            at = &raw mut (**at).next;
        }
    }
    false
}

/// Does something that must not mix with what others do to the same registers, if the claim has not ended: no other claim is made, ended, or in here meanwhile.
pub(super) fn alone(place: usize, number: u64, what: impl FnOnce()) -> Result<(), ClaimError> {
    let mut claims = CLAIMS.lock();
    claims.get(place, number)?;
    what();
    Ok(())
}

/// Makes the device quiet, and gives its registers back. What it shares is left to whoever has it, and that is to nobody after a crash.
pub(super) fn release(place: usize, number: u64) {
    let mut claims = CLAIMS.lock();
    if claims.get(place, number).is_ok()
        && let Some(claim) = claims.all[place].take()
    {
        make_quiet(place, &claim);
    }
}

fn make_quiet(place: usize, claim: &Claim) {
    let registers = Registers::of(claim.range.clone(), claim.part, (place, claim.number));
    (claim.quiet)(&registers);
    // It is no claim of its own.
    core::mem::forget(registers);
}

impl Claims {
    /// The claim, if it has not ended.
    fn get(&mut self, place: usize, number: u64) -> Result<&mut Claim, ClaimError> {
        let claim = self.all.get_mut(place).and_then(Option::as_mut);
        claim.filter(|claim| claim.number == number).ok_or(ClaimError::Revoked)
    }
}

/// In a crash: the devices of the one that has crashed are quiet afterwards, and nobody's. Their memory is found by the collection of what
/// crashes leave: nothing that is alive leads to it any more.
fn on_crash(crashed: Identity) {
    let mut claims = CLAIMS.lock();
    for place in 0..MOST {
        if claims.all[place].as_ref().is_some_and(|claim| claim.owner == Some(crashed))
            && let Some(claim) = claims.all[place].take()
        {
            make_quiet(place, &claim);
        }
    }
}
