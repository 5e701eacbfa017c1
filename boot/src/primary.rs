//! The boot core's way from the first instruction in Rust to the scheduler.
//!
//! 1. Map the image and the device tree, turn on the MMU and the caches: before that no lock works.
//! 2. Read the tree; map the rest: devices, memory, stacks with their guards.
//! 3. Heap, stacks, vectors, interrupt controller.
//! 4. The scheduler's blocks, the other cores, the application's main process, the core loop.

use core::future::Future;
use core::sync::atomic::Ordering;

use magpie::internals::arch::cpu;
use magpie::internals::arch::exceptions;
use magpie::internals::arch::gic::{self, Controller};
use magpie::internals::arch::mmu::{self, MapError, Tables, Use};
use magpie::internals::arch::stack_layout::{
    self, EXCEPTION_STACK_BYTES, GUARD_BYTES, MOST_SLOT_BYTES, RESERVE_BYTES, SLOT_UNIT_BYTES, slot_bytes,
};
use magpie::internals::arch::switch::start_on;
use magpie::internals::arch::{CoreId, MAX_CORES};
use magpie::internals::console;
use magpie::internals::device;
use magpie::internals::mem::{heap, stack};
use magpie::internals::sched::{enter, on_deadlock, prepare, watchdog};
use magpie::log::text;
use magpie::machine::{self, Machine};
use magpie::sched;

use crate::arguments::{self, Numbered};
use crate::claim;
use crate::commands::listen;
use crate::exit::NOTHING_WILL_HAPPEN;
use crate::memory::{Free, MOST_RANGES, Range};
use crate::pl011::CONSOLE;
use crate::serial::port;
use crate::tree::{self, Description, InterruptController, StartMethod, TreeError};
use crate::{ExitCode, Termination, board, exit, panic, secondary, statistics};

const PAGE_BYTES: usize = 4096;
/// The tree is mapped in blocks of this size before its length is known.
const TREE_BLOCK_BYTES: usize = 2 << 20;
/// The number of stacks: for preempted processes, and one for each core; fewer where memory is short.
const LENDABLE_STACKS: usize = 64;
/// The most memory for stacks, here and as a part of the whole: each 2 MiB of them need a table, for their guards.
const MOST_STACKS_BYTES: usize = 64 << 20;
/// Unused memory is reported if it is at least this part of the heap.
const UNUSED_SHARE: usize = 16;
/// A piece of memory beside the largest is a part of the heap if it has at least this many bytes and does not lie below
/// this address.
const LEAST_PART_BYTES: usize = 64 << 20;
const LEAST_PART_START: usize = 16 << 20;
/// Bytes at the low end of each stack's slot that boot leaves unmapped.
const UNMAPPED_BYTES: usize = GUARD_BYTES + RESERVE_BYTES;
/// At most this part of the memory, beside that.
const STACKS_SHARE: usize = 8;

unsafe extern "C" {
    static __image_start: u8;
    static __text_end: u8;
    static __rodata_end: u8;
    static __bss_start: u8;
    static __boot_stack_start: u8;
    static __image_end: u8;
    static __build_id: u8;
}

unsafe extern "Rust" {
    static MAGPIE_APPLICATION: &'static str;
    /// The application's main, by the `entry!` macro.
    safe fn magpie_main();
}

