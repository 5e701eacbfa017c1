//! Reads terms: a cursor over bytes. It allocates nothing and does not recurse; each length is compared with what is left before it
//! is believed, so a term costs its reader no more than its bytes.

use super::atom::Atom;
use super::error::{DecodeError, Kind};
use super::ids::{Pid, Port, Reference, Words};
use super::integer::Integer;
use super::tags::{self, REFERENCE_WORDS, VERSION};
use super::token::Token;
use super::whole::Term;

/// How deep values may lie within values that are made of a term: who makes them does recurse.
const DEEPEST: u8 = 64;

/// Where in some bytes terms are read. What it returns borrows from them.
///
/// ```
/// use magpie_dist::term::{DecodeError, Kind, Reader};
/// let mut reader = Reader::external(b"\x83\x68\x03\x77\x03set\x6d\0\0\0\x01k\x61\x09")?;
/// reader.tuple_of(3)?;
/// assert!(reader.atom()?.is("set"));
/// assert_eq!(reader.binary()?, b"k");
/// // What is of another kind stays to be read.
/// let error = DecodeError::Expected { expected: Kind::Float, found: Kind::Integer };
/// assert_eq!(reader.float(), Err(error));
/// assert_eq!(reader.integer()?.to_i128(), Some(9));
/// reader.finish()?;
/// # Ok::<(), DecodeError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    /// How much deeper values may lie.
    depth: u8,
}

