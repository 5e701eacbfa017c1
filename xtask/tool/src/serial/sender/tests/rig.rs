//! What the tests are made with: a loader on a board, and a line to it on which things go wrong.

use crate::random::Random;
use crate::serial::sender::{Arrived, Sender, Step};
use magpie_loader::{Board, PART_BYTES, Receiver};
use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

/// The loader's clock counts microseconds.
pub(super) const SECOND: u64 = 1_000_000;
/// One byte at 115,200 bits a second.
const BYTE: u64 = 87;
pub(super) const PATIENCE: u64 = 60 * SECOND;
/// Long enough for any ending: every place may be tried so often, after each of so many resets.
const MOST_STEPS: usize = 2_000_000;
/// What the kernel says first.
pub(super) const FIRST_LINE: &[u8] = b"\0\x02@magpie build=0 app=a board=b cores=4\nhello\n";

/// A board's memory, and what it has said.
#[derive(Default)]
pub(super) struct Memory {
    pub(super) bytes: Vec<u8>,
    pub(super) said: Vec<u8>,
    /// So many bytes are kept wrongly.
    pub(super) forgets: usize,
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
pub(super) struct Faults {
    pub(super) lost: usize,
    pub(super) damaged: usize,
    pub(super) doubled: usize,
    pub(super) noise: usize,
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
pub(super) struct Rig {
    pub(super) now: u64,
    pub(super) random: Random,
    pub(super) memory: Memory,
    receiver: Receiver,
    /// Off, or not yet at the loader, until then.
    pub(super) dead_until: u64,
    pub(super) there: Faults,
    pub(super) back: Faults,
    /// What has arrived at the host.
    pub(super) heard: VecDeque<u8>,
    /// The kernel has been started; it was found whole then.
    pub(super) runs: bool,
    pub(super) sent: usize,
    pub(super) frames: usize,
    pub(super) remarks: String,
    /// The board is reset when so many bytes of all have been sent; the nearest last.
    pub(super) resets: Vec<usize>,
}

impl Rig {
    pub(super) fn new(seed: u64) -> Self {
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

    pub(super) fn time(&self) -> Duration {
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

    pub(super) fn pass_time(&mut self, micros: u64) {
        self.now += micros;
        if self.now >= self.dead_until && !self.runs {
            self.receiver.tick(self.now, &mut self.memory);
            self.deliver();
        }
    }

    pub(super) fn send(&mut self, frame: &[u8], kernel: &[u8]) {
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
    pub(super) fn push(&mut self, kernel: &[u8], most: usize) -> anyhow::Result<Option<Arrived>> {
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

    pub(super) fn hand_over(&mut self, kernel: &[u8]) -> anyhow::Result<Arrived> {
        Ok(self.push(kernel, usize::MAX)?.expect("an end"))
    }
}

/// How many frames it takes: four small parts and ten large ones, and the one that starts it.
pub(super) const FRAMES: usize = 15;

pub(super) fn kernel() -> Vec<u8> {
    (0..10 * PART_BYTES + 100).map(|i| (i * 11 + i / 256) as u8).collect()
}
