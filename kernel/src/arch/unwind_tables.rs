//! What the compiler has written down for every instruction: where the caller's stack pointer, frame pointer and return address are
//! found. This file reads those tables (`.eh_frame`, DWARF 5 section 6.4, as LSB Core section 10.6 lays them out); it follows
//! no stack.
//!
//! Why tables and not frame pointers: a frame pointer costs each function that calls others several instructions, and what comes compiled
//! with the toolchain, `panic_fmt` among it, has none. The tables are in the image either way, and cost nothing until they are read.
//! Why not a crate: `gimli` keeps rules for all registers, in rows of a kilobyte of which it needs several; what has crashed may
//! have less stack than that. Here is what a chain of calls needs, and nothing is believed: whatever the bytes are, the
//! answer is an answer or `None`.

/// The stack pointer's number in the tables; x29 and x30 have theirs.
const SP: u64 = 31;
const X29: u64 = 29;
const X30: u64 = 30;

/// Where a register's value at the call is now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kept {
    /// In the register.
    InPlace,
    /// In memory, so far from the canonical frame address.
    At(i64),
    /// Nowhere: there is no caller, or nobody knows.
    Lost,
}

/// What the canonical frame address is counted from: the stack pointer before the call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Base {
    /// The stack pointer.
    Sp,
    /// The frame pointer.
    X29,
}

/// How to come from a function to its caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rules {
    /// The canonical frame address is this register and so many bytes.
    pub base: Base,
    /// See `base`.
    pub offset: i64,
    /// The caller's x29.
    pub x29: Kept,
    /// The return address.
    pub x30: Kept,
}

impl Rules {
    /// Of code that has not touched its stack yet: a function's first instruction.
    pub const LEAF: Self = Self { base: Base::Sp, offset: 0, x29: Kept::InPlace, x30: Kept::InPlace };
}

/// The tables of an image.
#[derive(Clone, Copy)]
pub struct UnwindTables<'a> {
    /// The sorted index, `.eh_frame_hdr`.
    pub index: &'a [u8],
    /// Where it lies.
    pub index_at: u64,
    /// The entries, `.eh_frame`.
    pub entries: &'a [u8],
    /// Where they lie.
    pub entries_at: u64,
}

/// Pointers of 32 bits, from where they stand; from the index's beginning. What the linker writes; others are not understood.
const RELATIVE_32: u8 = 0x1b;
const FROM_INDEX_32: u8 = 0x3b;
/// A number of 32 bits.
const UNSIGNED_32: u8 = 0x03;
/// Bytes of the index before its rows, and of a row.
const INDEX_HEAD: usize = 12;
const ROW: usize = 8;

impl<'a> UnwindTables<'a> {
    /// The rules at an instruction; `None` if no function is known there, or the tables say what this does not understand.
    pub fn rules_at(&self, pc: u64) -> Option<Rules> {
        let mut entry = Bytes::at(self.entries, self.entry_of(pc)?);
        let mut entry = entry.block()?;
        let position = self.position(&entry);
        let back = entry.u32()?;
        let mut common = Bytes::at(self.entries, position.checked_sub(back as usize)?);
        let common = Common::read(common.block()?)?;
        let begin = self.address_of(&entry).wrapping_add_signed(i64::from(entry.i32()?));
        let bytes = u64::from(entry.u32()?);
        let offset = pc.wrapping_sub(begin);
        if offset >= bytes {
            return None;
        }
        let augmentation = entry.unsigned()?;
        entry.skip(augmentation)?;
        let mut state =
            Execution { rules: Rules::LEAF, initial: Rules::LEAF, stack: [Rules::LEAF; 4], depth: 0 };
        state.run(common.program, &common, None)?;
        state.initial = state.rules;
        state.run(entry, &common, Some(offset))?;
        Some(state.rules)
    }

    /// Where in the entries that of the last function begins that begins at `pc` or before.
    fn entry_of(&self, pc: u64) -> Option<usize> {
        let mut head = Bytes::at(self.index, 0);
        let encodings = (head.u8()?, head.u8()?, head.u8()?, head.u8()?);
        if encodings != (1, RELATIVE_32, UNSIGNED_32, FROM_INDEX_32) {
            return None;
        }
        head.u32()?;
        let rows = head.u32()? as usize;
        // Before `low` all begin at `pc` or before it, from `high` on none.
        let (mut low, mut high) = (0, rows);
        while low < high {
            let middle = low + (high - low) / 2;
            let (begin, _) = self.row(middle)?;
            if begin <= pc { low = middle + 1 } else { high = middle }
        }
        let (_, entry) = self.row(low.checked_sub(1)?)?;
        usize::try_from(entry.checked_sub(self.entries_at)?).ok()
    }

    /// Where the function of this row begins, and its entry.
    fn row(&self, row: usize) -> Option<(u64, u64)> {
        let mut bytes = Bytes::at(self.index, INDEX_HEAD.checked_add(row.checked_mul(ROW)?)?);
        let address = |offset: i32| self.index_at.wrapping_add_signed(i64::from(offset));
        Some((address(bytes.i32()?), address(bytes.i32()?)))
    }

    fn position(&self, bytes: &Bytes<'a>) -> usize {
        bytes.0.as_ptr().addr().wrapping_sub(self.entries.as_ptr().addr())
    }

    fn address_of(&self, bytes: &Bytes<'a>) -> u64 {
        self.entries_at.wrapping_add(self.position(bytes) as u64)
    }
}

/// What the entries of many functions have in common.
struct Common<'a> {
    code_unit: u64,
    data_unit: i64,
    program: Bytes<'a>,
}

