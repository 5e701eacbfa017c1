//! The host's half of handing a kernel to the chain loader (docs/serial-loader.md), without the port and without a clock:
//! it is told what was heard and what time it is, and says what to send and what to tell the user.
//!
//! The loader alone knows how far it is, and says so in every answer; whatever was lost, damaged, doubled or late, the next
//! answer that arrives tells where to go on. What is left to do here is to send again when no answer comes, and to give up
//! when that gets nowhere.

use anyhow::{Result, anyhow};
use magpie_loader::{Header, Kernel, PART_BYTES, Report};
use std::collections::VecDeque;
use std::time::Duration;

/// How often one place is tried without getting further.
pub const TRIES: u32 = 8;
/// How often the board may begin anew.
pub const RESETS: u32 = 8;
/// After that many tries to start a kernel that has arrived whole, it is taken to run.
pub const START_TRIES: u32 = 4;
/// The first part has so many bytes. The next has twice as many if the last has arrived soon, and half if it did not arrive.
const LEAST_PART_BYTES: usize = 256;
const SOON: Duration = Duration::from_secs(1);
/// How long an answer is waited for: four times what the last one took, within these, and twice as long with each try. The
/// loader has given a frame up before, if bytes of it were lost.
const LEAST_LIMIT: Duration = Duration::from_secs(3);
const MOST_LIMIT: Duration = Duration::from_secs(30);
/// What the loader says of itself sooner after a frame than this, it said before it heard the frame.
const ANNOUNCED_BEFORE: Duration = Duration::from_millis(800);
/// Longer lines are noise.
const MAX_LINE_BYTES: usize = 1024;
/// What is kept of what the kernel says before it is known to run.
const MAX_REST_BYTES: usize = 64 * 1024;
/// What the kernel's first line begins with.
const KERNEL_SPEAKS: &[u8] = b"@magpie ";

/// What to do next.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// Send these bytes, and say when they have gone out.
    Send(Vec<u8>),
    /// Listen until something comes, or until then.
    Listen(Duration),
    /// The kernel has arrived whole.
    Done(Arrived),
}

/// How it ended well.
#[derive(Debug, PartialEq, Eq)]
pub struct Arrived {
    /// Whether the loader, or the kernel, said that it runs. If not, that was lost.
    pub is_certain: bool,
    /// What the kernel has said already.
    pub rest: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// No loader was heard yet.
    Waiting,
    /// A frame is to be sent.
    Sending,
    /// It was sent at this time, and is to be answered at this.
    Sent(Duration, Duration),
    /// The kernel runs; whether that is certain.
    Running(bool),
}

/// The state of handing one kernel over.
pub struct Sender<'a> {
    bytes: &'a [u8],
    kernel: Kernel,
    phase: Phase,
    /// When the loader must have been heard.
    patience: Duration,
    /// Changes with every place, not with every try: a late answer to an earlier try is as good.
    number: u32,
    /// How far the loader is, as it said last.
    place: usize,
    part_bytes: usize,
    /// The first try of this place was sent then.
    began: Option<Duration>,
    /// How long answers take.
    limit: Duration,
    tries: u32,
    resets: u32,
    /// Whether anything was heard since the loader got further.
    heard_anything: bool,
    /// A line that looks like a loader's, but is none that this tool understands.
    strange: Option<String>,
    line: Vec<u8>,
    rest: Vec<u8>,
    refused: Option<u32>,
    remarks: VecDeque<String>,
}

impl<'a> Sender<'a> {
    /// For a kernel, and a loader that must be heard until `patience`.
    pub fn new(bytes: &'a [u8], patience: Duration) -> Result<Self> {
        let length = u32::try_from(bytes.len())
            .map_err(|_| anyhow!("the kernel is larger than any board's memory"))?;
        Ok(Self {
            bytes,
            kernel: Kernel { length, checksum: crc32fast::hash(bytes) },
            phase: Phase::Waiting,
            patience,
            number: 1,
            place: 0,
            part_bytes: LEAST_PART_BYTES,
            began: None,
            limit: LEAST_LIMIT,
            tries: 0,
            resets: 0,
            heard_anything: false,
            strange: None,
            line: Vec::new(),
            rest: Vec::new(),
            refused: None,
            remarks: VecDeque::new(),
        })
    }

