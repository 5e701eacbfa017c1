//! From source to something QEMU can boot: cargo, the workspace's images, the flat image file, and writing files that others may be reading.

mod board;
mod cargo;
mod file;
mod image;
mod workspace;

pub use board::Board;
pub use cargo::{
    Executable, Features, LOADER, TARGET, build_example, build_host_suites, build_loader, build_suites,
    cargo, host_tests,
};
pub use file::write_whole;
pub use image::{Image, write_flat};
pub use workspace::{Workspace, root};