#[repr(align(16))]
struct ExceptionStacks(#[expect(dead_code, reason = "used by its address")] [u8; EXCEPTION_STACK_BYTES]);
/// The boot core's part.
#[unsafe(link_section = ".bss.no_pointers")]
static mut EXCEPTION_STACKS: ExceptionStacks = ExceptionStacks([0; EXCEPTION_STACK_BYTES]);

/// The address of a symbol of the linker script.
macro_rules! address_of {
    ($symbol:ident) => {
        (&raw const $symbol) as usize
    };
}

/// Called by the first instructions, on the boot stack, with the MMU off.
#[unsafe(no_mangle)]
extern "C" fn magpie_boot_primary(tree_address: usize) -> ! {
    let image = Range { start: address_of!(__image_start), end: address_of!(__image_end) };
    // SAFETY: no other core runs yet, and this is the only call.
    let mut tables = unsafe { mmu::tables() };
    let image_mapped = map_image(&mut tables, image);
    let tree_mapped = map_tree(&mut tables, tree_address, image);
    // SAFETY: the image is mapped onto itself, and nothing else is used before more is mapped. Where mapping
    // failed there is nobody to tell yet: what is missing faults below, and the vectors say so. Until now `.bss` and this
    // stack alone were written; the first instructions have dropped their lines before that.
    unsafe { mmu::enable(address_of!(__bss_start), image.end) };
    // SAFETY: these stacks are used for nothing else, and this is the boot core.
    unsafe { exceptions::install((&raw mut EXCEPTION_STACKS).add(1).cast()) };
    (board::this().prepare)();
    // SAFETY: the board says that its port is there, and it was mapped above.
    unsafe { CONSOLE.set_base(board::this().early_uart) };
    console::register(&CONSOLE);
    if let Err(error) = image_mapped {
        panic!("the image does not fit the page tables: {error:?}");
    }
    panic::LOOKING_AT.store(tree_address, Ordering::Relaxed);
    if let Err(error) = tree_mapped {
        panic!("there can be no device tree at {tree_address:#x}: {error:?}");
    }
    let read = tree_blob(tree_address).and_then(|blob| Ok((tree::read(blob)?, blob)));
    let (found, blob) = match read {
        Ok(read) => read,
        Err(error) => panic!("{error}"),
    };
    panic::LOOKING_AT.store(0, Ordering::Relaxed);
    tree::note(blob);
    set_up(tables, &found, image, Range { start: tree_address, end: tree_address + blob.len() })
}

fn map_image(tables: &mut Tables<'_>, image: Range) -> Result<(), MapError> {
    let (text_end, rodata_end) = (address_of!(__text_end), address_of!(__rodata_end));
    let guard = address_of!(__boot_stack_start);
    let uart = board::this().early_uart;
    tables.map(image.start, text_end, Use::Text)?;
    tables.map(text_end, rodata_end, Use::ReadOnly)?;
    tables.map(rodata_end, guard, Use::Data)?;
    tables.map(guard + UNMAPPED_BYTES, image.end, Use::Data)?;
    tables.map(uart, uart + PAGE_BYTES, Use::Device)?;
    board::this().early_devices.iter().try_for_each(|range| tables.map(range.start, range.end, Use::Device))
}

/// Two blocks, because the tree may lie across a border; the image's own pages stay as they are. In pages, because what
/// surrounds the tree is not known yet. It gets its permissions, and unmapped neighbours, later.
fn map_tree(tables: &mut Tables<'_>, address: usize, image: Range) -> Result<(), MapError> {
    let mut around = Free::new();
    around.add(Range { start: address, end: address + TREE_BLOCK_BYTES }.outward(TREE_BLOCK_BYTES));
    around.remove(image);
    // Page 0 is never mapped.
    around.remove(Range { start: 0, end: PAGE_BYTES });
    around.iter().try_for_each(|range| tables.map_pages(range.start, range.end, Use::ReadOnly))
}

/// The tree's bytes: as many as its header says, no more than are mapped.
fn tree_blob(address: usize) -> Result<&'static [u8], TreeError> {
    const MAGIC: u32 = 0xd00d_feed;
    // The first page is not mapped, and what firmware leaves there is another kind of list.
    if address < PAGE_BYTES || !address.is_multiple_of(8) {
        return Err(TreeError::Unreadable);
    }
    let header = core::ptr::with_exposed_provenance::<u32>(address);
    // SAFETY: aligned, and mapped in `map_tree` with at least a block after it. The firmware left the tree
    // there and nothing writes it.
    let (magic, bytes) =
        unsafe { (u32::from_be(header.read()), u32::from_be(header.add(1).read()) as usize) };
    if magic != MAGIC {
        return Err(TreeError::Unreadable);
    }
    if bytes > TREE_BLOCK_BYTES {
        return Err(TreeError::TooLong);
    }
    // SAFETY: as above; the length is within what is mapped.
    Ok(unsafe { core::slice::from_raw_parts(header.cast(), bytes) })
}

