//! Asking the firmware: one property at a time, through the VideoCore's mailbox. During boot alone: afterwards a driver may have it.

use core::cell::UnsafeCell;

use magpie::internals::arch::mmu;

const MAILBOX: usize = 0xfe00_b880;
const READ: usize = MAILBOX;
const READ_STATUS: usize = MAILBOX + 0x18;
const WRITE: usize = MAILBOX + 0x20;
const WRITE_STATUS: usize = MAILBOX + 0x38;
const FULL: u32 = 1 << 31;
const EMPTY: u32 = 1 << 30;
/// The channel on which properties are asked for.
const PROPERTIES: u32 = 8;
/// How often to look for the answer; the firmware answers within a millisecond.
const PATIENCE: u32 = 10_000_000;

const GET_CLOCK_RATE: u32 = 0x0003_0002;
const UART_CLOCK: u32 = 2;
const REQUEST: u32 = 0;
const ANSWERED: u32 = 0x8000_0000;

/// The request and its answer, in memory that the firmware reads and writes, on cache lines of their own.
#[repr(C, align(64))]
struct Letter(UnsafeCell<[u32; 16]>);

// SAFETY: used by the boot core alone, before any other core runs.
unsafe impl Sync for Letter {}

static LETTER: Letter = Letter(UnsafeCell::new([0; 16]));

fn read(register: usize) -> u32 {
    // SAFETY: a register of the mailbox, mapped before this is used.
    unsafe { core::ptr::with_exposed_provenance::<u32>(register).read_volatile() }
}

fn wait_while(register: usize, bit: u32) -> Option<()> {
    (0..PATIENCE).find(|_| read(register) & bit == 0).map(drop)
}

/// The serial port's clock in hertz, if the firmware says so. Called on the boot core, before others run.
pub(super) fn uart_clock() -> Option<u32> {
    // Bytes in all, request, one property with room for two words, and the end of the list.
    let question = [8 * 4, REQUEST, GET_CLOCK_RATE, 8, 0, UART_CLOCK, 0, 0];
    let letter = LETTER.0.get().cast::<u32>();
    for (index, word) in question.into_iter().enumerate() {
        // SAFETY: within the letter, which is this core's alone.
        unsafe { letter.add(index).write_volatile(word) };
    }
    let address = letter as usize;
    mmu::clean(address, size_of::<Letter>());
    wait_while(WRITE_STATUS, FULL)?;
    // The firmware sees memory below 1 GiB at the same addresses, and the letter is aligned to more than 16.
    let message = u32::try_from(address).ok()? | PROPERTIES;
    // SAFETY: as in `read`.
    unsafe { core::ptr::with_exposed_provenance_mut::<u32>(WRITE).write_volatile(message) };
    for _ in 0..8 {
        wait_while(READ_STATUS, EMPTY)?;
        if read(READ) != message {
            continue;
        }
        // Drops the cached lines, which are clean: the answer is in memory.
        mmu::clean(address, size_of::<Letter>());
        // SAFETY: as above.
        let word = |index| unsafe { letter.add(index).read_volatile() };
        return (word(1) == ANSWERED && word(5) == UART_CLOCK).then(|| word(6)).filter(|hertz| *hertz > 0);
    }
    None
}
