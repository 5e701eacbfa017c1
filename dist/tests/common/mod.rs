//! Chance that can be had again, and terms made of it; a small node.

#![allow(dead_code, reason = "each test program uses a part of this")]

pub mod driver;

use magpie_dist::term::{Atom, EncodeError, Pid, Port, Reader, Reference, Token, Writer};

/// How many inputs are tried, unless `MAGPIE_FUZZ` says another number.
pub fn inputs(usual: usize) -> usize {
    std::env::var("MAGPIE_FUZZ").map_or(usual, |text| text.parse().expect("a number"))
}

/// Numbers that look random, the same for the same seed.
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 11) as usize % limit
    }

    pub fn bytes(&mut self, most: usize) -> Vec<u8> {
        let count = self.below(most + 1);
        (0..count).map(|_| self.next() as u8).collect()
    }

    /// One of a few, with what is special among numbers.
    pub fn number(&mut self) -> i128 {
        let near = i128::from(self.next() as i8);
        let special =
            [0, 255, 256, i32::MAX.into(), i32::MIN.into(), 1 << 32, i64::MAX.into(), i64::MIN.into()];
        match self.below(3) {
            0 => near,
            1 => special[self.below(special.len())] + near,
            _ => (i128::from(self.next()) << 64 | i128::from(self.next())) >> self.below(120),
        }
    }

    pub fn atom(&mut self) -> String {
        let letters = ['a', 'Z', '_', '@', ' ', '\'', 'é', 'ÿ', 'λ', '漢', '😀'];
        let count = if self.below(20) == 0 { self.below(256) } else { self.below(8) };
        (0..count).map(|_| letters[self.below(letters.len())]).collect()
    }
}

/// Writes a random term, in the form in which Erlang writes it.
pub fn write_any(chance: &mut Chance, writer: &mut Writer<'_>, depth: usize) -> Result<(), EncodeError> {
    let kinds = if depth == 0 { 11 } else { 14 };
    match chance.below(kinds) {
        0 | 1 => writer.integer(chance.number()),
        2 => {
            let magnitude = chance.bytes(300);
            writer.big(chance.below(2) == 0, &magnitude)
        }
        3 => writer.float(f64::from_bits(chance.next() & !(1 << 62))),
        4 => writer.atom(&chance.atom()),
        5 => writer.binary(&chance.bytes(40)),
        6 => {
            let mut bytes = chance.bytes(20);
            bytes.push(0b1010_0000);
            writer.token(Token::Bits(&bytes, 3))
        }
        7 => {
            let mut bytes = chance.bytes(20);
            bytes.push(1);
            writer.token(Token::Bytes(&bytes))
        }
        8 => writer.nil(),
        9 => {
            let node = node(chance);
            let (id, serial) = (chance.next() as u32, chance.next() as u32);
            writer.pid(Pid { node: Atom::new(&node)?, id, serial, creation: chance.next() as u32 | 4 })
        }
        10 => {
            let node = node(chance);
            let creation = chance.next() as u32 | 4;
            if chance.below(2) == 0 {
                // Before OTP 27 small ones are written in an older form.
                let id = (chance.next() >> chance.below(64)) | 1 << 28;
                return writer.port(Port { node: Atom::new(&node)?, id, creation });
            }
            // What is of a foreign node keeps its words as they are, but the first, of which old nodes know 18 bits.
            let words = [chance.next() as u32 & 0x3_ffff, chance.next() as u32, chance.next() as u32];
            let count = 1 + chance.below(3);
            let reference = Reference::new(Atom::new(&node)?, creation, &words[..count]);
            writer.reference(reference.ok_or(EncodeError::Unbalanced)?)
        }
        11 => {
            let arity = if chance.below(50) == 0 { chance.below(300) } else { chance.below(5) };
            writer.tuple(arity)?;
            (0..arity).try_for_each(|_| write_any(chance, writer, depth - 1))
        }
        12 => {
            let count = 1 + chance.below(4);
            writer.list(count)?;
            // Not all of them bytes, which would be written as such.
            writer.integer(256)?;
            (1..count).try_for_each(|_| write_any(chance, writer, depth - 1))?;
            if chance.below(8) == 0 { writer.atom("improper") } else { writer.nil() }
        }
        _ => {
            let pairs = chance.below(6);
            writer.map(pairs)?;
            (0..pairs).try_for_each(|key| {
                writer.integer(key as i128)?;
                write_any(chance, writer, depth - 1)
            })
        }
    }
}

fn node(chance: &mut Chance) -> String {
    format!("n{}@host", chance.below(3))
}

/// A random term, without the format's version.
pub fn any_term(chance: &mut Chance) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, 1 << 20);
    write_any(chance, &mut writer, 4).unwrap();
    writer.finish().unwrap();
    bytes
}

/// Reads a term step by step, and writes it again.
pub fn copied(bytes: &[u8]) -> Vec<u8> {
    let (mut reader, mut copy) = (Reader::new(bytes), Vec::new());
    let mut writer = Writer::new(&mut copy, usize::MAX);
    while !reader.is_empty() {
        writer.token(reader.token().unwrap()).unwrap();
    }
    writer.finish().unwrap();
    copy
}

/// Changes some bytes: another value, some taken out, some put in, some doubled, the end cut off.
pub fn mutate(chance: &mut Chance, bytes: &mut Vec<u8>) {
    for _ in 0..=chance.below(4) {
        let at = chance.below(bytes.len() + 1);
        match chance.below(7) {
            0 if at < bytes.len() => bytes[at] = chance.next() as u8,
            1 if at < bytes.len() => bytes[at] ^= 1 << chance.below(8),
            2 if at < bytes.len() => {
                // What begins terms, and lengths that are too large.
                let telling = [
                    70, 77, 88, 90, 97, 98, 104, 105, 106, 107, 108, 109, 110, 111, 112, 113, 116, 119, 255,
                    0, 127,
                ];
                bytes[at] = telling[chance.below(telling.len())];
            }
            3 => bytes.truncate(at),
            4 => {
                let end = (at + chance.below(5)).min(bytes.len());
                bytes.drain(at..end);
            }
            5 => {
                let more = chance.bytes(5);
                bytes.splice(at..at, more);
            }
            _ => {
                let end = (at + chance.below(20)).min(bytes.len());
                let more = bytes[at..end].to_vec();
                bytes.splice(at..at, more);
            }
        }
    }
}
