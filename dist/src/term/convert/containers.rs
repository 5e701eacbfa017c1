//! What holds others: lists, maps, what may be missing, what may have failed.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::{FromTerm, ToTerm};
use crate::term::error::{DecodeError, EncodeError, Kind};
use crate::term::reader::Reader;
use crate::term::tags;
use crate::term::token::Token;
use crate::term::writer::Writer;

/// How many places are taken for a list at once: what a frame says of its length is not yet worth memory.
const AT_ONCE: usize = 64;

/// Each byte as the integer that it is in a list.
static BYTES: [[u8; 2]; 256] = {
    let mut bytes = [[tags::SMALL_INTEGER, 0]; 256];
    let mut value = 0;
    while value < bytes.len() {
        bytes[value][1] = value as u8;
        value += 1;
    }
    bytes
};

impl<T: ToTerm + ?Sized> ToTerm for &T {
    fn to_term(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        (**self).to_term(writer)
    }
}

impl<T: ToTerm + ?Sized> ToTerm for Box<T> {
    fn to_term(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        (**self).to_term(writer)
    }
}

/// As deep as a reader goes.
impl<'a, T: FromTerm<'a>> FromTerm<'a> for Box<T> {
    fn from_term(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        reader.nested(T::from_term).map(Self::new)
    }
}

impl<T: ToTerm> ToTerm for [T] {
    fn to_term(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        if !self.is_empty() {
            writer.list(self.len())?;
            self.iter().try_for_each(|element| element.to_term(writer))?;
        }
        writer.nil()
    }
}

impl<T: ToTerm, const N: usize> ToTerm for [T; N] {
    fn to_term(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        self.as_slice().to_term(writer)
    }
}

impl<T: ToTerm> ToTerm for Vec<T> {
    fn to_term(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        self.as_slice().to_term(writer)
    }
}

/// As deep as a reader goes.
impl<'a, T: FromTerm<'a>> FromTerm<'a> for Vec<T> {
    fn from_term(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let mut own = Self::new();
        match reader.token()? {
            Token::Nil => {}
            Token::Bytes(bytes) => {
                own.try_reserve(bytes.len().min(AT_ONCE))?;
                for byte in bytes {
                    own.try_reserve(1)?;
                    own.push(T::from_term(&mut Reader::new(&BYTES[usize::from(*byte)]))?);
                }
            }
            Token::List(count) => {
                own.try_reserve(count.min(AT_ONCE))?;
                reader.nested(|reader| {
                    (0..count).try_for_each(|_| {
                        own.try_reserve(1)?;
                        own.push(T::from_term(reader)?);
                        Ok(())
                    })
                })?;
                let Token::Nil = reader.token()? else { return Err(DecodeError::Improper) };
            }
            token => return Err(DecodeError::Expected { expected: Kind::List, found: token.kind() }),
        }
        Ok(own)
    }
}

impl<K: ToTerm, V: ToTerm> ToTerm for BTreeMap<K, V> {
    fn to_term(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        writer.map(self.len())?;
        self.iter().try_for_each(|(key, value)| {
            key.to_term(writer)?;
            value.to_term(writer)
        })
    }
}

/// As deep as a reader goes. Its nodes are allocated as all of such maps are: who has no memory left crashes.
impl<'a, K: FromTerm<'a> + Ord, V: FromTerm<'a>> FromTerm<'a> for BTreeMap<K, V> {
    fn from_term(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let pairs = reader.map()?;
        reader.nested(|reader| {
            let mut own = Self::new();
            for _ in 0..pairs {
                let key = K::from_term(reader)?;
                if own.insert(key, V::from_term(reader)?).is_some() {
                    return Err(DecodeError::Duplicate);
                }
            }
            Ok(own)
        })
    }
}

impl<T: ToTerm> ToTerm for Option<T> {
    fn to_term(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        match self {
            Some(value) => value.to_term(writer),
            None => writer.atom("undefined"),
        }
    }
}

/// `nil` is taken as well: it is what Elixir says.
impl<'a, T: FromTerm<'a>> FromTerm<'a> for Option<T> {
    fn from_term(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        match reader.peek()? {
            Token::Atom(atom) if atom.is("undefined") || atom.is("nil") => {
                reader.token()?;
                Ok(None)
            }
            _ => T::from_term(reader).map(Some),
        }
    }

    fn absent() -> Option<Self> {
        Some(None)
    }
}

impl<T: ToTerm, E: ToTerm> ToTerm for Result<T, E> {
    fn to_term(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        writer.tuple(2)?;
        match self {
            Ok(value) => {
                writer.atom("ok")?;
                value.to_term(writer)
            }
            Err(error) => {
                writer.atom("error")?;
                error.to_term(writer)
            }
        }
    }
}

impl<'a, T: FromTerm<'a>, E: FromTerm<'a>> FromTerm<'a> for Result<T, E> {
    fn from_term(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        reader.tuple_of(2)?;
        match reader.atom()?.as_str() {
            Some("ok") => T::from_term(reader).map(Ok),
            Some("error") => E::from_term(reader).map(Err),
            _ => Err(DecodeError::UnknownVariant),
        }
    }
}
