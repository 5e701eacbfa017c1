//! Random bytes on the serial line: lines come out whole or not at all, and no line breaks the parser.
//!
//! Seeded as the device tree's fuzzer: `MAGPIE_FUZZ` streams (20,000 unless told) from `MAGPIE_SEED` on.

extern crate std;

use super::command::{Command, parse};
use super::line::{Completed, Line, MOST_BYTES};
use crate::random::{Random, setting};
use std::vec::Vec;

const PIECES: [&[u8]; 24] = [
    b"help",
    b"actors",
    b"ps",
    b"tree",
    b"kill",
    b"load",
    b"stats",
    b"settings",
    b"set",
    b"offline",
    b"online",
    b" ",
    b"\t",
    b"\n",
    b"\r\n",
    b"\x08",
    b"\x7f",
    b"\xff",
    b"\0",
    b"sched.slice_us",
    b"500",
    b"18446744073709551616",
    b"-1",
    b"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
];

fn stream(random: &mut Random) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..random.below(60) {
        match random.below(4) {
            0 => bytes.push(random.next() as u8),
            _ => bytes.extend_from_slice(PIECES[random.below(PIECES.len())]),
        }
    }
    bytes
}

#[test]
fn nothing_that_arrives_breaks_it() {
    let first = setting("MAGPIE_SEED", 1);
    let (mut understood, mut refused) = (0_u64, 0_u64);
    for seed in first..first + setting("MAGPIE_FUZZ", 20_000) {
        let mut random = Random::new(seed);
        let mut bytes = stream(&mut random);
        // Whatever came before: after an end of line the next command is understood.
        bytes.extend_from_slice(b"\nset sched.thieves 2\n");
        let (mut line, mut last) = (Line::new(), false);
        for &byte in &bytes {
            last = false;
            match line.push(byte) {
                Some(Completed::Line(text)) => {
                    assert!(!text.is_empty() && text.len() <= MOST_BYTES, "seed {seed}: {text:?}");
                    last = parse(text) == Ok(Command::Set { name: "sched.thieves", value: 2 });
                    let outcome = parse(text);
                    understood += u64::from(outcome.is_ok());
                    refused += u64::from(outcome.is_err());
                }
                Some(Completed::TooLong | Completed::NotText) => refused += 1,
                None => {}
            }
        }
        assert!(last, "seed {seed}: the last command was not understood");
    }
    // The fuzzing was meaningful: both happened often.
    assert!(
        understood > refused / 10 && refused > understood / 10,
        "{understood} understood, {refused} refused"
    );
}
