//! Magpie's host tool. Run it as `cargo xtask`.

fn main() {}
