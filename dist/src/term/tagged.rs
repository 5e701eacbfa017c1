//! Atoms that stand alone or first in a tuple: what `term!` is made of.

use super::atom::Atom;
use super::error::{DecodeError, EncodeError, Kind};
use super::reader::Reader;
use super::token::Token;
use super::writer::Writer;

/// Writes an atom, or the head and the first element of a tuple with so many fields behind that.
#[doc(hidden)]
pub fn write_tag(writer: &mut Writer<'_>, tag: &str, fields: usize) -> Result<(), EncodeError> {
    if fields > 0 {
        writer.tuple(fields + 1)?;
    }
    writer.atom(tag)
}

/// Reads them: the atom, and how many fields follow.
#[doc(hidden)]
pub fn read_tag<'a>(reader: &mut Reader<'a>) -> Result<(Atom<'a>, usize), DecodeError> {
    match reader.token()? {
        Token::Atom(tag) => Ok((tag, 0)),
        Token::Tuple(arity) => match arity.checked_sub(1) {
            Some(fields) => Ok((reader.atom()?, fields)),
            None => Err(DecodeError::UnknownVariant),
        },
        token => Err(DecodeError::Expected { expected: Kind::Tuple, found: token.kind() }),
    }
}

/// Says whether as many fields follow as there should.
#[doc(hidden)]
pub const fn expect_fields(expected: usize, found: usize) -> Result<(), DecodeError> {
    if expected == found {
        Ok(())
    } else {
        Err(DecodeError::Arity { expected: expected + 1, found: found + 1 })
    }
}