fn set_up(mut tables: Tables<'static>, found: &Description<'static>, image: Range, tree: Range) -> ! {
    let mut free = Free::new();
    for range in found.memory {
        free.add(range.inward(PAGE_BYTES));
    }
    free.remove(image);
    free.remove(Range { start: 0, end: PAGE_BYTES });
    free.remove(tree.outward(PAGE_BYTES));
    let mut mapped = free.clone();
    if let Some(input) = found.input {
        free.remove(input.outward(PAGE_BYTES));
    }
    found.reserved.iter().for_each(|range| free.remove(range.outward(PAGE_BYTES)));
    let Some(largest) = free.largest().filter(|range| range.bytes() >= 4 << 20) else {
        panic!(
            "too little memory: {} KiB are free; give the machine 64 MiB or more",
            free.largest().unwrap_or_default().bytes() / 1024
        )
    };
    let slot = STACK_KIB.of(found.arguments).unwrap_or_default() * 1024;
    let slot = slot.max(SLOT_UNIT_BYTES).next_multiple_of(SLOT_UNIT_BYTES);
    // SAFETY: one of these sizes, and the pool is made below.
    unsafe { stack_layout::set_slot_bytes(slot) };
    let most = MOST_STACKS_BYTES.min(largest.bytes() / STACKS_SHARE) / slot;
    // One for each core to run on, and one in reserve.
    let slots = (STACKS.of(found.arguments).unwrap_or(LENDABLE_STACKS) + 2 * found.cores).min(most);
    let stacks_start = largest.start.next_multiple_of(slot);
    let heap_start = stacks_start + slots * slot;
    free.remove(Range { start: largest.start, end: heap_start });
    let (parts, count) = heap_parts(&free);
    let parts = &parts[..count];
    let used = parts.iter().map(core::ops::Range::len).sum::<usize>();
    // A small amount is not worth a line.
    let unused = Some(free.bytes() - used).filter(|unused| *unused > used / UNUSED_SHARE);
    mapped.remove(Range { start: stacks_start, end: heap_start });
    let mut memory = mapped.iter();
    let result = memory
        .try_for_each(|range| tables.map(range.start, range.end, Use::Data))
        .and_then(|()| map_stacks(&mut tables, stacks_start, slots))
        .and_then(|()| map_devices(&mut tables, found));
    if let Err(error) = result {
        panic!("the machine's memory does not fit the page tables: {error:?}");
    }
    mmu::flush();
    if let Some(uart) = found.uart.filter(|_| board::this().uart_from_tree) {
        // SAFETY: the tree says that a PL011 is there, and it was mapped above.
        unsafe { CONSOLE.set_base(uart.start) };
    }
    // SAFETY: free memory, mapped, used for nothing else; called once.
    unsafe {
        heap::HEAP.init(parts);
        stack::init(stacks_start, slots, 0);
    }
    let controller = match found.interrupts {
        InterruptController::V2(distributor, cpu_interface) => {
            Controller::V2 { distributor: distributor.start, cpu_interface: cpu_interface.start }
        }
        InterruptController::V3(distributor, redistributors) => Controller::V3 {
            distributor: distributor.start,
            redistributors: redistributors.start,
            redistributors_bytes: redistributors.bytes(),
        },
    };
    // SAFETY: the tree says that the controller is there, and it was mapped above.
    unsafe { gic::init(controller, found.timer_interrupt) };
    if gic::init_core(CoreId::BOOT).is_err() {
        panic!("the interrupt controller has no redistributor for the boot core");
    }
    start(found, tables, unused)
}

/// How many stacks there are for suspended turns.
const STACKS: Numbered = Numbered { key: "stacks", least: 0, most: MOST_STACKS_BYTES / SLOT_UNIT_BYTES };
/// KiB of each stack, with guard, reserve and block. Rounded up to the unit.
const STACK_KIB: Numbered =
    Numbered { key: "stack_kib", least: SLOT_UNIT_BYTES / 1024, most: MOST_SLOT_BYTES / 1024 };

