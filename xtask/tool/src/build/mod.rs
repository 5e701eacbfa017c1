//! From source to something QEMU can boot: cargo, the workspace's images, the flat image file, and writing files that others may be reading.

mod board;
mod cargo;
mod file;
mod image;
mod workspace;

pub use board::Board;
pub use cargo::{
    Executable, Features, KERNEL_PACKAGE, LOADER, TARGET, build_application, build_benches, build_loader,
    build_named, build_suites, cargo,
};
pub use file::{check_output, write_whole};
pub use image::{Image, write_flat};
pub use workspace::{Workspace, is_suite, root, set_root_of};
