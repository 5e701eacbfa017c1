//! What can be sent as a term, and what can be made of one.

mod containers;
mod numbers;
mod terms;
mod text;
mod tuples;

use super::error::{DecodeError, EncodeError};
use super::reader::Reader;
use super::writer::Writer;

pub use text::{Binary, BinaryBuf};

/// What can be sent as a term. [`term!`](crate::term!) implements it for structs and enums.
///
/// | type | term |
/// |---|---|
/// | whole numbers, [`BigInt`](super::BigInt) | integer |
/// | `f32`, `f64` | float |
/// | `bool` | `true`, `false` |
/// | `str`, `String`, [`Binary`], [`BinaryBuf`] | binary |
/// | `()` | `ok` |
/// | `Option<T>` | `undefined`, or as `T` |
/// | `Result<T, E>` | `{ok, T}`, `{error, E}` |
/// | tuples of up to eight | tuple |
/// | `Vec<T>`, slices | list |
/// | `BTreeMap<K, V>` | map |
/// | [`Atom`](super::Atom), [`Pid`](super::Pid), [`Reference`](super::Reference), [`Port`](super::Port), and those to keep | as it is |
/// | [`Term`](super::Term), [`TermBuf`](super::TermBuf) | any |
///
/// ```
/// use magpie_dist::term::{EncodeError, TermBuf, ToTerm, Writer};
/// struct Celsius(f64);
/// impl ToTerm for Celsius {
///     fn to_term(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
///         writer.tuple(2)?;
///         writer.atom("celsius")?;
///         writer.float(self.0)
///     }
/// }
/// assert_eq!(TermBuf::of(&Celsius(21.5), 100)?.as_term().to_string(), "{celsius,21.5}");
/// # Ok::<(), EncodeError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be sent to another node",
    note = "`magpie_dist::term!` implements `ToTerm` for a struct or an enum"
)]
pub trait ToTerm {
    /// Writes one term.
    ///
    /// # Errors
    /// When the writer has no room, or the value has no term.
    fn to_term(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError>;
}

/// What can be made of a term. See [`ToTerm`] for which terms those are.
///
/// ```
/// use magpie_dist::term::{DecodeError, FromTerm, Reader, TermBuf};
/// #[derive(Debug, PartialEq)]
/// struct Celsius(f64);
/// impl<'a> FromTerm<'a> for Celsius {
///     fn from_term(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
///         reader.tuple_of(2)?;
///         if !reader.atom()?.is("celsius") {
///             return Err(DecodeError::UnknownVariant);
///         }
///         reader.float().map(Self)
///     }
/// }
/// let term = TermBuf::of(&(magpie_dist::term::Atom::new("celsius")?, 21.5), 100)?;
/// assert_eq!(term.as_term().decode::<Celsius>()?, Celsius(21.5));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be made of what another node sent",
    note = "`magpie_dist::term!` implements `FromTerm` for a struct or an enum"
)]
pub trait FromTerm<'a>: Sized {
    /// Reads one term, and makes a value of it.
    ///
    /// # Errors
    /// When it is another term than such a value's.
    fn from_term(reader: &mut Reader<'a>) -> Result<Self, DecodeError>;

    /// What it is where a map does not have it.
    ///
    /// ```
    /// use magpie_dist::term::FromTerm;
    /// assert_eq!(<Option<u8>>::absent(), Some(None));
    /// assert_eq!(u8::absent(), None);
    /// ```
    fn absent() -> Option<Self> {
        None
    }
}

/// What can be made of a term and be kept when that is gone: messages are.
///
/// ```
/// fn is_message<T: magpie_dist::term::FromAnyTerm>() {}
/// is_message::<(u64, Option<String>)>();
/// ```
pub trait FromAnyTerm: for<'a> FromTerm<'a> {}

impl<T: for<'a> FromTerm<'a>> FromAnyTerm for T {}