impl<'a> Common<'a> {
    fn read(mut bytes: Bytes<'a>) -> Option<Self> {
        let (id, version) = (bytes.u32()?, bytes.u8()?);
        if id != 0 || version != 1 {
            return None;
        }
        // The length of what is to follow, and how pointers are written: what the compiler says where nothing is caught.
        if bytes.take()? != *b"zR\0" {
            return None;
        }
        let (code_unit, data_unit, return_address) = (bytes.unsigned()?, bytes.signed()?, bytes.u8()?);
        let (length, encoding) = (bytes.unsigned()?, bytes.u8()?);
        if u64::from(return_address) != X30 || length != 1 || encoding != RELATIVE_32 {
            return None;
        }
        Some(Self { code_unit, data_unit, program: bytes })
    }
}

/// The state of the program that an entry is.
struct Execution {
    rules: Rules,
    /// What `restore` goes back to.
    initial: Rules,
    stack: [Rules; 4],
    depth: usize,
}

impl Execution {
    /// Runs a program: all of it, or what holds at `offset` bytes into the function.
    fn run(&mut self, mut program: Bytes<'_>, common: &Common<'_>, offset: Option<u64>) -> Option<()> {
        let mut at = 0_u64;
        while !program.0.is_empty() {
            let code = program.u8()?;
            let low = u64::from(code & 0x3f);
            let advance = match (code >> 6, code) {
                (1, _) => Some(low),
                (0, 0x02) => Some(u64::from(program.u8()?)),
                (0, 0x03) => Some(u64::from(program.u16()?)),
                (0, 0x04) => Some(u64::from(program.u32()?)),
                _ => None,
            };
            if let Some(units) = advance {
                at = at.wrapping_add(units.wrapping_mul(common.code_unit));
                if offset.is_some_and(|offset| at > offset) {
                    return Some(());
                }
                continue;
            }
            let unit = common.data_unit;
            match (code >> 6, code) {
                (2, _) => self.keep(low, Kept::At((program.unsigned()? as i64).wrapping_mul(unit))),
                (3, _) => self.restore(low),
                (_, 0x00) => {}
                (_, 0x05) => {
                    let register = program.unsigned()?;
                    self.keep(register, Kept::At((program.unsigned()? as i64).wrapping_mul(unit)));
                }
                (_, 0x06) => {
                    let register = program.unsigned()?;
                    self.restore(register);
                }
                (_, 0x07) => self.keep(program.unsigned()?, Kept::Lost),
                (_, 0x08) => self.keep(program.unsigned()?, Kept::InPlace),
                (_, 0x0a) => {
                    *self.stack.get_mut(self.depth)? = self.rules;
                    self.depth += 1;
                }
                (_, 0x0b) => {
                    self.depth = self.depth.checked_sub(1)?;
                    self.rules = self.stack[self.depth];
                }
                (_, 0x0c) => {
                    self.base(program.unsigned()?)?;
                    self.rules.offset = program.unsigned()? as i64;
                }
                (_, 0x0d) => self.base(program.unsigned()?)?,
                (_, 0x0e) => self.rules.offset = program.unsigned()? as i64,
                // Arguments' bytes, of which nothing follows.
                (_, 0x2e) => drop(program.unsigned()?),
                _ => return None,
            }
        }
        Some(())
    }

    fn keep(&mut self, register: u64, kept: Kept) {
        match register {
            X29 => self.rules.x29 = kept,
            X30 => self.rules.x30 = kept,
            // A chain of calls needs no other.
            _ => {}
        }
    }

    fn restore(&mut self, register: u64) {
        match register {
            X29 => self.rules.x29 = self.initial.x29,
            X30 => self.rules.x30 = self.initial.x30,
            _ => {}
        }
    }

    fn base(&mut self, register: u64) -> Option<()> {
        self.rules.base = match register {
            SP => Base::Sp,
            X29 => Base::X29,
            _ => return None,
        };
        Some(())
    }
}

/// What has not been read yet.
#[derive(Clone, Copy)]
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    /// From this byte on; nothing beyond the end.
    fn at(bytes: &'a [u8], start: usize) -> Self {
        Self(bytes.get(start..).unwrap_or_default())
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take().map(u8::from_le_bytes)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn i32(&mut self) -> Option<i32> {
        self.take().map(i32::from_le_bytes)
    }

    fn skip(&mut self, bytes: u64) -> Option<()> {
        self.0 = self.0.get(usize::try_from(bytes).ok()?..)?;
        Some(())
    }

    /// What is behind a length of 32 bits, as long as that says.
    fn block(&mut self) -> Option<Self> {
        let length = self.u32()? as usize;
        self.0.get(..length).map(Self)
    }

    /// LEB128, of which bits beyond 64 are cut off.
    fn unsigned(&mut self) -> Option<u64> {
        self.leb128().map(|(value, ..)| value)
    }

    fn signed(&mut self) -> Option<i64> {
        let (value, bits, last) = self.leb128()?;
        let sign = if last & 0x40 != 0 && bits < u64::BITS { u64::MAX << bits } else { 0 };
        Some((value | sign) as i64)
    }

    fn leb128(&mut self) -> Option<(u64, u32, u8)> {
        let (mut value, mut bits) = (0, 0);
        loop {
            let byte = self.u8()?;
            if bits < u64::BITS {
                value |= u64::from(byte & 0x7f) << bits;
                bits += 7;
            }
            if byte & 0x80 == 0 {
                return Some((value, bits, byte));
            }
        }
    }
}

#[cfg(test)]
mod tests;
