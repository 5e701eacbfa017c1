//! One whole term, whatever it is: borrowed from where it lies, and to keep.

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::fmt;

use super::convert::{FromTerm, ToTerm};
use super::error::{DecodeError, EncodeError, OutOfMemory};
use super::reader::Reader;
use super::token::Token;
use super::writer::Writer;

/// A term that lies somewhere, most often in the frame that it came in; whole, and not yet made anything of.
///
/// ```
/// use magpie_dist::term::{Reader, Term};
/// let mut reader = Reader::external(b"\x83\x68\x02\x77\x02ok\x61\x07")?;
/// let term: Term<'_> = reader.term()?;
/// assert_eq!(term.decode::<Result<u8, u8>>()?, Ok(7));
/// assert_eq!(term.bytes(), b"\x68\x02\x77\x02ok\x61\x07");
/// assert!(term.reader().tuple_of(2).is_ok());
/// assert_eq!(term.to_string(), "{ok,7}");
/// assert_eq!(term.to_buf()?.as_term(), term);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Term<'a>(&'a [u8]);

impl<'a> Term<'a> {
    /// Of bytes that a reader went through.
    pub(super) const fn checked(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Its bytes, without the format's version.
    pub const fn bytes(&self) -> &'a [u8] {
        self.0
    }

    /// A reader of it, at its beginning.
    pub const fn reader(&self) -> Reader<'a> {
        Reader::new(self.0)
    }

    /// Makes a value of it.
    ///
    /// # Errors
    /// When it is another term than such a value's.
    pub fn decode<T: FromTerm<'a>>(&self) -> Result<T, DecodeError> {
        let mut reader = self.reader();
        let value = T::from_term(&mut reader)?;
        reader.finish()?;
        Ok(value)
    }

    /// One to keep.
    ///
    /// # Errors
    /// Without memory.
    pub fn to_buf(&self) -> Result<TermBuf, OutOfMemory> {
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(self.0.len())?;
        bytes.extend_from_slice(self.0);
        Ok(TermBuf(Cow::Owned(bytes)))
    }
}

/// What closes a container in text, and how many terms are still due in it.
#[derive(Clone, Copy)]
enum Open {
    List(usize),
    Tuple(usize),
    Map(usize),
}

/// How deep text goes, and how many terms it has at most: it is for people.
const TEXT_DEPTH: usize = 16;
const TEXT_TERMS: usize = 200;

/// As Erlang writes it, without quotes around atoms; what is deep or long is cut off with dots.
impl fmt::Display for Term<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut reader = self.reader();
        let mut open = [Open::List(0); TEXT_DEPTH];
        let mut depth = 0;
        for _ in 0..TEXT_TERMS {
            let Ok(token) = reader.token() else { return f.write_str("...") };
            let opened = match token {
                Token::List(count) => {
                    f.write_str("[")?;
                    Some(Open::List(count.saturating_add(1)))
                }
                Token::Tuple(count) => {
                    f.write_str("{")?;
                    Some(Open::Tuple(count))
                }
                Token::Map(count) => {
                    f.write_str("#{")?;
                    Some(Open::Map(count.saturating_mul(2)))
                }
                // A list's proper end is not written.
                Token::Nil if depth > 0 && matches!(open[depth - 1], Open::List(1)) => None,
                token => {
                    write_scalar(f, &token)?;
                    None
                }
            };
            if let Some(opened) = opened {
                match open.get_mut(depth) {
                    Some(place) => *place = opened,
                    None => return f.write_str("..."),
                }
                depth += 1;
            } else if depth > 0 {
                open[depth - 1] = less(open[depth - 1]);
            }
            // Closes what is full, and goes on to what comes next.
            let mut is_fresh = opened.is_some();
            loop {
                let Some(last) = depth.checked_sub(1) else { return Ok(()) };
                match open[last] {
                    Open::List(0) => f.write_str("]")?,
                    Open::Tuple(0) | Open::Map(0) => f.write_str("}")?,
                    next => {
                        if !is_fresh {
                            separate(f, next, &reader)?;
                        }
                        break;
                    }
                }
                is_fresh = false;
                depth = last;
                if depth > 0 {
                    open[depth - 1] = less(open[depth - 1]);
                }
            }
            if depth == 0 {
                return Ok(());
            }
        }
        f.write_str("...")
    }
}

