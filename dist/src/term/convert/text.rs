//! Text, and bytes that are none.

use alloc::string::String;
use alloc::vec::Vec;

use super::{FromTerm, ToTerm};
use crate::term::error::{DecodeError, EncodeError, Kind};
use crate::term::reader::Reader;
use crate::term::token::Token;
use crate::term::writer::Writer;

/// Bytes that somebody else keeps: a binary, where a slice would be a list.
///
/// ```
/// use magpie_dist::term::{Binary, TermBuf};
/// let term = TermBuf::of(&Binary(&[0, 255]), 100)?;
/// assert_eq!(term.as_term().to_string(), "<<0,255>>");
/// assert_eq!(term.as_term().decode::<Binary<'_>>()?, Binary(&[0, 255]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Binary<'a>(pub &'a [u8]);

/// Bytes to keep: a binary, where a `Vec` would be a list.
///
/// ```
/// use magpie_dist::term::{BinaryBuf, TermBuf};
/// let term = TermBuf::of(&BinaryBuf(vec![0, 255]), 100)?;
/// assert_eq!(term.as_term().decode::<BinaryBuf>()?.0, [0, 255]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BinaryBuf(pub Vec<u8>);

impl ToTerm for Binary<'_> {
    fn to_term(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        writer.binary(self.0)
    }
}

impl<'a> FromTerm<'a> for Binary<'a> {
    fn from_term(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        reader.binary().map(Self)
    }
}

impl ToTerm for BinaryBuf {
    fn to_term(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        writer.binary(&self.0)
    }
}

impl FromTerm<'_> for BinaryBuf {
    fn from_term(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let bytes = reader.binary()?;
        let mut own = Vec::new();
        own.try_reserve_exact(bytes.len())?;
        own.extend_from_slice(bytes);
        Ok(Self(own))
    }
}

impl ToTerm for str {
    fn to_term(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        writer.binary(self.as_bytes())
    }
}

impl<'a> FromTerm<'a> for &'a str {
    fn from_term(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        core::str::from_utf8(reader.binary()?).map_err(|_| DecodeError::NotText)
    }
}

impl ToTerm for String {
    fn to_term(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        self.as_str().to_term(writer)
    }
}

/// A list of characters is taken as well: it is what Erlang calls a string.
impl FromTerm<'_> for String {
    fn from_term(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut own = Self::new();
        match reader.token()? {
            Token::Binary(bytes) => {
                let text = core::str::from_utf8(bytes).map_err(|_| DecodeError::NotText)?;
                own.try_reserve_exact(text.len())?;
                own.push_str(text);
            }
            Token::Bytes(bytes) => {
                own.try_reserve(bytes.len() * 2)?;
                own.extend(bytes.iter().map(|byte| char::from(*byte)));
            }
            Token::Nil => {}
            Token::List(count) => {
                for _ in 0..count {
                    let character = u32::from_term(reader)?;
                    let character = char::from_u32(character).ok_or(DecodeError::NotText)?;
                    own.try_reserve(character.len_utf8())?;
                    own.push(character);
                }
                let Token::Nil = reader.token()? else { return Err(DecodeError::Improper) };
            }
            token => return Err(DecodeError::Expected { expected: Kind::Binary, found: token.kind() }),
        }
        Ok(own)
    }
}
