//! Hands the one linker script on to whatever is linked with this crate: as `magpie.ld`, in a folder where the linker looks.
//! The image's own flags name it (`-Clink-arg=-Tmagpie.ld`), because a dependency cannot add flags to what uses it.
//!
//! `linker.ld` is a link to the tree's script; packaging makes a copy of it.

use std::path::Path;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=linker.ld");
    let folder = env::var_os("OUT_DIR").expect("cargo tells every build script its folder");
    let script = Path::new(&folder).join("magpie.ld");
    if let Err(error) = fs::copy("linker.ld", &script) {
        println!(
            "cargo::error=the linker script boot/linker.ld cannot be copied to {}: {error}",
            script.display()
        );
    }
    println!("cargo::rustc-link-search={}", Path::new(&folder).display());
}
