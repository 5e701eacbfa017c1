//! QEMU's `virt` machine. Everything else about it comes from its device tree.

use super::Board;

pub(super) static BOARD: Board = Board { name: "virt", early_uart: 0x0900_0000, semihosting: true };
