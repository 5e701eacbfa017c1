//! Writes terms, each in its shortest form, to the end of a buffer that may grow to a limit.

use alloc::vec::Vec;

use super::atom::Atom;
use super::error::EncodeError;
use super::ids::{Pid, Port, Reference};
use super::integer::Integer;
use super::tags;
use super::token::Token;
use super::whole::Term;

/// Where one term is written. It counts what is still due, so that what was written is always one whole term, or an error.
///
/// ```
/// use magpie_dist::term::{EncodeError, Writer};
/// let mut bytes = Vec::new();
/// let mut writer = Writer::external(&mut bytes, 1000)?;
/// writer.tuple(3)?;
/// writer.atom("set")?;
/// writer.binary(b"k")?;
/// writer.integer(9)?;
/// writer.finish()?;
/// assert_eq!(bytes, b"\x83\x68\x03\x77\x03set\x6d\0\0\0\x01k\x61\x09");
///
/// let mut bytes = Vec::new();
/// let mut writer = Writer::new(&mut bytes, 1000);
/// writer.tuple(2)?;
/// writer.integer(1)?;
/// assert_eq!(writer.finish(), Err(EncodeError::Unbalanced));
/// # Ok::<(), EncodeError>(())
/// ```
#[derive(Debug)]
pub struct Writer<'b> {
    buffer: &'b mut Vec<u8>,
    /// How long the buffer may become.
    limit: usize,
    /// How many terms are still to be written.
    due: usize,
}

impl<'b> Writer<'b> {
    /// Writes a term as it lies within others, behind what is in the buffer, which may have so many bytes in the end.
    pub const fn new(buffer: &'b mut Vec<u8>, limit: usize) -> Self {
        Self { buffer, limit, due: 1 }
    }

    /// Writes a term as it is sent: with the format's version before it.
    ///
    /// # Errors
    /// When the limit or memory has no room for that.
    pub fn external(buffer: &'b mut Vec<u8>, limit: usize) -> Result<Self, EncodeError> {
        let mut writer = Self::new(buffer, limit);
        writer.put(&[&[tags::VERSION]])?;
        Ok(writer)
    }

    /// Says that all was written.
    ///
    /// # Errors
    /// When something is still due.
    pub const fn finish(self) -> Result<(), EncodeError> {
        if self.due == 0 { Ok(()) } else { Err(EncodeError::Unbalanced) }
    }

    /// An atom.
    ///
    /// # Errors
    /// When it has more than 255 characters, or there is no room.
    pub fn atom(&mut self, name: &str) -> Result<(), EncodeError> {
        self.write_atom(Atom::new(name)?)
    }

    /// An atom that came from elsewhere.
    ///
    /// ```
    /// use magpie_dist::term::{Atom, Writer};
    /// let mut bytes = Vec::new();
    /// Writer::new(&mut bytes, 100).write_atom(Atom::new("ok")?)?;
    /// assert_eq!(bytes, b"\x77\x02ok");
    /// # Ok::<(), magpie_dist::term::EncodeError>(())
    /// ```
    ///
    /// # Errors
    /// When there is no room.
    pub fn write_atom(&mut self, atom: Atom<'_>) -> Result<(), EncodeError> {
        self.next(0)?;
        self.put_atom(atom)
    }

    /// A whole number.
    ///
    /// # Errors
    /// When there is no room.
    pub fn integer(&mut self, value: i128) -> Result<(), EncodeError> {
        if let Ok(byte) = u8::try_from(value) {
            self.next(0)?;
            self.put(&[&[tags::SMALL_INTEGER, byte]])
        } else if let Ok(value) = i32::try_from(value) {
            self.next(0)?;
            self.put(&[&[tags::INTEGER], &value.to_be_bytes()])
        } else {
            self.big(value < 0, &value.unsigned_abs().to_le_bytes())
        }
    }

