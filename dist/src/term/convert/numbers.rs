//! Numbers, and truth.

use super::{FromTerm, ToTerm};
use crate::term::error::{DecodeError, EncodeError};
use crate::term::integer::{BigInt, Integer};
use crate::term::reader::Reader;
use crate::term::token::Token;
use crate::term::writer::Writer;

macro_rules! whole {
    ($($number:ty)*) => {$(
        impl ToTerm for $number {
            fn to_term(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
                writer.integer(*self as i128)
            }
        }

        impl FromTerm<'_> for $number {
            fn from_term(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
                let value = reader.integer()?.to_i128().ok_or(DecodeError::OutOfRange)?;
                value.try_into().map_err(|_| DecodeError::OutOfRange)
            }
        }
    )*};
}

whole!(u8 u16 u32 u64 usize i8 i16 i32 i64 i128 isize);

impl ToTerm for u128 {
    fn to_term(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        writer.big(false, &self.to_le_bytes())
    }
}

impl FromTerm<'_> for u128 {
    fn from_term(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.integer()?.to_u128().ok_or(DecodeError::OutOfRange)
    }
}

impl ToTerm for Integer<'_> {
    fn to_term(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        writer.number(*self)
    }
}

impl<'a> FromTerm<'a> for Integer<'a> {
    fn from_term(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        reader.integer()
    }
}

impl ToTerm for BigInt {
    fn to_term(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        writer.big(self.is_negative(), self.magnitude())
    }
}

impl FromTerm<'_> for BigInt {
    fn from_term(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(reader.integer()?.to_big()?)
    }
}

impl ToTerm for f64 {
    fn to_term(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        writer.float(*self)
    }
}

/// A whole number is taken as well, as Erlang's arithmetic does.
impl FromTerm<'_> for f64 {
    fn from_term(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match reader.peek()? {
            Token::Integer(number) => {
                reader.token()?;
                number.to_i128().map(|value| value as Self).ok_or(DecodeError::OutOfRange)
            }
            _ => reader.float(),
        }
    }
}

impl ToTerm for f32 {
    fn to_term(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        writer.float((*self).into())
    }
}

impl FromTerm<'_> for f32 {
    fn from_term(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let value = f64::from_term(reader)? as Self;
        if value.is_finite() { Ok(value) } else { Err(DecodeError::OutOfRange) }
    }
}

impl ToTerm for bool {
    fn to_term(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        writer.atom(if *self { "true" } else { "false" })
    }
}

impl FromTerm<'_> for bool {
    fn from_term(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match reader.atom()?.as_str() {
            Some("true") => Ok(true),
            Some("false") => Ok(false),
            _ => Err(DecodeError::UnknownVariant),
        }
    }
}
