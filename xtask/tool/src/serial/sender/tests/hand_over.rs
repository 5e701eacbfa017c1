//! A kernel is handed over: what is sent, what a push goes on from, and what is said at the end.

use super::rig::{FIRST_LINE, FRAMES, PATIENCE, Rig, kernel};
use crate::serial::sender::{Sender, Step};
use magpie_loader::Report;
use std::time::Duration;

#[test]
fn a_kernel_arrives_with_each_part_sent_once() {
    let mut rig = Rig::new(1);
    let arrived = rig.hand_over(&kernel()).unwrap();
    assert!(arrived.is_certain);
    assert_eq!(rig.frames, FRAMES);
    assert_eq!(rig.remarks, "");
}

#[test]
fn an_interrupted_push_goes_on_where_it_was() {
    let mut rig = Rig::new(6);
    assert_eq!(rig.push(&kernel(), 25_000).unwrap(), None);
    let before = rig.sent;
    assert!(rig.hand_over(&kernel()).unwrap().is_certain);
    assert!(rig.remarks.contains("from before; going on there"), "{}", rig.remarks);
    let saved = kernel().len() + 1000 - (rig.sent - before);
    assert!(saved > 20_000, "only {saved} bytes were kept");
}

#[test]
fn another_kernel_begins_anew() {
    let mut rig = Rig::new(7);
    let other: Vec<u8> = kernel().into_iter().rev().collect();
    assert_eq!(rig.push(&other, 25_000).unwrap(), None);
    // That it is whole is checked when it starts.
    assert!(rig.hand_over(&kernel()).unwrap().is_certain);
}

#[test]
fn a_lost_go_is_made_up_for_by_the_kernels_own_first_line() {
    for is_certain in [true, false] {
        let mut rig = Rig::new(9);
        let kernel = kernel();
        let mut sender = Sender::new(&kernel, Duration::from_micros(PATIENCE)).unwrap();
        let arrived = loop {
            match sender.step(rig.time()).unwrap() {
                Step::Done(arrived) => break arrived,
                Step::Send(frame) => {
                    rig.send(&frame, &kernel);
                    sender.sent(rig.time());
                    if rig.runs {
                        // Only the kernel's words are left, or nothing.
                        rig.heard.clear();
                        if is_certain && rig.frames == FRAMES {
                            rig.heard.extend(FIRST_LINE);
                        }
                    }
                }
                Step::Listen(_) => {
                    let heard: Vec<u8> = rig.heard.drain(..).collect();
                    sender.hear(&heard, rig.time());
                    rig.pass_time(50_000);
                }
            }
        };
        assert_eq!(arrived.is_certain, is_certain);
        assert_eq!(arrived.rest, if is_certain { FIRST_LINE } else { b"" });
    }
}

#[test]
fn what_the_kernel_says_behind_go_is_handed_on() {
    let mut rig = Rig::new(10);
    assert_eq!(rig.hand_over(&kernel()).unwrap().rest, FIRST_LINE);
}

#[test]
fn old_announcements_are_no_reason_to_send_again() {
    let mut rig = Rig::new(13);
    // They have waited in the port since the board was switched on.
    rig.heard.extend(format!("{}\n", Report::Ready).repeat(100).bytes());
    rig.hand_over(&kernel()).unwrap();
    assert_eq!(rig.frames, FRAMES);
}
