//! Frames that are whole and say anything at all: numbers at their ends, times that go back, cores that do not exist, names that are no text. All that reads a
//! recording takes them: what it shows is nonsense then, but it shows it.
//!
//! Seeded, so a failure can be repeated: it names its seed (`MAGPIE_FUZZ` recordings from `MAGPIE_SEED` on).

use super::frame::tests::encode;
use super::perfetto;
use super::view::{Sort, View};
use super::{Record, Recording, read};
use crate::random::{Random, setting};
use crate::report::{Run, page, picture};

const NAMES: [&str; 5] = ["", "a::b<c>::{{closure}}", "<script>alert(1)</script>", "\x1b[2J", "::::<<"];

/// Small ones, so that things meet, and those at the ends.
fn any_number(random: &mut Random) -> u64 {
    match random.below(5) {
        0 => u64::MAX - random.below(3) as u64,
        1 => 1 << random.below(64),
        2 => random.next(),
        _ => random.below(6) as u64,
    }
}

fn put(body: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        body.push(number as u8 | 0x80);
        number >>= 7;
    }
    body.push(number as u8);
}

/// A frame with a right checksum.
fn frame(random: &mut Random) -> Vec<u8> {
    let kind = 1 + random.below(4) as u8;
    let core = [0, 1, 2, 63, 255][random.below(5)];
    let mut body = vec![1, kind, core];
    put(&mut body, any_number(random));
    match kind {
        1 => {
            put(&mut body, any_number(random));
            put(&mut body, any_number(random));
            for _ in 0..random.below(12) {
                body.push(random.below(20) as u8);
                put(&mut body, any_number(random));
                put(&mut body, any_number(random) & u64::from(u32::MAX));
                put(&mut body, any_number(random) & u64::from(u32::MAX));
                put(&mut body, any_number(random));
            }
        }
        2 => {
            put(&mut body, random.below(6) as u64);
            body.extend(NAMES[random.below(NAMES.len())].bytes());
            if random.below(4) == 0 {
                body.extend([0xff, 0xc3]);
            }
        }
        3 => (0..random.below(30)).for_each(|_| put(&mut body, any_number(random))),
        _ => (0..3).for_each(|_| put(&mut body, any_number(random))),
    }
    encode(&body)
}

#[test]
fn whatever_frames_say_is_shown() {
    let first = setting("MAGPIE_SEED", 1);
    let mut taken = 0;
    for seed in first..first + setting("MAGPIE_FUZZ", 500) {
        let mut random = Random::new(seed);
        let records: Vec<(u64, Record)> =
            (0..random.below(40)).filter_map(|_| read(&frame(&mut random))).collect();
        taken += records.len();
        let outcome = std::panic::catch_unwind(|| show_all(&records));
        assert!(outcome.is_ok(), "seed {seed}: {records:?}");
    }
    assert!(taken > 0, "not one frame was whole");
}

fn show_all(records: &[(u64, Record)]) {
    let (mut recording, mut view, mut run) = (Recording::default(), View::default(), Run::default());
    let mut waiting = Vec::new();
    for (sequence, record) in records {
        recording.take(*sequence, record.clone());
        view.take(*sequence, record.clone());
        run.take(*sequence, record.clone());
        if let Record::Values(core, numbers) = record {
            waiting.extend(numbers.iter().map(|number| (*core, *number, *number)));
        }
    }
    for sort in [Sort::Time, Sort::Turns, Sort::Name] {
        view.sort = sort;
        for (width, height) in [(1, 1), (80, 24), (200, 60)] {
            assert!(view.lines(width, height).iter().all(|line| line.chars().count() <= width));
        }
    }
    perfetto::draw(&recording, &waiting);
    run.finish();
    for text in [page("any", &run), picture("any", &run)] {
        assert!(!text.contains("<script>alert"), "a name is taken for a part of the page");
    }
}
