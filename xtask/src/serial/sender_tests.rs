//! The host's half of the protocol against the loader's own half, over a line that loses, damages and doubles bytes, with a
//! board that is reset. Time is the rig's, so nothing here waits.

use super::{Arrived, RESETS, Sender, Step, TRIES};
use crate::memory_count::most_during;
use crate::random::{Random, setting};
use magpie_loader::{Board, PART_BYTES, Receiver, Report};
use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

/// The loader's clock counts microseconds.
const SECOND: u64 = 1_000_000;
/// One byte at 115,200 bits a second.
const BYTE: u64 = 87;
const PATIENCE: u64 = 60 * SECOND;
/// Long enough for any ending: every place may be tried so often, after each of so many resets.
const MOST_STEPS: usize = 2_000_000;
/// What the kernel says first.
const FIRST_LINE: &[u8] = b"\0\x02@magpie build=0 app=a board=b cores=4\nhello\n";

/// A board's memory, and what it has said.
#[derive(Default)]
struct Memory {
    bytes: Vec<u8>,
    said: Vec<u8>,
    /// So many bytes are kept wrongly.
    forgets: usize,
}

impl fmt::Write for Memory {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.said.extend(text.bytes());
        Ok(())
    }
}

impl Board for Memory {
    const MOST_BYTES: u32 = 1 << 20;

    fn prepare(&mut self, bytes: u32) {
        self.bytes.resize(bytes as usize, 0);
    }

    fn put(&mut self, offset: u32, byte: u8) {
        let wrong = self.forgets > 0;
        self.forgets = self.forgets.saturating_sub(1);
        self.bytes[offset as usize] = byte ^ u8::from(wrong);
    }

    fn get(&mut self, offset: u32) -> u8 {
        self.bytes[offset as usize]
    }
}

/// What is wrong with one direction of a line: how often in a million bytes each happens.
#[derive(Clone, Copy, Default)]
struct Faults {
    lost: usize,
    damaged: usize,
    doubled: usize,
    noise: usize,
}

impl Faults {
    fn pass(&self, byte: u8, random: &mut Random, out: &mut Vec<u8>) {
        let mut happens = |rate: usize| rate > 0 && random.below(1_000_000) < rate;
        let (lost, damaged) = (happens(self.lost), happens(self.damaged));
        let (doubled, noise) = (happens(self.doubled), happens(self.noise));
        if noise {
            out.push(random.next() as u8);
        }
        if lost {
            return;
        }
        let byte = if damaged { byte ^ 1 << random.below(8) } else { byte };
        out.push(byte);
        if doubled {
            out.push(byte);
        }
    }
}

/// A loader on a board, and the line to it.
struct Rig {
    now: u64,
    random: Random,
    memory: Memory,
    receiver: Receiver,
    /// Off, or not yet at the loader, until then.
    dead_until: u64,
    there: Faults,
    back: Faults,
    /// What has arrived at the host.
    heard: VecDeque<u8>,
    /// The kernel has been started; it was found whole then.
    runs: bool,
    sent: usize,
    frames: usize,
    remarks: String,
    /// The board is reset when so many bytes of all have been sent; the nearest last.
    resets: Vec<usize>,
}

impl Rig {
    fn new(seed: u64) -> Self {
        Self {
            now: 0,
            random: Random::new(seed),
            memory: Memory::default(),
            receiver: Receiver::new(SECOND),
            dead_until: 0,
            there: Faults::default(),
            back: Faults::default(),
            heard: VecDeque::new(),
            runs: false,
            sent: 0,
            frames: 0,
            remarks: String::new(),
            resets: Vec::new(),
        }
    }

    fn time(&self) -> Duration {
        Duration::from_micros(self.now)
    }

    /// What the board has said arrives at the host, as far as it does.
    fn deliver(&mut self) {
        let mut arrived = Vec::new();
        for byte in std::mem::take(&mut self.memory.said) {
            self.back.pass(byte, &mut self.random, &mut arrived);
        }
        self.heard.extend(arrived);
    }