    /// The bytes that the loader has, of all.
    pub fn progress(&self) -> (usize, usize) {
        (self.place, self.bytes.len())
    }

    /// What the user should know, the oldest first.
    pub fn remark(&mut self) -> Option<String> {
        self.remarks.pop_front()
    }

    /// What to do at this time. An error when there is nothing more to try.
    pub fn step(&mut self, now: Duration) -> Result<Step> {
        if let Some(most) = self.refused {
            return Err(anyhow!(
                "the loader refuses the kernel: it has {} bytes, and there is room for {most}",
                self.bytes.len()
            ));
        }
        match self.phase {
            Phase::Waiting if now >= self.patience => return Err(self.never_heard()),
            Phase::Waiting => return Ok(Step::Listen(self.patience)),
            Phase::Running(is_certain) => {
                return Ok(Step::Done(Arrived { is_certain, rest: std::mem::take(&mut self.rest) }));
            }
            Phase::Sent(_, until) if now < until => return Ok(Step::Listen(until)),
            Phase::Sent(sent, _) => self.fruitless(&format!("no answer for {} s", (now - sent).as_secs())),
            Phase::Sending => {}
        }
        if self.is_whole() && self.tries >= START_TRIES {
            // It was asked to start, and is silent since: a loader would not be.
            self.phase = Phase::Running(false);
            return self.step(now);
        }
        if self.tries >= TRIES {
            return Err(self.stuck());
        }
        if self.resets > RESETS {
            return Err(anyhow!(
                "the board began anew {} times while it received the kernel: look at its power supply",
                self.resets
            ));
        }
        self.began.get_or_insert(now);
        Ok(Step::Send(self.frame()))
    }

    /// The frame has gone out.
    pub fn sent(&mut self, now: Duration) {
        let limit = (self.limit * 2_u32.pow(self.tries)).min(MOST_LIMIT);
        self.phase = Phase::Sent(now, now + limit);
    }

    /// Takes what was heard, until the kernel runs. What comes then is the kernel's.
    pub fn hear(&mut self, bytes: &[u8], now: Duration) {
        self.heard_anything |= !bytes.is_empty();
        for &byte in bytes {
            if self.phase != Phase::Waiting && self.is_whole() && self.rest.len() < MAX_REST_BYTES {
                self.rest.push(byte);
            }
            if matches!(self.phase, Phase::Running(_)) {
                continue;
            }
            match byte {
                b'\n' => {
                    let line = std::mem::take(&mut self.line);
                    self.hear_line(&String::from_utf8_lossy(&line), now);
                }
                _ if self.line.len() < MAX_LINE_BYTES => self.line.push(byte),
                _ => self.line.clear(),
            }
            if self.is_whole() && self.line.ends_with(KERNEL_SPEAKS) {
                self.phase = Phase::Running(true);
            }
        }
    }

    fn is_whole(&self) -> bool {
        self.place == self.bytes.len()
    }

    fn frame(&self) -> Vec<u8> {
        let part = &self.bytes[self.place..(self.place + self.part_bytes).min(self.bytes.len())];
        let header = Header {
            number: self.number,
            kernel: self.kernel,
            offset: self.place as u32,
            count: part.len() as u32,
        };
        [&header.to_bytes()[..], part, &crc32fast::hash(part).to_le_bytes()].concat()
    }