    /// A whole number of sign and magnitude, least byte first.
    ///
    /// ```
    /// use magpie_dist::term::Writer;
    /// let mut bytes = Vec::new();
    /// Writer::new(&mut bytes, 100).big(true, &[0, 0, 0, 0, 1, 0])?;
    /// assert_eq!(bytes, [110, 5, 1, 0, 0, 0, 0, 1]);
    /// # Ok::<(), magpie_dist::term::EncodeError>(())
    /// ```
    ///
    /// # Errors
    /// When there is no room.
    pub fn big(&mut self, is_negative: bool, magnitude: &[u8]) -> Result<(), EncodeError> {
        let count = magnitude.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let magnitude = &magnitude[..count];
        // Four bytes may be a short one: two bits of sign and magnitude decide.
        if count <= 4
            && let Some(value) = Integer::big(is_negative, magnitude).to_i128()
            && i32::try_from(value).is_ok()
        {
            return self.integer(value);
        }
        self.next(0)?;
        let sign = [u8::from(is_negative)];
        match u8::try_from(count) {
            Ok(count) => self.put(&[&[tags::SMALL_BIG, count], &sign, magnitude]),
            Err(_) => self.put(&[&[tags::LARGE_BIG], &Self::length(count)?, &sign, magnitude]),
        }
    }

    /// A number with a fraction.
    ///
    /// # Errors
    /// When it is not finite, or there is no room.
    pub fn float(&mut self, value: f64) -> Result<(), EncodeError> {
        if !value.is_finite() {
            return Err(EncodeError::NotFinite);
        }
        self.next(0)?;
        self.put(&[&[tags::NEW_FLOAT], &value.to_be_bytes()])
    }

    /// Bytes.
    ///
    /// # Errors
    /// When there is no room.
    pub fn binary(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        self.next(0)?;
        self.put(&[&[tags::BINARY], &Self::length(bytes.len())?, bytes])
    }

    /// The head of a tuple: so many terms are due.
    ///
    /// # Errors
    /// When there is no room.
    pub fn tuple(&mut self, arity: usize) -> Result<(), EncodeError> {
        self.next(arity)?;
        match u8::try_from(arity) {
            Ok(arity) => self.put(&[&[tags::SMALL_TUPLE, arity]]),
            Err(_) => self.put(&[&[tags::LARGE_TUPLE], &Self::length(arity)?]),
        }
    }

    /// The head of a list: so many terms are due, and its end, which is [`nil`](Self::nil) most often. The empty list is that end alone,
    /// without a head.
    ///
    /// ```
    /// use magpie_dist::term::Writer;
    /// let mut bytes = Vec::new();
    /// let mut writer = Writer::new(&mut bytes, 100);
    /// writer.list(1)?;
    /// writer.integer(500)?;
    /// writer.nil()?;
    /// writer.finish()?;
    /// assert_eq!(bytes, [108, 0, 0, 0, 1, 98, 0, 0, 1, 244, 106]);
    /// # Ok::<(), magpie_dist::term::EncodeError>(())
    /// ```
    ///
    /// # Errors
    /// When there is no room.
    pub fn list(&mut self, count: usize) -> Result<(), EncodeError> {
        self.next(count.checked_add(1).ok_or(EncodeError::TooLong)?)?;
        self.put(&[&[tags::LIST], &Self::length(count)?])
    }

    /// The empty list, and the end of others.
    ///
    /// # Errors
    /// When there is no room.
    pub fn nil(&mut self) -> Result<(), EncodeError> {
        self.next(0)?;
        self.put(&[&[tags::NIL]])
    }