const fn less(open: Open) -> Open {
    match open {
        Open::List(due) => Open::List(due.saturating_sub(1)),
        Open::Tuple(due) => Open::Tuple(due.saturating_sub(1)),
        Open::Map(due) => Open::Map(due.saturating_sub(1)),
    }
}

fn separate(f: &mut fmt::Formatter<'_>, open: Open, reader: &Reader<'_>) -> fmt::Result {
    match open {
        Open::List(1) => match reader.peek() {
            Ok(Token::Nil) => Ok(()),
            _ => f.write_str("|"),
        },
        Open::Map(due) if due % 2 == 1 => f.write_str("=>"),
        _ => f.write_str(","),
    }
}

fn write_scalar(f: &mut fmt::Formatter<'_>, token: &Token<'_>) -> fmt::Result {
    match *token {
        Token::Integer(number) => match number.to_i128() {
            Some(value) => write!(f, "{value}"),
            None => {
                f.write_str(if number.is_negative() { "-16#" } else { "16#" })?;
                let big = number.to_big().map_err(|_| fmt::Error)?;
                big.magnitude().iter().rev().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        },
        Token::Float(number) => write!(f, "{number:?}"),
        Token::Atom(atom) => write!(f, "{atom}"),
        Token::Binary(bytes) => match core::str::from_utf8(bytes) {
            Ok(text) if text.chars().all(|character| !character.is_control()) => write!(f, "<<{text:?}>>"),
            _ => write_bytes(f, bytes),
        },
        Token::Bits(bytes, last) => {
            write_bytes(f, bytes)?;
            write!(f, ":{last}")
        }
        Token::Bytes(bytes) => {
            f.write_str("[")?;
            for (index, byte) in bytes.iter().take(TEXT_TERMS).enumerate() {
                write!(f, "{}{byte}", if index == 0 { "" } else { "," })?;
            }
            f.write_str(if bytes.len() > TEXT_TERMS { ",...]" } else { "]" })
        }
        Token::Nil => f.write_str("[]"),
        Token::Pid(pid) => write!(f, "{pid}"),
        Token::Port(port) => write!(f, "#Port<{}.{}>", port.node, port.id),
        Token::Reference(reference) => write!(f, "{reference}"),
        Token::Export(module, function, arity) => write!(f, "fun {module}:{function}/{arity}"),
        Token::Function(_) => f.write_str("#Fun<>"),
        Token::List(_) | Token::Tuple(_) | Token::Map(_) => Ok(()),
    }
}

fn write_bytes(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    f.write_str("<<")?;
    for (index, byte) in bytes.iter().take(TEXT_TERMS).enumerate() {
        write!(f, "{}{byte}", if index == 0 { "" } else { "," })?;
    }
    f.write_str(if bytes.len() > TEXT_TERMS { ",...>>" } else { ">>" })
}

impl fmt::Debug for Term<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A whole term, to keep.
///
/// ```
/// use magpie_dist::term::TermBuf;
/// let term = TermBuf::of(&(1, "two", 3.0), 1000)?;
/// assert_eq!(term.as_term().to_string(), r#"{1,<<"two">>,3.0}"#);
/// assert_eq!(term.as_term().decode::<(u8, &str, f64)>()?, (1, "two", 3.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct TermBuf(Cow<'static, [u8]>);

impl TermBuf {
    /// The atom `noconnection`: what monitors tell when the connection has gone. It needs no memory.
    ///
    /// ```
    /// use magpie_dist::term::TermBuf;
    /// assert_eq!(TermBuf::NO_CONNECTION.as_term().to_string(), "noconnection");
    /// ```
    pub const NO_CONNECTION: Self = Self(Cow::Borrowed(b"w\x0cnoconnection"));

    /// The term of a value, of so many bytes at most.
    ///
    /// # Errors
    /// When it is longer, has no term, or without memory.
    pub fn of<T: ToTerm + ?Sized>(value: &T, limit: usize) -> Result<Self, EncodeError> {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes, limit);
        value.to_term(&mut writer)?;
        writer.finish()?;
        Ok(Self(Cow::Owned(bytes)))
    }

    /// The same, borrowed.
    pub fn as_term(&self) -> Term<'_> {
        Term(&self.0)
    }
}

impl fmt::Debug for TermBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.as_term(), f)
    }
}
