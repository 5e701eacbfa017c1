//! Where the image's parts lie, as the linker script says.

use core::ops::Range;

unsafe extern "C" {
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