    /// The head of a map: so many keys are due, each with its value.
    ///
    /// ```
    /// use magpie_dist::term::Writer;
    /// let mut bytes = Vec::new();
    /// let mut writer = Writer::new(&mut bytes, 100);
    /// writer.map(1)?;
    /// writer.atom("a")?;
    /// writer.float(0.5)?;
    /// writer.finish()?;
    /// assert_eq!(bytes, b"\x74\0\0\0\x01\x77\x01a\x46\x3f\xe0\0\0\0\0\0\0");
    /// # Ok::<(), magpie_dist::term::EncodeError>(())
    /// ```
    ///
    /// # Errors
    /// When there is no room.
    pub fn map(&mut self, pairs: usize) -> Result<(), EncodeError> {
        self.next(pairs.checked_mul(2).ok_or(EncodeError::TooLong)?)?;
        self.put(&[&[tags::MAP], &Self::length(pairs)?])
    }

    /// A process's address.
    ///
    /// ```
    /// use magpie_dist::term::{Atom, Pid, Port, Reference, TermBuf, Writer};
    /// let node = Atom::new("a@h")?;
    /// let mut bytes = Vec::new();
    /// let mut writer = Writer::new(&mut bytes, 1000);
    /// writer.tuple(3)?;
    /// writer.pid(Pid { node, id: 1, serial: 2, creation: 3 })?;
    /// writer.port(Port { node, id: 1, creation: 3 })?;
    /// writer.reference(Reference::new(node, 3, &[1, 2]).ok_or("too many words")?)?;
    /// writer.finish()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When there is no room.
    pub fn pid(&mut self, pid: Pid<'_>) -> Result<(), EncodeError> {
        self.next(0)?;
        let mut numbers = [0; 12];
        numbers[..4].copy_from_slice(&pid.id.to_be_bytes());
        numbers[4..8].copy_from_slice(&pid.serial.to_be_bytes());
        numbers[8..].copy_from_slice(&pid.creation.to_be_bytes());
        self.put_with_atom(&[tags::NEW_PID], pid.node, &numbers)
    }

    /// A port's address.
    ///
    /// # Errors
    /// When there is no room.
    pub fn port(&mut self, port: Port<'_>) -> Result<(), EncodeError> {
        self.next(0)?;
        let mut numbers = [0; 12];
        numbers[..8].copy_from_slice(&port.id.to_be_bytes());
        numbers[8..].copy_from_slice(&port.creation.to_be_bytes());
        self.put_with_atom(&[tags::V4_PORT], port.node, &numbers)
    }

    /// A reference.
    ///
    /// # Errors
    /// When there is no room.
    pub fn reference(&mut self, reference: Reference<'_>) -> Result<(), EncodeError> {
        self.next(0)?;
        let words = reference.words();
        let mut numbers = [0; 4 + 4 * tags::REFERENCE_WORDS];
        numbers[..4].copy_from_slice(&reference.creation.to_be_bytes());
        let places = numbers[4..].chunks_exact_mut(4);
        places.zip(words).for_each(|(place, word)| place.copy_from_slice(&word.to_be_bytes()));
        let head = [tags::NEWER_REFERENCE, 0, words.len() as u8];
        self.put_with_atom(&head, reference.node, &numbers[..4 + 4 * words.len()])
    }

    /// A term that is one already.
    ///
    /// ```
    /// use magpie_dist::term::{TermBuf, Writer};
    /// let ok = TermBuf::of(&(), 10)?;
    /// let mut bytes = Vec::new();
    /// Writer::new(&mut bytes, 10).term(ok.as_term())?;
    /// assert_eq!(bytes, b"\x77\x02ok");
    /// # Ok::<(), magpie_dist::term::EncodeError>(())
    /// ```
    ///
    /// # Errors
    /// When there is no room.
    pub fn term(&mut self, term: Term<'_>) -> Result<(), EncodeError> {
        self.next(0)?;
        self.put(&[term.bytes()])
    }

