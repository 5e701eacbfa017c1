//! What a reader finds in one step: a term that has none within it, or the head of one that has.

use super::atom::Atom;
use super::error::Kind;
use super::ids::{Pid, Port, Reference};
use super::integer::Integer;

/// One step through a term.
///
/// ```
/// use magpie_dist::term::{Integer, Kind, Reader, Token};
/// // [{ok, 1}]
/// let bytes = b"\x6c\0\0\0\x01\x68\x02\x77\x02ok\x61\x01\x6a";
/// let mut reader = Reader::new(bytes);
/// assert!(matches!(reader.token()?, Token::List(1)));
/// assert!(matches!(reader.token()?, Token::Tuple(2)));
/// assert!(matches!(reader.token()?, Token::Atom(name) if name.is("ok")));
/// let number = reader.token()?;
/// assert_eq!((number.kind(), number.within()), (Kind::Integer, 0));
/// assert!(matches!(reader.token()?, Token::Nil));
/// assert!(reader.is_empty());
/// # Ok::<(), magpie_dist::term::DecodeError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum Token<'a> {
    /// A whole number.
    Integer(Integer<'a>),
    /// A number with a fraction; finite.
    Float(f64),
    /// A name.
    Atom(Atom<'a>),
    /// Bytes.
    Binary(&'a [u8]),
    /// Bits, of which the last byte has so many, its highest.
    Bits(&'a [u8], u8),
    /// A list of whole numbers that are bytes, whole: Erlang's short form for strings.
    Bytes(&'a [u8]),
    /// The empty list.
    Nil,
    /// The head of a list: so many terms follow, and behind them its end, which is [`Nil`](Self::Nil) most often.
    List(usize),
    /// The head of a tuple: so many terms follow.
    Tuple(usize),
    /// The head of a map: so many keys follow, each with its value.
    Map(usize),
    /// A process's address.
    Pid(Pid<'a>),
    /// A port's address.
    Port(Port<'a>),
    /// A reference.
    Reference(Reference<'a>),
    /// A function of a module's, by its name and its number of arguments.
    Export(Atom<'a>, Atom<'a>, u8),
    /// A function as such, whole: nothing can be done with it here but pass it on.
    Function(&'a [u8]),
}

impl Token<'_> {
    /// What it is, when asked from outside.
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Integer(_) => Kind::Integer,
            Self::Float(_) => Kind::Float,
            Self::Atom(_) => Kind::Atom,
            Self::Binary(_) => Kind::Binary,
            Self::Bits(..) => Kind::Bits,
            Self::Bytes(_) | Self::Nil | Self::List(_) => Kind::List,
            Self::Tuple(_) => Kind::Tuple,
            Self::Map(_) => Kind::Map,
            Self::Pid(_) => Kind::Pid,
            Self::Port(_) => Kind::Port,
            Self::Reference(_) => Kind::Reference,
            Self::Export(..) | Self::Function(_) => Kind::Function,
        }
    }

    /// How many terms follow that belong to it.
    pub const fn within(&self) -> usize {
        match *self {
            Self::List(count) => count.saturating_add(1),
            Self::Tuple(count) => count,
            Self::Map(count) => count.saturating_mul(2),
            _ => 0,
        }
    }
}
