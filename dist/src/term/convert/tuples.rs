//! Tuples of up to eight; the empty one is `ok`, which is what Erlang's functions say that have nothing to say.

use super::{FromTerm, ToTerm};
use crate::term::error::{DecodeError, EncodeError};
use crate::term::reader::Reader;
use crate::term::writer::Writer;

impl ToTerm for () {
    fn to_term(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        writer.atom("ok")
    }
}

impl FromTerm<'_> for () {
    fn from_term(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        if reader.atom()?.is("ok") { Ok(()) } else { Err(DecodeError::UnknownVariant) }
    }
}

macro_rules! tuple {
    ($arity:literal $($name:ident $index:tt)*) => {
        impl<$($name: ToTerm),*> ToTerm for ($($name,)*) {
            fn to_term(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
                writer.tuple($arity)?;
                $(self.$index.to_term(writer)?;)*
                Ok(())
            }
        }

        impl<'a, $($name: FromTerm<'a>),*> FromTerm<'a> for ($($name,)*) {
            fn from_term(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
                reader.tuple_of($arity)?;
                Ok(($($name::from_term(reader)?,)*))
            }
        }
    };
}

tuple!(1 A 0);
tuple!(2 A 0 B 1);
tuple!(3 A 0 B 1 C 2);
tuple!(4 A 0 B 1 C 2 D 3);
tuple!(5 A 0 B 1 C 2 D 3 E 4);
tuple!(6 A 0 B 1 C 2 D 3 E 4 F 5);
tuple!(7 A 0 B 1 C 2 D 3 E 4 F 5 G 6);
tuple!(8 A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7);