/// Maps the stacks, but not what is below each. To cut that out of blocks afterwards would change their size while they
/// are in use. What is mapped here already, around the tree, is mapped in pages.
fn map_stacks(tables: &mut Tables<'_>, start: usize, slots: usize) -> Result<(), MapError> {
    (0..slots).map(|slot| start + slot * slot_bytes()).try_for_each(|bottom| {
        tables.map(bottom, bottom + UNMAPPED_BYTES, Use::Guard)?;
        tables.map(bottom + UNMAPPED_BYTES, bottom + slot_bytes(), Use::Data)
    })
}

fn map_devices(tables: &mut Tables<'_>, found: &Description<'_>) -> Result<(), MapError> {
    for range in found.devices() {
        let range = range.outward(PAGE_BYTES);
        tables.map(range.start, range.end, Use::Device)?;
    }
    Ok(())
}

/// The parts of the heap: the largest piece of memory, and others where they are worth it. A small one is not: what
/// crashes leave is found by what looks like an address, and where memory is small or begins at 0, more values that are
/// not addresses look like one.
fn heap_parts(free: &Free) -> ([core::ops::Range<usize>; MOST_RANGES], usize) {
    let mut parts = [const { 0..0 }; MOST_RANGES];
    let mut count = 0;
    let largest = free.largest();
    let worth_it = |range: &Range| range.bytes() >= LEAST_PART_BYTES && range.start >= LEAST_PART_START;
    for range in free.iter().filter(|range| Some(*range) == largest || worth_it(range)) {
        parts[count] = range.start..range.end;
        count += 1;
    }
    (parts, count)
}

fn start(found: &Description<'static>, mut tables: Tables<'static>, unused: Option<usize>) -> ! {
    // SAFETY: set by the `entry!` macro of the application.
    let application = unsafe { MAGPIE_APPLICATION };
    cpu::start_event_stream();
    exit::set_firmware(found.firmware);
    let seed = arguments::number(found.arguments, "seed").unwrap_or(1);
    // SAFETY: this is the boot core's only path; no other core was started. The two handlers rely on nothing that runs.
    let prepared =
        unsafe { prepare(found.cores.min(MAX_CORES), seed, claim::on_interrupt, panic::on_fault, exit::now) };
    // Like every other core this one runs on a stack of the pool, which has the size that the boot argument asked for.
    let Some(stack) = stack::take() else {
        panic!("there is no stack for the boot core; give the machine more memory")
    };
    let started = with_first_page(&mut tables, found, || secondary::start_others(found, prepared));
    hand_over(tables, found);
    machine::describe(Machine {
        board: board::this().name,
        application,
        cores: started,
        places: found.places,
        arguments: found.arguments,
        input: match input_in_memory(found) {
            // SAFETY: the tree says where the host's input is; it was taken out of the free memory and is mapped, and
            // nothing writes it.
            Some(range) => Some(unsafe {
                core::slice::from_raw_parts(core::ptr::with_exposed_provenance(range.start), range.bytes())
            }),
            None => arguments::has(found.arguments, "input=empty").then_some(&[][..]),
        },
    });
    console::notice(format_args!(
        "@magpie build={:016x} app={application} board={} cores={started}",
        build_id(),
        board::this().name
    ));
    report_what_was_left_out(found);
    if let Some(unused) = unused {
        text!("{} MiB of memory stay unused: the heap is in the large pieces", unused >> 20);
    }
    arguments::apply_all();
    if let Some(watchdog) = (board::this().watchdog)() {
        watchdog::use_hardware(watchdog);
    }
    defmt::info!("{=u64} cores, {=u64} KiB of heap", started as u64, heap::HEAP.usage().1 as u64 / 1024);
    on_deadlock(deadlock);
    statistics::begin();
    port::note_interrupt(board::this().uart_interrupt.or(found.uart_interrupt));
    listen::begin();
    magpie_main();
    secondary::release_others(started);
    // SAFETY: interrupts are masked since the first instructions. The new stack is used by nobody, and nothing on this
    // one is needed any more.
    unsafe { start_on(stack.top(), core::ptr::from_ref(stack.block()).cast_mut().cast(), enter_boot_core, 0) }
}

/// The boot core's way into the scheduler, on its stack.
extern "C" fn enter_boot_core(_: usize) -> ! {
    // SAFETY: this is the boot core, prepared in `start`; its stack block was set with the stack, with preemption disabled
    // once, and nothing here needs dropping.
    unsafe { enter(CoreId::BOOT) };
    exit::now()
}

