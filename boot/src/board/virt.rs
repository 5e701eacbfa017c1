//! QEMU's `virt` machine. Everything else about it comes from its device tree.

use super::Board;
use crate::exit;

pub(super) static BOARD: Board = Board {
    name: "virt",
    early_uart: 0x0900_0000,
    uart_from_tree: true,
    uart_interrupt: None,
    early_devices: &[],
    kept: &[],
    prepare: || (),
    semihosting: || true,
    end: exit::switch_off,
    restart: exit::restart_by_firmware,
    watchdog: || None,
};
