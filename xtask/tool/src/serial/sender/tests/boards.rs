//! Boards that are reset, fall silent, forget, or have too little room or too old a loader.

use super::rig::{PATIENCE, Rig, kernel};
use crate::serial::sender::{RESETS, Sender, Step};
use magpie_loader::Report;
use std::time::Duration;

#[test]
fn a_reset_in_the_middle_is_noticed_and_survived() {
    let mut rig = Rig::new(4);
    rig.resets = vec![20_000];
    assert!(rig.hand_over(&kernel()).unwrap().is_certain);
    assert!(rig.remarks.contains("begun anew"), "{}", rig.remarks);
}

#[test]
fn a_board_that_is_reset_for_ever_is_given_up() {
    let mut rig = Rig::new(5);
    rig.resets = (1..100).rev().map(|n| n * 20_000).collect();
    let error = rig.hand_over(&kernel()).unwrap_err().to_string();
    assert!(error.contains("power supply"), "{error}");
    assert_eq!(rig.resets.len(), 99 - RESETS as usize - 1);
}

#[test]
fn a_kernel_that_memory_has_not_kept_is_not_started() {
    let mut rig = Rig::new(8);
    rig.memory.forgets = 1;
    assert!(rig.hand_over(&kernel()).unwrap().is_certain);
    assert!(rig.remarks.contains("begun anew"), "{}", rig.remarks);
    let mut rig = Rig::new(8);
    rig.memory.forgets = usize::MAX;
    assert!(rig.hand_over(&kernel()).is_err());
}

#[test]
fn a_board_that_falls_silent_is_given_up() {
    let kernel = kernel();
    let mut sender = Sender::new(&kernel, Duration::from_micros(PATIENCE)).unwrap();
    sender.hear(format!("{}\n", Report::Ready).as_bytes(), Duration::ZERO);
    let mut now = Duration::ZERO;
    let error = loop {
        match sender.step(now) {
            Ok(Step::Send(_)) => sender.sent(now),
            Ok(Step::Listen(until)) => now = until,
            Ok(Step::Done(_)) => panic!("nobody has answered"),
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.contains("nothing comes from the board"), "{error}");
    assert!(now < Duration::from_secs(240), "it took {now:?}");
    let remark = sender.remark().unwrap();
    assert!(remark.starts_with("no answer for 3 s; sending byte 0 of"), "{remark}");
}

#[test]
fn a_kernel_that_is_too_large_and_a_loader_that_is_too_old_are_told() {
    let error = Rig::new(14).hand_over(&vec![1; (1 << 20) + 1]).unwrap_err().to_string();
    assert!(error.contains("room for 1048576"), "{error}");
    let mut rig = Rig::new(14);
    rig.dead_until = u64::MAX;
    rig.heard.extend(b"@loader ready\n");
    let error = rig.hand_over(&kernel()).unwrap_err().to_string();
    assert!(error.contains("an older one"), "{error}");
    let mut rig = Rig::new(14);
    rig.dead_until = u64::MAX;
    let error = rig.hand_over(&kernel()).unwrap_err().to_string();
    assert!(error.contains("does not say that it is ready"), "{error}");
}