    /// What a reader found in one step.
    ///
    /// ```
    /// use magpie_dist::term::{Reader, Writer};
    /// let bytes = b"\x68\x02\x77\x02ok\x61\x07";
    /// let (mut reader, mut copy) = (Reader::new(bytes), Vec::new());
    /// let mut writer = Writer::new(&mut copy, 100);
    /// while !reader.is_empty() {
    ///     writer.token(reader.token()?)?;
    /// }
    /// writer.finish()?;
    /// assert_eq!(copy, bytes);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When there is no room.
    pub fn token(&mut self, token: Token<'_>) -> Result<(), EncodeError> {
        match token {
            Token::Integer(number) => self.number(number),
            Token::Float(value) => self.float(value),
            Token::Atom(atom) => self.write_atom(atom),
            Token::Binary(bytes) => self.binary(bytes),
            Token::Bits(bytes, last) => {
                self.next(0)?;
                self.put(&[&[tags::BIT_BINARY], &Self::length(bytes.len())?, &[last], bytes])
            }
            Token::Bytes(bytes) => {
                self.next(0)?;
                let count = u16::try_from(bytes.len()).map_err(|_| EncodeError::TooLong)?;
                self.put(&[&[tags::STRING], &count.to_be_bytes(), bytes])
            }
            Token::Nil => self.nil(),
            Token::List(count) => self.list(count),
            Token::Tuple(arity) => self.tuple(arity),
            Token::Map(pairs) => self.map(pairs),
            Token::Pid(pid) => self.pid(pid),
            Token::Port(port) => self.port(port),
            Token::Reference(reference) => self.reference(reference),
            Token::Export(module, function, arity) => {
                self.next(0)?;
                self.put(&[&[tags::EXPORT]])?;
                self.put_atom(module)?;
                self.put_atom(function)?;
                self.put(&[&[tags::SMALL_INTEGER, arity]])
            }
            Token::Function(bytes) => {
                self.next(0)?;
                self.put(&[&[tags::NEW_FUN], &Self::length(bytes.len() + 4)?, bytes])
            }
        }
    }

    /// A whole number as it was read.
    pub(super) fn number(&mut self, number: Integer<'_>) -> Result<(), EncodeError> {
        match number.to_i128() {
            Some(value) => self.integer(value),
            None => {
                let big = number.to_big()?;
                self.big(big.is_negative(), big.magnitude())
            }
        }
    }

    /// Accounts for one term, with so many within it.
    const fn next(&mut self, within: usize) -> Result<(), EncodeError> {
        let Some(others) = self.due.checked_sub(1) else { return Err(EncodeError::Unbalanced) };
        match others.checked_add(within) {
            Some(due) => self.due = due,
            None => return Err(EncodeError::TooLong),
        }
        Ok(())
    }

    fn put_atom(&mut self, atom: Atom<'_>) -> Result<(), EncodeError> {
        self.put_with_atom(&[], atom, &[])
    }

    /// An atom, with what stands before and behind it in the same term.
    fn put_with_atom(&mut self, before: &[u8], atom: Atom<'_>, behind: &[u8]) -> Result<(), EncodeError> {
        let Some(name) = atom.utf8() else {
            // Latin-1 of 255 characters is no more than twice as many bytes.
            let name = atom.to_buf()?;
            return self.put_with_atom(before, name.as_atom(), behind);
        };
        match u8::try_from(name.len()) {
            Ok(count) => self.put(&[before, &[tags::SMALL_ATOM_UTF8, count], name, behind]),
            // 255 characters of four bytes at most.
            Err(_) => {
                self.put(&[before, &[tags::ATOM_UTF8], &(name.len() as u16).to_be_bytes(), name, behind])
            }
        }
    }

    fn length(count: usize) -> Result<[u8; 4], EncodeError> {
        u32::try_from(count).map(u32::to_be_bytes).map_err(|_| EncodeError::TooLong)
    }

    fn put(&mut self, parts: &[&[u8]]) -> Result<(), EncodeError> {
        let count: usize = parts.iter().map(|part| part.len()).sum();
        if self.limit.checked_sub(self.buffer.len()).is_none_or(|room| room < count) {
            return Err(EncodeError::TooLong);
        }
        self.buffer.try_reserve(count)?;
        parts.iter().for_each(|part| self.buffer.extend_from_slice(part));
        Ok(())
    }
}
