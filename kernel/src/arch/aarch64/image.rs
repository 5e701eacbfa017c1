//! Where the image's parts lie, as the linker script says.

use core::ops::Range;

use crate::arch::unwind_tables::UnwindTables;

unsafe extern "C" {
    static __image_start: u8;
    static __text_end: u8;
    static __unwind_index: u8;
    static __unwind_index_end: u8;
    static __unwind_entries: u8;
    static __unwind_entries_end: u8;
    static __rodata_end: u8;
    static __data_end: u8;
    static __bss_pointers: u8;
    static __bss_end: u8;
    static __boot_stack_block: u8;
}

/// The writable statics, except those that are known to hold no pointers.
pub fn statics() -> [Range<usize>; 2] {
    let address = |symbol: *const u8| symbol.expose_provenance();
    // Only the addresses are taken.
    let data = address(&raw const __rodata_end)..address(&raw const __data_end);
    [data, address(&raw const __bss_pointers)..address(&raw const __bss_end)]
}

/// The block of the stack that the boot core begins on.
pub fn boot_stack_block() -> *mut () {
    // Only the address is taken.
    (&raw const __boot_stack_block).cast_mut().cast()
}

/// The instructions.
pub fn code() -> Range<usize> {
    // Only the addresses are taken.
    (&raw const __image_start).addr()..(&raw const __text_end).addr()
}

/// What the compiler says of them.
pub fn unwind_tables() -> UnwindTables<'static> {
    // SAFETY: the linker script puts each symbol where it says; the sections are read-only.
    let section = |begin: *const u8, end: *const u8| unsafe {
        core::slice::from_raw_parts(begin, end.addr() - begin.addr())
    };
    UnwindTables {
        index: section(&raw const __unwind_index, &raw const __unwind_index_end),
        index_at: (&raw const __unwind_index).addr() as u64,
        entries: section(&raw const __unwind_entries, &raw const __unwind_entries_end),
        entries_at: (&raw const __unwind_entries).addr() as u64,
    }
}
