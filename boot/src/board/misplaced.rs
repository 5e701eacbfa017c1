//! An image for one board that was started on another: it does not lie where it was linked, and says so on that board's
//! serial port. A board is recognised by nothing else here, because the device tree was not read yet.
//!
//! Nothing here may use an address that the linker has put into a constant, because they are all wrong. Code and
//! strings are found relative to the code that runs.

use magpie::internals::arch::cpu;

/// Called by the first instructions with the place of the image, on its boot stack, with the MMU off.
#[unsafe(no_mangle)]
extern "C" fn magpie_boot_misplaced(image_start: usize) -> ! {
    // Where images for the other board lie, and its port. That of the Raspberry Pi 4 works if the firmware has set it up.
    #[cfg(not(feature = "rpi4"))]
    if image_start == 0x0020_0000 {
        let what = b"this image is for virt, and this is a Raspberry Pi 4: build it with --board rpi4\n";
        say(0xfe20_1000, what);
    }
    #[cfg(feature = "rpi4")]
    if image_start == 0x4020_0000 {
        let what = b"this image is for the Raspberry Pi 4, and this is virt: build it with --board virt\n";
        say(0x0900_0000, what);
    }
    loop {
        cpu::wait_for_interrupt();
    }
}

fn say(port: usize, text: &[u8]) {
    const FLAGS: usize = 0x18;
    const TRANSMIT_FULL: u32 = 1 << 5;
    let register = |offset| core::ptr::with_exposed_provenance_mut::<u32>(port + offset);
    for &byte in text {
        // SAFETY: the board at which an image lies there has a PL011 at this place; nothing is mapped, and nobody else runs.
        unsafe {
            while register(FLAGS).read_volatile() & TRANSMIT_FULL != 0 {}
            register(0).write_volatile(u32::from(byte));
        }
    }
}
