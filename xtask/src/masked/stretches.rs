//! The stretches in which interrupts are masked, from the lines of a trace; and what a stretch is, of this kind and others.

use super::code::{Code, Does};
use super::sections::Sections;
use std::collections::HashMap;

/// Of a longer one the rest of the way is not kept.
const MOST_KEPT: usize = 1 << 16;

/// A stretch: with interrupts masked, or with preemption disabled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stretch {
    /// How many instructions.
    pub instructions: u64,
    /// How many there were that began and ended in the same functions; this is the longest.
    pub count: u64,
    /// Where it began: a function, or "an interrupt".
    pub begin: String,
    /// The function in which it ended.
    pub end: String,
    /// The functions in which most of it was spent, and how many instructions.
    pub spent: Vec<(String, u64)>,
}

/// A core's stretch in progress.
#[derive(Default)]
pub struct Open {
    begin: Option<u64>,
    count: u64,
    /// The addresses, as they came.
    way: Vec<u64>,
}

impl Open {
    /// It begins with the instruction at this address.
    pub fn at(address: u64) -> Self {
        let mut open = Self::default();
        open.add(address);
        open
    }

    /// The next instruction is at this address.
    pub fn add(&mut self, address: u64) {
        self.begin.get_or_insert(address);
        self.count += 1;
        if self.way.len() < MOST_KEPT {
            self.way.push(address);
        }
    }
}

/// The stretches of one kind that were found: of those that begin and end in the same functions the longest.
pub struct Found<'a> {
    code: &'a Code,
    found: HashMap<(String, String), Stretch>,
}

impl<'a> Found<'a> {
    /// None yet.
    pub fn new(code: &'a Code) -> Self {
        Self { code, found: HashMap::new() }
    }

    /// A stretch has ended with the instruction at this address.
    pub fn close(&mut self, open: &Open, end: u64) {
        let begin = open.begin.unwrap_or(end);
        let begin = match self.code.does(begin) {
            Does::Enter => "an interrupt".to_owned(),
            _ => self.code.function(begin).to_owned(),
        };
        let end = self.code.function(end).to_owned();
        let known = self.found.entry((begin.clone(), end.clone())).or_insert_with(|| Stretch {
            instructions: 0,
            count: 0,
            begin,
            end,
            spent: Vec::new(),
        });
        known.count += 1;
        if open.count > known.instructions {
            known.instructions = open.count;
            known.spent = spent(self.code, &open.way);
        }
    }

    /// The stretches, longest first.
    pub fn sorted(self) -> Vec<Stretch> {
        let mut found: Vec<_> = self.found.into_values().collect();
        found.sort_by(|a, b| b.instructions.cmp(&a.instructions).then_with(|| a.begin.cmp(&b.begin)));
        found
    }
}

/// What is known of a core.
#[derive(Default)]
struct Core {
    has_booted: bool,
    is_masked: bool,
    open: Open,
}

/// What a trace has come to so far.
pub struct Stretches<'a> {
    code: &'a Code,
    cores: Vec<Core>,
    /// The stretches with interrupts masked.
    pub masked: Found<'a>,
    /// Those with preemption disabled.
    pub sections: Sections<'a>,
}

impl<'a> Stretches<'a> {
    /// Nothing yet, for so many cores.
    pub fn new(code: &'a Code, cores: usize) -> Self {
        Self {
            code,
            cores: (0..cores).map(|_| Core::default()).collect(),
            masked: Found::new(code),
            sections: Sections::new(code, cores),
        }
    }

    /// The next line of the trace. Lines of another kind are left out.
    pub fn take(&mut self, line: &[u8]) {
        let Some((number, address)) = parse(line) else { return };
        let does = self.code.does(address);
        let Some(core) = self.cores.get_mut(number) else { return };
        if core.is_masked {
            if does != Does::Wait {
                core.open.add(address);
            }
            if matches!(does, Does::Unmask | Does::Return) {
                core.is_masked = false;
                self.masked.close(&std::mem::take(&mut core.open), address);
            }
        } else if matches!(does, Does::Mask | Does::Enter) && core.has_booted {
            core.is_masked = true;
            core.open = Open::at(address);
        } else if does == Does::Unmask {
            core.has_booted = true;
        }
        self.sections.take(number, address, core.is_masked);
    }
}

/// The functions of a way, by how many instructions of it are in them.
fn spent(code: &Code, way: &[u64]) -> Vec<(String, u64)> {
    let mut functions: HashMap<&str, u64> = HashMap::new();
    for &address in way {
        *functions.entry(code.function(address)).or_default() += 1;
    }
    let mut functions: Vec<_> = functions.into_iter().map(|(name, count)| (name.to_owned(), count)).collect();
    functions.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    functions
}

/// The core and the address of a line such as `Trace 0: 0x7f15 [00400000/0000000040200040/00000010/ff020001] name`.
fn parse(line: &[u8]) -> Option<(usize, u64)> {
    let line = std::str::from_utf8(line.get(..line.len().min(96))?).ok()?;
    let (core, rest) = line.strip_prefix("Trace ")?.split_once(':')?;
    let address = rest.split('/').nth(1)?;
    Some((core.parse().ok()?, u64::from_str_radix(address, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::{Does, Stretches, parse};
    use crate::masked::code::Code;

    fn line(core: u32, address: u64) -> Vec<u8> {
        format!("Trace {core}: 0x7f1500 [00400000/{address:016x}/00000010/ff020001] name\n").into_bytes()
    }

    #[test]
    fn a_line_names_core_and_address() {
        assert_eq!(parse(&line(13, 0x4020_0040)), Some((13, 0x4020_0040)));
        for other in ["", "Trace", "Trace 0: 0x7f", "Linking TBs 0x7f", "Trace x: [0/0/0]"] {
            assert_eq!(parse(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn stretches_are_each_cores_own_and_boot_is_none() {
        // 0 unmasks, 4 masks, 8 does nothing, 12 returns, 16 is an interrupt's first, 20 waits.
        let code =
            Code::doing(&[Does::Unmask, Does::Mask, Does::Nothing, Does::Return, Does::Enter, Does::Wait]);
        let mut stretches = Stretches::new(&code, 2);
        for (core, address) in [
            (0, 4),
            (0, 8),
            (0, 0), // boot
            (0, 4),
            (1, 8),
            (0, 8),
            (0, 20),
            (0, 20),
            (0, 0), // three, the waits left out
            (1, 4),
            (1, 8),
            (1, 0), // boot
            (0, 16),
            (0, 8),
            (0, 8),
            (0, 8),
            (0, 12), // five
            (0, 16),
            (0, 12), // two
        ] {
            stretches.take(&line(core, address));
        }
        let found = stretches.masked.sorted();
        let lengths: Vec<_> = found.iter().map(|stretch| (stretch.instructions, stretch.count)).collect();
        assert_eq!(lengths, [(5, 2), (3, 1)]);
        assert_eq!(found[0].begin, "an interrupt");
    }
}