/// What the Raspberry Pi 4 has of a PL011 before the next one, in the same page.
const UART_BYTES: usize = 0x200;

/// From here on drivers have devices mapped, but none of those that boot has mapped for itself, and no memory.
fn hand_over(tables: Tables<'static>, found: &Description<'_>) {
    let uart = board::this().early_uart;
    device::keep(0, PAGE_BYTES);
    device::keep(uart, uart + UART_BYTES);
    for range in found.memory.iter().chain(&found.reserved).chain(board::this().kept) {
        if range.bytes() > 0 {
            // Memory is mapped by whole pages.
            let pages = range.outward(PAGE_BYTES);
            device::keep(pages.start, pages.end);
        }
    }
    for range in found.devices() {
        device::keep(range.start, range.end);
    }
    // SAFETY: all is mapped, and these are all that it was mapped for.
    unsafe { device::adopt(tables) };
}

/// Does `what` with the first page mapped, if the spin table is there. Afterwards the page faults again, so that null
/// pointers do.
fn with_first_page(tables: &mut Tables<'_>, found: &Description<'_>, what: impl FnOnce() -> usize) -> usize {
    let in_first_page =
        |method: &StartMethod| matches!(method, StartMethod::SpinTable(slot) if *slot < PAGE_BYTES);
    if !found.start[..found.cores].iter().any(in_first_page) {
        return what();
    }
    if let Err(error) = tables.map(0, PAGE_BYTES, Use::Data) {
        text!("the spin table cannot be reached: {error:?}; running on 1 core");
        return 1;
    }
    mmu::flush();
    let result = what();
    if let Err(error) = tables.map(0, PAGE_BYTES, Use::Guard) {
        text!("the first page stays mapped: {error:?}");
    }
    mmu::flush();
    result
}

/// Reports what was not used of the device tree and of the boot arguments.
fn report_what_was_left_out(found: &Description<'_>) {
    STACKS.report(found.arguments);
    STACK_KIB.report(found.arguments);
    if found.cores_beyond > 0 {
        text!("{} cores stay off: the kernel has room for {MAX_CORES}", found.cores_beyond);
    }
    if found.arguments_cut > 0 {
        text!(
            "the last {} bytes of the boot arguments are ignored: what is behind '{}' is not UTF-8",
            found.arguments_cut,
            found.arguments
        );
    }
}

/// Where the host's input is, if that is memory.
fn input_in_memory(found: &Description<'_>) -> Option<Range> {
    let input = found.input?;
    let inside = found.memory.iter().any(|memory| memory.start <= input.start && input.end <= memory.end);
    if !inside {
        text!("the device tree puts the input at {:#x}, outside the memory: it is ignored", input.start);
    }
    inside.then_some(input)
}

/// The linker's hash of the image: eight bytes after the note's header and name.
fn build_id() -> u64 {
    const NOTE_HEADER_BYTES: usize = 16;
    // SAFETY: the linker script puts the note there; it is longer than this.
    unsafe { (&raw const __build_id).add(NOTE_HEADER_BYTES).cast::<u64>().read_unaligned() }
}

fn deadlock() {
    text!("{NOTHING_WILL_HAPPEN}");
    exit::set(ExitCode::Failure);
    sched::stop();
}

/// Starts the application's main process. For the `entry!` macro.
pub fn run_main(main: impl Future<Output: Termination> + Send + 'static) {
    let watched = sched::spawn(async move {
        // What it returns is reported in its own process: an error's `Display` is the application's.
        let code = match sched::spawn(async { main.await.report() }) {
            Ok(handle) => handle.await.unwrap_or_else(|_| {
                console::notice(format_args!(
                    "@panic the application's main process ended by what is reported above"
                ));
                ExitCode::Failure
            }),
            Err(error) => {
                text!("the main process was not started: {error}");
                ExitCode::Failure
            }
        };
        statistics::print();
        exit::set(code);
        sched::stop();
    });
    if let Err(error) = watched {
        panic!("the main process was not started: {error}");
    }
}