    fn pass_time(&mut self, micros: u64) {
        self.now += micros;
        if self.now >= self.dead_until && !self.runs {
            self.receiver.tick(self.now, &mut self.memory);
            self.deliver();
        }
    }

    fn send(&mut self, frame: &[u8], kernel: &[u8]) {
        self.frames += 1;
        for &byte in frame {
            self.sent += 1;
            if self.resets.last().is_some_and(|&at| self.sent >= at) {
                self.resets.pop();
                self.receiver = Receiver::new(SECOND);
                self.memory.bytes.clear();
                self.dead_until = self.now + 3 * SECOND;
            }
            self.pass_time(BYTE);
            let mut arrived = Vec::new();
            self.there.pass(byte, &mut self.random, &mut arrived);
            for byte in arrived {
                if self.runs || self.now < self.dead_until {
                    continue;
                }
                if self.receiver.heard(byte, self.now, &mut self.memory).is_some() {
                    assert!(self.memory.bytes == kernel, "a kernel that is not whole was started");
                    self.runs = true;
                    self.memory.said.extend(FIRST_LINE);
                }
                self.deliver();
            }
        }
    }

    /// Hands a kernel over, or as much of it as `most` bytes sent are.
    fn push(&mut self, kernel: &[u8], most: usize) -> anyhow::Result<Option<Arrived>> {
        let patience = Duration::from_micros(self.now + PATIENCE);
        let mut sender = Sender::new(kernel, patience)?;
        for _ in 0..MOST_STEPS {
            let step = sender.step(self.time());
            while let Some(remark) = sender.remark() {
                self.remarks.push_str(&format!("{remark}\n"));
            }
            match step? {
                Step::Done(arrived) => {
                    assert!(self.runs, "it was said to run, and was not started");
                    return Ok(Some(arrived));
                }
                Step::Send(frame) => {
                    self.send(&frame, kernel);
                    sender.sent(self.time());
                }
                Step::Listen(until) => {
                    assert!(until > self.time());
                    let heard: Vec<u8> = self.heard.drain(..).collect();
                    sender.hear(&heard, self.time());
                    self.pass_time(50_000);
                }
            }
            if self.sent >= most {
                return Ok(None);
            }
        }
        panic!("it comes to no end")
    }

    fn hand_over(&mut self, kernel: &[u8]) -> anyhow::Result<Arrived> {
        Ok(self.push(kernel, usize::MAX)?.expect("an end"))
    }
}

/// How many frames it takes: four small parts and ten large ones, and the one that starts it.
const FRAMES: usize = 15;

fn kernel() -> Vec<u8> {
    (0..10 * PART_BYTES + 100).map(|i| (i * 11 + i / 256) as u8).collect()
}

#[test]
fn a_kernel_arrives_with_each_part_sent_once() {
    let mut rig = Rig::new(1);
    let arrived = rig.hand_over(&kernel()).unwrap();
    assert!(arrived.is_certain);
    assert_eq!(rig.frames, FRAMES);
    assert_eq!(rig.remarks, "");
}

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
fn a_line_that_carries_nothing_is_given_up_after_so_many_tries() {
    let mut rig = Rig::new(11);
    rig.there.lost = 1_000_000;
    let error = rig.hand_over(&kernel()).unwrap_err().to_string();
    assert!(error.contains("beyond byte 0") && error.contains("cable"), "{error}");
    assert_eq!(rig.frames, TRIES as usize);
    assert_eq!(rig.remarks.lines().count(), TRIES as usize - 1, "{}", rig.remarks);
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
fn old_announcements_are_no_reason_to_send_again() {
    let mut rig = Rig::new(13);
    // They have waited in the port since the board was switched on.
    rig.heard.extend(format!("{}\n", Report::Ready).repeat(100).bytes());
    rig.hand_over(&kernel()).unwrap();
    assert_eq!(rig.frames, FRAMES);
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
