//! Terms: the values that nodes exchange, in Erlang's external format.
//!
//! A [`Reader`] is a cursor over bytes, a [`Writer`] appends to a buffer with a limit. Neither recurses, and the reader allocates
//! nothing: what it returns lies in the bytes. There is no table of atoms. Messages are made of terms by [`FromTerm`] and become terms by
//! [`ToTerm`]; [`term!`](crate::term!) implements both.
//!
//! Not here: compressed terms, and atoms that a connection numbers: both are declined when a connection begins.

mod atom;
mod convert;
mod error;
mod ids;
mod integer;
mod macros;
mod reader;
mod tagged;
mod tags;
mod token;
mod whole;
mod writer;

pub use atom::{Atom, AtomBuf};
pub use convert::{Binary, BinaryBuf, FromAnyTerm, FromTerm, ToTerm};
pub use error::{DecodeError, EncodeError, Kind, OutOfMemory};
pub(crate) use ids::Words;
pub use ids::{Pid, PidBuf, Port, Reference, ReferenceBuf};
pub use integer::{BigInt, Integer};
pub use reader::Reader;
#[doc(hidden)]
pub use tagged::{expect_fields, read_tag, write_tag};
pub use token::Token;
pub use whole::{Term, TermBuf};
pub use writer::Writer;
