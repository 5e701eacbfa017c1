//! A main function that is not `async`.
#![no_std]
#![no_main]

magpie::entry!(application);

fn application() {}
