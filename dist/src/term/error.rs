//! What can be wrong with bytes that are to be a term, and with a term that is to be written.

use core::fmt;

/// What a term is, when asked from outside.
///
/// ```
/// use magpie_dist::term::{Kind, Reader};
/// let kind = Reader::new(&[97, 7]).peek()?.kind();
/// assert_eq!(kind, Kind::Integer);
/// assert_eq!(kind.to_string(), "an integer");
/// # Ok::<(), magpie_dist::term::DecodeError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Kind {
    /// A whole number of any size.
    Integer,
    /// A number with a fraction.
    Float,
    /// A name.
    Atom,
    /// Bytes.
    Binary,
    /// Bits that do not fill their last byte.
    Bits,
    /// A list, the empty one too.
    List,
    /// A tuple.
    Tuple,
    /// A map.
    Map,
    /// A process's address.
    Pid,
    /// A port's address.
    Port,
    /// A reference.
    Reference,
    /// A function.
    Function,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Integer => "an integer",
            Self::Float => "a float",
            Self::Atom => "an atom",
            Self::Binary => "a binary",
            Self::Bits => "a bit string",
            Self::List => "a list",
            Self::Tuple => "a tuple",
            Self::Map => "a map",
            Self::Pid => "a pid",
            Self::Port => "a port",
            Self::Reference => "a reference",
            Self::Function => "a function",
        })
    }
}

/// Why bytes are no term, or not the one that was expected.
///
/// ```
/// use magpie_dist::term::{DecodeError, Reader};
/// // A tuple of 2^32 - 1 elements, of which none follows.
/// let error = Reader::new(&[105, 255, 255, 255, 255]).term().unwrap_err();
/// assert_eq!(error, DecodeError::Truncated);
/// assert_eq!(error.to_string(), "the term goes on behind its end");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum DecodeError {
    /// A length says more than there is.
    Truncated,
    /// Something follows where the term has ended.
    Trailing,
    /// It does not begin with the format's version, 131.
    NoVersion,
    /// No term begins with this byte, or none that is taken here: compressed terms and atoms from a cache are not.
    UnknownTag(u8),
    /// A number in it is none that may be: of bits in a last byte, of words in a reference, a float that is no number.
    Malformed,
    /// Text, or an atom's name, is not UTF-8, or too long.
    NotText,
    /// It is of another kind.
    Expected {
        /// What should have been there.
        expected: Kind,
        /// What was.
        found: Kind,
    },
    /// A number that the type has no room for.
    OutOfRange,
    /// A tuple has another number of elements.
    Arity {
        /// How many there should have been.
        expected: usize,
        /// How many there were.
        found: usize,
    },
    /// An atom, or a tuple's first, that the type has no variant for.
    UnknownVariant,
    /// A map without this key, which the type cannot do without.
    MissingField(&'static str),
    /// A map has a key twice.
    Duplicate,
    /// A list ends in something that is no list.
    Improper,
    /// Values within values, more than a reader goes into.
    TooDeep,
    /// There is no memory for it.
    OutOfMemory,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Truncated => "the term goes on behind its end",
            Self::Trailing => "something follows behind the term",
            Self::NoVersion => "no term: the first byte is not 131",
            Self::UnknownTag(tag) => return write!(f, "no term begins with the byte {tag}"),
            Self::Malformed => "a number in the term is none that may be there",
            Self::NotText => "not UTF-8, or too long for an atom",
            Self::Expected { expected, found } => return write!(f, "{found} where {expected} was expected"),
            Self::OutOfRange => "a number that is too large for its type",
            Self::Arity { expected, found } => {
                return write!(f, "a tuple of {found} where one of {expected} was expected");
            }
            Self::UnknownVariant => "an atom that means nothing here",
            Self::MissingField(name) => return write!(f, "a map without the key {name}"),
            Self::Duplicate => "a map has a key twice",
            Self::Improper => "the list's end is no list",
            Self::TooDeep => "too many terms within terms",
            Self::OutOfMemory => "out of memory",
        })
    }
}

impl core::error::Error for DecodeError {}

/// Why a term was not written. What had been written of it is to be thrown away.
///
/// ```
/// use magpie_dist::term::{EncodeError, TermBuf};
/// assert_eq!(TermBuf::of(&f64::NAN, 100).unwrap_err(), EncodeError::NotFinite);
/// assert_eq!(TermBuf::of("twelve bytes", 5).unwrap_err().to_string(), "the term is longer than the limit");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum EncodeError {
    /// It is longer than the limit of who writes.
    TooLong,
    /// An atom of more than 255 characters.
    AtomTooLong,
    /// A float that is infinite or no number; Erlang has none.
    NotFinite,
    /// A tuple, list or map has more or fewer elements than its head said, or nothing was written where a term was due.
    Unbalanced,
    /// There is no memory for it.
    OutOfMemory,
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLong => "the term is longer than the limit",
            Self::AtomTooLong => "an atom has more than 255 characters",
            Self::NotFinite => "a float is infinite or no number",
            Self::Unbalanced => "a container has more or fewer elements than its head says",
            Self::OutOfMemory => "out of memory",
        })
    }
}

impl core::error::Error for EncodeError {}

/// There is no memory for what was asked.
///
/// ```
/// use magpie_dist::term::{EncodeError, OutOfMemory};
/// assert_eq!(EncodeError::from(OutOfMemory), EncodeError::OutOfMemory);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutOfMemory;

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("out of memory")
    }
}

impl core::error::Error for OutOfMemory {}

impl From<OutOfMemory> for DecodeError {
    fn from(_: OutOfMemory) -> Self {
        Self::OutOfMemory
    }
}

impl From<OutOfMemory> for EncodeError {
    fn from(_: OutOfMemory) -> Self {
        Self::OutOfMemory
    }
}

impl From<alloc::collections::TryReserveError> for OutOfMemory {
    fn from(_: alloc::collections::TryReserveError) -> Self {
        Self
    }
}

impl From<alloc::collections::TryReserveError> for DecodeError {
    fn from(_: alloc::collections::TryReserveError) -> Self {
        Self::OutOfMemory
    }
}

impl From<alloc::collections::TryReserveError> for EncodeError {
    fn from(_: alloc::collections::TryReserveError) -> Self {
        Self::OutOfMemory
    }
}
