//! `std`, which there is not.
#![no_std]
#![no_main]
use std::collections::HashMap;

magpie::entry!(application);

async fn application() {
    let _map: HashMap<u32, u32> = HashMap::new();
}