impl<'a> Reader<'a> {
    /// Of terms without the format's version in front, which is how they lie within others.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, depth: DEEPEST }
    }

    /// Of a term as it is sent: 131 comes first.
    ///
    /// # Errors
    /// When something else comes first.
    pub const fn external(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        match bytes {
            [VERSION, rest @ ..] => Ok(Self::new(rest)),
            [] => Err(DecodeError::Truncated),
            _ => Err(DecodeError::NoVersion),
        }
    }

    /// Whether all was read.
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// What has not been read.
    ///
    /// ```
    /// use magpie_dist::term::Reader;
    /// let mut reader = Reader::new(&[97, 1, 97, 2]);
    /// assert!(reader.integer()?.to_i128() == Some(1) && reader.rest() == [97, 2]);
    /// # Ok::<(), magpie_dist::term::DecodeError>(())
    /// ```
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Says that all should have been read.
    ///
    /// # Errors
    /// When something was not.
    pub const fn finish(&self) -> Result<(), DecodeError> {
        if self.is_empty() { Ok(()) } else { Err(DecodeError::Trailing) }
    }

    /// Goes on by one step.
    ///
    /// # Errors
    /// When no term begins here, or it is not whole. Nothing was read then.
    pub fn token(&mut self) -> Result<Token<'a>, DecodeError> {
        let mut ahead = *self;
        let token = ahead.step()?;
        *self = ahead;
        Ok(token)
    }

    /// What the next step would find.
    ///
    /// # Errors
    /// As for [`token`](Self::token).
    pub fn peek(&self) -> Result<Token<'a>, DecodeError> {
        let mut ahead = *self;
        ahead.step()
    }

    /// Goes on by one whole term, whatever it is. Its structure is sound; what is within is as it may be.
    ///
    /// # Errors
    /// When no term begins here, or it is not whole.
    pub fn term(&mut self) -> Result<Term<'a>, DecodeError> {
        let begin = self.rest;
        let mut due = 1usize;
        while due > 0 {
            let within = self.skip()?;
            // Each that is due has a byte at least.
            due = (due - 1).checked_add(within).ok_or(DecodeError::Truncated)?;
            if due > self.rest.len() {
                return Err(DecodeError::Truncated);
            }
        }
        Ok(Term::checked(&begin[..begin.len() - self.rest.len()]))
    }

    /// An atom.
    ///
    /// # Errors
    /// When it is none.
    pub fn atom(&mut self) -> Result<Atom<'a>, DecodeError> {
        self.expect(Kind::Atom, |reader, tag| match tag {
            tags::ATOM | tags::SMALL_ATOM | tags::ATOM_UTF8 | tags::SMALL_ATOM_UTF8 => {
                reader.atom_of(tag).map(Some)
            }
            _ => Ok(None),
        })
    }

    /// A whole number.
    ///
    /// # Errors
    /// When it is none.
    pub fn integer(&mut self) -> Result<Integer<'a>, DecodeError> {
        self.expect(Kind::Integer, |reader, tag| reader.integer_of(tag))
    }

    /// A number with a fraction.
    ///
    /// # Errors
    /// When it is none.
    pub fn float(&mut self) -> Result<f64, DecodeError> {
        self.expect(Kind::Float, |reader, tag| reader.float_of(tag))
    }

    /// A binary's bytes.
    ///
    /// # Errors
    /// When it is none.
    pub fn binary(&mut self) -> Result<&'a [u8], DecodeError> {
        self.expect(Kind::Binary, |reader, tag| match tag {
            tags::BINARY => {
                let count = reader.length()?;
                reader.take(count).map(Some)
            }
            _ => Ok(None),
        })
    }

    /// A process's address.
    ///
    /// ```
    /// use magpie_dist::term::{Atom, Pid, Reader, TermBuf};
    /// let pid = Pid { node: Atom::new("a@host")?, id: 90, serial: 0, creation: 7 };
    /// let term = TermBuf::of(&pid, 100)?;
    /// assert_eq!(term.as_term().reader().pid()?, pid);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When it is none.
    pub fn pid(&mut self) -> Result<Pid<'a>, DecodeError> {
        self.expect(Kind::Pid, |reader, tag| match tag {
            tags::PID | tags::NEW_PID => reader.pid_of(tag).map(Some),
            _ => Ok(None),
        })
    }

    /// A reference.
    ///
    /// ```
    /// use magpie_dist::term::{Atom, Reader, Reference, TermBuf};
    /// let reference = Reference::new(Atom::new("a@host")?, 7, &[1, 2]).ok_or("too many words")?;
    /// let term = TermBuf::of(&reference, 100)?;
    /// assert_eq!(term.as_term().reader().reference()?, reference);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When it is none.
    pub fn reference(&mut self) -> Result<Reference<'a>, DecodeError> {
        self.expect(Kind::Reference, |reader, tag| match tag {
            tags::REFERENCE | tags::NEW_REFERENCE | tags::NEWER_REFERENCE => {
                reader.reference_of(tag).map(Some)
            }
            _ => Ok(None),
        })
    }

    /// The head of a tuple: how many terms follow.
    ///
    /// ```
    /// use magpie_dist::term::Reader;
    /// assert_eq!(Reader::new(&[104, 1, 106]).tuple()?, 1);
    /// # Ok::<(), magpie_dist::term::DecodeError>(())
    /// ```
    ///
    /// # Errors
    /// When it is none.
    pub fn tuple(&mut self) -> Result<usize, DecodeError> {
        self.expect(Kind::Tuple, |reader, tag| {
            let arity = match tag {
                tags::SMALL_TUPLE => reader.u8()?.into(),
                tags::LARGE_TUPLE => reader.length()?,
                _ => return Ok(None),
            };
            reader.believe(arity).map(Some)
        })
    }

    /// The head of a tuple of so many.
    ///
    /// # Errors
    /// When it is none.
    pub fn tuple_of(&mut self, arity: usize) -> Result<(), DecodeError> {
        match self.tuple()? {
            found if found == arity => Ok(()),
            found => Err(DecodeError::Arity { expected: arity, found }),
        }
    }

    /// The head of a map: how many keys follow, each with its value.
    ///
    /// ```
    /// use magpie_dist::term::Reader;
    /// assert_eq!(Reader::new(&[116, 0, 0, 0, 1, 97, 1, 97, 2]).map()?, 1);
    /// # Ok::<(), magpie_dist::term::DecodeError>(())
    /// ```
    ///
    /// # Errors
    /// When it is none.
    pub fn map(&mut self) -> Result<usize, DecodeError> {
        self.expect(Kind::Map, |reader, tag| match tag {
            tags::MAP => {
                let pairs = reader.length()?;
                reader.believe(pairs.saturating_mul(2))?;
                Ok(Some(pairs))
            }
            _ => Ok(None),
        })
    }

    /// Makes a value of what lies within: for types that may hold others of their own kind, so that a term from outside decides
    /// only so far how deep the calls go.
    ///
    /// ```
    /// use magpie_dist::term::{DecodeError, FromTerm, Reader, Token};
    /// struct Depth(u32);
    /// impl<'a> FromTerm<'a> for Depth {
    ///     fn from_term(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
    ///         match reader.token()? {
    ///             Token::Tuple(1) => reader.nested(|reader| Ok(Self(1 + Self::from_term(reader)?.0))),
    ///             _ => Ok(Self(0)),
    ///         }
    ///     }
    /// }
    /// let nested = |deep| [[104, 1].repeat(deep), vec![106]].concat();
    /// assert_eq!(Depth::from_term(&mut Reader::new(&nested(60)))?.0, 60);
    /// assert_eq!(Depth::from_term(&mut Reader::new(&nested(100_000))).err(), Some(DecodeError::TooDeep));
    /// # Ok::<(), DecodeError>(())
    /// ```
    ///
    /// # Errors
    /// What the value's maker says, and when it lies too deep: more than 64.
    pub fn nested<T>(
        &mut self,
        make: impl FnOnce(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        self.depth = self.depth.checked_sub(1).ok_or(DecodeError::TooDeep)?;
        let made = make(self);
        self.depth += 1;
        made
    }

    /// Reads what begins with such a byte, or else leaves everything as it was.
    fn expect<T>(
        &mut self,
        expected: Kind,
        read: impl FnOnce(&mut Self, u8) -> Result<Option<T>, DecodeError>,
    ) -> Result<T, DecodeError> {
        let mut ahead = *self;
        let tag = ahead.u8()?;
        match read(&mut ahead, tag)? {
            Some(value) => {
                *self = ahead;
                Ok(value)
            }
            None => Err(DecodeError::Expected { expected, found: self.peek()?.kind() }),
        }
    }

    /// One step. After an error it may be anywhere.
    fn step(&mut self) -> Result<Token<'a>, DecodeError> {
        let tag = self.u8()?;
        if let Some(number) = self.integer_of(tag)? {
            return Ok(Token::Integer(number));
        }
        if let Some(number) = self.float_of(tag)? {
            return Ok(Token::Float(number));
        }
        Ok(match tag {
            tags::ATOM | tags::SMALL_ATOM | tags::ATOM_UTF8 | tags::SMALL_ATOM_UTF8 => {
                Token::Atom(self.atom_of(tag)?)
            }
            tags::BINARY => {
                let count = self.length()?;
                Token::Binary(self.take(count)?)
            }
            tags::BIT_BINARY => self.bits()?,
            tags::STRING => {
                let count = self.u16()?;
                Token::Bytes(self.take(count.into())?)
            }
            tags::NIL => Token::Nil,
            tags::LIST => {
                let count = self.length()?;
                self.believe(count.saturating_add(1))?;
                Token::List(count)
            }
            tags::SMALL_TUPLE => {
                let arity = self.u8()?;
                Token::Tuple(self.believe(arity.into())?)
            }
            tags::LARGE_TUPLE => {
                let arity = self.length()?;
                Token::Tuple(self.believe(arity)?)
            }
            tags::MAP => {
                let pairs = self.length()?;
                self.believe(pairs.saturating_mul(2))?;
                Token::Map(pairs)
            }
            tags::PID | tags::NEW_PID => Token::Pid(self.pid_of(tag)?),
            tags::PORT | tags::NEW_PORT | tags::V4_PORT => Token::Port(self.port_of(tag)?),
            tags::REFERENCE | tags::NEW_REFERENCE | tags::NEWER_REFERENCE => {
                Token::Reference(self.reference_of(tag)?)
            }
            tags::EXPORT => {
                let (module, function) = (self.node()?, self.node()?);
                match self.u8()? {
                    tags::SMALL_INTEGER => Token::Export(module, function, self.u8()?),
                    _ => return Err(DecodeError::Malformed),
                }
            }
            tags::NEW_FUN => {
                // The length counts itself.
                let count = self.length()?.checked_sub(4).ok_or(DecodeError::Malformed)?;
                Token::Function(self.take(count)?)
            }
            tag => return Err(DecodeError::UnknownTag(tag)),
        })
    }

    /// One step whose result nobody wants to see: how many terms follow that belong to it. Looks at what [`step`](Self::step) looks at.
    fn skip(&mut self) -> Result<usize, DecodeError> {
        let before = *self;
        match self.u8()? {
            tags::SMALL_INTEGER => self.take(1).map(|_| 0),
            tags::INTEGER => self.take(4).map(|_| 0),
            tag @ (tags::ATOM_UTF8 | tags::SMALL_ATOM_UTF8) => self.atom_of(tag).map(|_| 0),
            tags::BINARY => {
                let count = self.length()?;
                self.take(count).map(|_| 0)
            }
            tags::NIL => Ok(0),
            tags::SMALL_TUPLE => {
                let arity = self.u8()?;
                self.believe(arity.into())
            }
            tags::NEW_PID => {
                self.node()?;
                self.take(12).map(|_| 0)
            }
            _ => {
                *self = before;
                Ok(self.step()?.within())
            }
        }
    }

    fn integer_of(&mut self, tag: u8) -> Result<Option<Integer<'a>>, DecodeError> {
        let count = match tag {
            tags::SMALL_INTEGER => return Ok(Some(Integer::small(self.u8()?.into()))),
            tags::INTEGER => return Ok(Some(Integer::small(i32::from_be_bytes(self.array()?).into()))),
            tags::SMALL_BIG => self.u8()?.into(),
            tags::LARGE_BIG => self.length()?,
            _ => return Ok(None),
        };
        let sign = self.u8()?;
        let magnitude = self.take(count)?;
        match sign {
            0 | 1 => Ok(Some(Integer::big(sign == 1, magnitude))),
            _ => Err(DecodeError::Malformed),
        }
    }

    fn float_of(&mut self, tag: u8) -> Result<Option<f64>, DecodeError> {
        let value = match tag {
            tags::NEW_FLOAT => f64::from_be_bytes(self.array()?),
            tags::FLOAT => {
                // As old nodes wrote it: 31 bytes of text, filled up with zeros.
                let bytes = self.take(31)?;
                let count = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
                let text = core::str::from_utf8(&bytes[..count]).map_err(|_| DecodeError::Malformed)?;
                text.trim().parse().map_err(|_| DecodeError::Malformed)?
            }
            _ => return Ok(None),
        };
        if value.is_finite() { Ok(Some(value)) } else { Err(DecodeError::Malformed) }
    }

    fn pid_of(&mut self, tag: u8) -> Result<Pid<'a>, DecodeError> {
        let node = self.node()?;
        let (id, serial) = (self.u32()?, self.u32()?);
        let creation = if tag == tags::PID { self.u8()?.into() } else { self.u32()? };
        Ok(Pid { node, id, serial, creation })
    }

    fn port_of(&mut self, tag: u8) -> Result<Port<'a>, DecodeError> {
        let node = self.node()?;
        let id = match tag {
            tags::V4_PORT => u64::from_be_bytes(self.array()?),
            _ => self.u32()?.into(),
        };
        let creation = if tag == tags::PORT { self.u8()?.into() } else { self.u32()? };
        Ok(Port { node, id, creation })
    }

    fn bits(&mut self) -> Result<Token<'a>, DecodeError> {
        let count = self.length()?;
        let last = self.u8()?;
        let bytes = self.take(count)?;
        match last {
            8 if count > 0 => Ok(Token::Binary(bytes)),
            0 if count == 0 => Ok(Token::Binary(bytes)),
            1..8 if count > 0 => Ok(Token::Bits(bytes, last)),
            _ => Err(DecodeError::Malformed),
        }
    }

    fn atom_of(&mut self, tag: u8) -> Result<Atom<'a>, DecodeError> {
        let count = match tag {
            tags::ATOM | tags::ATOM_UTF8 => self.u16()?.into(),
            tags::SMALL_ATOM | tags::SMALL_ATOM_UTF8 => self.u8()?.into(),
            _ => return Err(DecodeError::Malformed),
        };
        let name = self.take(count)?;
        match tag {
            tags::ATOM | tags::SMALL_ATOM => Atom::from_latin(name),
            _ => Atom::from_utf8(name),
        }
    }

    /// An atom within something else that is read as a whole.
    fn node(&mut self) -> Result<Atom<'a>, DecodeError> {
        let tag = self.u8()?;
        self.atom_of(tag)
    }

    fn reference_of(&mut self, tag: u8) -> Result<Reference<'a>, DecodeError> {
        let count = if tag == tags::REFERENCE { 1 } else { usize::from(self.u16()?) };
        if !(1..=REFERENCE_WORDS).contains(&count) {
            return Err(DecodeError::Malformed);
        }
        let node = self.node()?;
        // The oldest form has its creation behind its word.
        let creation = match tag {
            tags::REFERENCE => 0,
            tags::NEW_REFERENCE => self.u8()?.into(),
            _ => self.u32()?,
        };
        let mut words = [0; REFERENCE_WORDS];
        for word in &mut words[..count] {
            *word = self.u32()?;
        }
        let creation = if tag == tags::REFERENCE { self.u8()?.into() } else { creation };
        let words = Words::new(&words[..count]).ok_or(DecodeError::Malformed)?;
        Ok(Reference { node, creation, words })
    }

    /// How many terms follow, if as many bytes are left.
    const fn believe(&self, within: usize) -> Result<usize, DecodeError> {
        if within <= self.rest.len() { Ok(within) } else { Err(DecodeError::Truncated) }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(*taken)
    }

    fn u8(&mut self) -> Result<u8, DecodeError> {
        self.array().map(|[byte]| byte)
    }

    fn u16(&mut self) -> Result<u16, DecodeError> {
        self.array().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Result<u32, DecodeError> {
        self.array().map(u32::from_be_bytes)
    }

    /// A length of four bytes.
    fn length(&mut self) -> Result<usize, DecodeError> {
        usize::try_from(self.u32()?).map_err(|_| DecodeError::Truncated)
    }
}
