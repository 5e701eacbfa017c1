//! Nobody says which function is the main one. It compiles; the linker says what is missing.
//@ link
#![no_std]
#![no_main]

#[allow(unused_imports)]
use magpie::prelude::*;

#[allow(dead_code)]
async fn application() {}
