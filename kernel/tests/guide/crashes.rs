//! Crashes: what is written down of them. On a host a crash ends the program, so here is none.

use magpie::crash::{self, CrashKind};

pub fn chapter() {
    tell_of_crashes();
    assert_eq!(crash::total(), 0);
}

fn tell_of_crashes() {
    for record in crash::records().filter(|record| record.kind != CrashKind::OutOfMemory) {
        println!("{} crashed on core {}: {}", record.name(), record.core.index(), record.kind);
        println!("it said: {}", record.message());
    }
}