    fn hear_line(&mut self, line: &str, now: Duration) {
        let Some(report) = Report::find(line) else {
            if Report::resembles(line) {
                self.strange = Some(line.trim().to_owned());
            }
            return;
        };
        match report {
            Report::Go if self.is_whole() => {
                self.phase = Phase::Running(true);
                self.rest.clear();
            }
            // One of another run of the loader's.
            Report::Go => {}
            Report::Refuses { most } => {
                if self.bytes.is_empty() || self.bytes.len() > most as usize {
                    self.refused = Some(most);
                }
            }
            Report::At { place, kernel, number: Some(number) } if kernel == self.kernel => {
                if number == self.number && self.phase != Phase::Waiting {
                    self.hear_answer(place as usize, now);
                }
            }
            // An answer to somebody else.
            Report::At { number: Some(_), .. } => {}
            Report::At { place, kernel, number: None } if kernel == self.kernel => {
                self.hear_announcement(place as usize, now);
            }
            Report::At { .. } | Report::Ready => self.hear_announcement(0, now),
        }
    }

    /// The answer to the frame that was sent last.
    fn hear_answer(&mut self, place: usize, now: Duration) {
        if place == self.place {
            if matches!(self.phase, Phase::Sent(..)) {
                self.fruitless("it arrived damaged");
            }
            return;
        }
        if place > self.bytes.len() {
            return;
        }
        if place < self.place {
            self.resets += 1;
            self.remarks.push_back(format!(
                "the loader has begun anew (was the board reset?); going on at {} %",
                self.percent(place)
            ));
        }
        if let Some(began) = self.began {
            let took = now.saturating_sub(began);
            self.limit = (took * 4).clamp(LEAST_LIMIT, MOST_LIMIT);
            if took < SOON && self.tries == 0 {
                self.part_bytes = (self.part_bytes * 2).min(PART_BYTES);
            }
        }
        self.go_on_at(place);
    }

    /// What the loader says of itself, once a second, while it receives nothing.
    fn hear_announcement(&mut self, place: usize, now: Duration) {
        match self.phase {
            Phase::Waiting => {
                if place > 0 {
                    self.remarks.push_back(format!(
                        "the loader has {} % of this kernel from before; going on there",
                        self.percent(place)
                    ));
                }
                self.go_on_at(place.min(self.bytes.len()));
            }
            // The answer was lost, or the board was reset. If it is where it was, the frame may still be on its way.
            Phase::Sent(sent, _) if place > self.place || now >= sent + ANNOUNCED_BEFORE => {
                if place != self.place {
                    self.hear_answer(place, now);
                }
            }
            Phase::Sent(..) | Phase::Sending | Phase::Running(_) => {}
        }
    }

    fn go_on_at(&mut self, place: usize) {
        self.place = place;
        self.number = self.number.wrapping_add(1);
        self.phase = Phase::Sending;
        self.tries = 0;
        self.began = None;
        self.heard_anything = false;
        self.rest.clear();
    }

    /// The last try has got nowhere.
    fn fruitless(&mut self, why: &str) {
        self.tries += 1;
        self.phase = Phase::Sending;
        if self.tries < TRIES {
            let what = match self.is_whole() {
                true => "asking again for the kernel's start".to_owned(),
                false => format!("sending byte {} of {} and on again", self.place, self.bytes.len()),
            };
            self.remarks.push_back(format!("{why}; {what} (try {} of {TRIES})", self.tries + 1));
        }
        self.part_bytes = (self.part_bytes / 2).max(LEAST_PART_BYTES);
    }

    fn percent(&self, place: usize) -> usize {
        place * 100 / self.bytes.len().max(1)
    }

    fn never_heard(&self) -> anyhow::Error {
        match &self.strange {
            Some(line) => anyhow!(
                "what the loader says is not understood ({line}): if it is an older one, write its card anew; else look \
                 at the cable"
            ),
            None => {
                anyhow!(
                    "the loader does not say that it is ready: is its card in the board, and the board reset?"
                )
            }
        }
    }

    fn stuck(&self) -> anyhow::Error {
        let (place, all) = self.progress();
        let look = match self.heard_anything {
            true => {
                "what goes over the line is damaged or lost: look at the cable, its ground wire and the speed; what has \
                 arrived is kept, so run the command again"
            }
            false => "nothing comes from the board any more: look at its power and at the cable",
        };
        anyhow!("{TRIES} tries did not bring the loader beyond byte {place} of {all}: {look}")
    }
}

#[cfg(test)]
mod tests;
