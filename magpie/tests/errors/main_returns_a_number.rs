//! A main function that returns what is no end of a program.
#![no_std]
#![no_main]

magpie::entry!(application);

async fn application() -> u32 {
    42
}
