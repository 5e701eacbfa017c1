//! Lines that lose, damage and double bytes, or carry nothing but noise.

use super::rig::{FRAMES, Faults, PATIENCE, Rig, SECOND, kernel};
use crate::memory_count::most_during;
use crate::random::{Random, setting};
use crate::serial::sender::{Sender, TRIES};
use magpie_loader::PART_BYTES;
use std::time::Duration;

#[test]
fn what_is_lost_damaged_or_doubled_on_the_way_is_sent_again() {
    let rates = |f: fn(&mut Faults)| {
        let mut faults = Faults::default();
        f(&mut faults);
        faults
    };
    for (name, there) in [
        ("lost", rates(|f| f.lost = 100)),
        ("damaged", rates(|f| f.damaged = 100)),
        ("doubled", rates(|f| f.doubled = 100)),
        ("noise", rates(|f| f.noise = 100)),
    ] {
        let mut rig = Rig::new(2);
        rig.there = there;
        assert!(rig.hand_over(&kernel()).unwrap().is_certain, "{name}");
        assert!(rig.frames > FRAMES, "{name}: nothing was sent again");
        // A part again, not the whole.
        assert!(rig.sent < 2 * kernel().len(), "{name}: {} bytes were sent", rig.sent);
        assert!(rig.remarks.contains("sending byte"), "{name}: {}", rig.remarks);
    }
}

#[test]
fn lost_answers_cost_little() {
    let mut rig = Rig::new(3);
    rig.back = Faults { lost: 10_000, damaged: 2_000, ..Faults::default() };
    assert!(rig.hand_over(&kernel()).unwrap().is_certain);
    assert!(rig.sent < 2 * kernel().len(), "{} bytes were sent", rig.sent);
    // The loader says once a second how far it is: that is soon enough, and nothing need be sent again.
    assert!(rig.now < 30 * SECOND, "it took {} s", rig.now / SECOND);
}

#[test]
fn a_line_that_carries_nothing_is_given_up_after_so_many_tries() {
    let mut rig = Rig::new(11);
    rig.there.lost = 1_000_000;
    let error = rig.hand_over(&kernel()).unwrap_err().to_string();
    assert!(error.contains("beyond byte 0") && error.contains("cable"), "{error}");
    assert_eq!(rig.frames, TRIES as usize);
    assert_eq!(rig.remarks.lines().count(), TRIES as usize - 1, "{}", rig.remarks);
}

#[test]
fn noise_without_end_costs_little_memory() {
    let kernel = kernel();
    let mut sender = Sender::new(&kernel, Duration::from_micros(PATIENCE)).unwrap();
    let mut random = Random::new(15);
    let most = most_during(|| {
        for _ in 0..1000 {
            let noise: Vec<u8> = (0..4096).map(|_| random.next() as u8).collect();
            sender.hear(&noise, Duration::ZERO);
            sender.hear(&[b'x'; 4096], Duration::ZERO);
        }
    });
    assert!(most < 128 * 1024, "{most} bytes");
}

/// Everything at once, at random rates. Whatever happens, no kernel is started that is not whole, and it comes to an end.
#[test]
fn on_any_line_it_arrives_whole_or_ends_with_an_error() {
    let first = setting("MAGPIE_SEED", 1);
    let seeds = setting("MAGPIE_FUZZ", 200);
    let mut arrived = 0;
    for seed in first..first + seeds {
        let mut rig = Rig::new(seed);
        // From a good line to one that is hardly any.
        let mut rate = || match rig.random.below(4) {
            0 => 0,
            1 => rig.random.below(20),
            2 => rig.random.below(500),
            _ => rig.random.below(3_000),
        };
        let mut faults = || Faults { lost: rate(), damaged: rate(), doubled: rate(), noise: rate() };
        (rig.there, rig.back) = (faults(), faults());
        let kernel: Vec<u8> =
            (0..1 + rig.random.below(8 * PART_BYTES)).map(|_| rig.random.next() as u8).collect();
        for _ in 0..rig.random.below(3) {
            rig.resets.push(rig.random.below(2 * kernel.len()));
        }
        rig.resets.sort_by(|a, b| b.cmp(a));
        let mut result = Ok(None);
        for _ in 0..rig.random.below(3) {
            let most = rig.sent + rig.random.below(kernel.len());
            result = rig.push(&kernel, most);
            if !matches!(result, Ok(None)) {
                break;
            }
        }
        if matches!(result, Ok(None)) {
            result = rig.push(&kernel, usize::MAX);
        }
        match result {
            Ok(_) => arrived += 1,
            // The push before was interrupted when the kernel had just been started, so no loader is there any more.
            Err(_) if rig.runs => arrived += 1,
            Err(error) => assert!(error.to_string().contains("look at"), "seed {seed}: {error}"),
        }
    }
    assert!(arrived > seeds / 2, "only {arrived} of {seeds} kernels arrived");
}
