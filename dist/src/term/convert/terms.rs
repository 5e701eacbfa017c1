//! What is a term already.

use super::{FromTerm, ToTerm};
use crate::term::atom::{Atom, AtomBuf};
use crate::term::error::{DecodeError, EncodeError, Kind};
use crate::term::ids::{Pid, PidBuf, Port, Reference, ReferenceBuf};
use crate::term::reader::Reader;
use crate::term::token::Token;
use crate::term::whole::{Term, TermBuf};
use crate::term::writer::Writer;

macro_rules! as_it_is {
    ($($type:ident $read:ident $write:ident)*) => {$(
        impl ToTerm for $type<'_> {
            fn to_term(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
                writer.$write(*self)
            }
        }

        impl<'a> FromTerm<'a> for $type<'a> {
            fn from_term(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
                reader.$read()
            }
        }
    )*};
}

as_it_is!(Atom atom write_atom  Pid pid pid  Reference reference reference  Term term term);

macro_rules! to_keep {
    ($($type:ident $borrow:ident $read:ident)*) => {$(
        impl ToTerm for $type {
            fn to_term(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
                self.$borrow().to_term(writer)
            }
        }

        impl FromTerm<'_> for $type {
            fn from_term(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
                Ok(reader.$read()?.to_buf()?)
            }
        }
    )*};
}

to_keep!(AtomBuf as_atom atom  PidBuf as_pid pid  ReferenceBuf as_reference reference  TermBuf as_term term);

impl ToTerm for Port<'_> {
    fn to_term(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        writer.port(*self)
    }
}

impl<'a> FromTerm<'a> for Port<'a> {
    fn from_term(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        match reader.token()? {
            Token::Port(port) => Ok(port),
            token => Err(DecodeError::Expected { expected: Kind::Port, found: token.kind() }),
        }
    }
}
