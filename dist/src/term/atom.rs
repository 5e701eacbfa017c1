//! Atoms: names. There is no table of them: an atom is its characters, where they lie, and is compared by them.

use alloc::string::String;
use core::fmt::{self, Write as _};

use super::error::{DecodeError, EncodeError, OutOfMemory};
use super::tags::ATOM_CHARACTERS;

/// An atom that somebody else keeps: most often the frame that it came in.
///
/// ```
/// use magpie_dist::term::{Atom, Reader};
/// let atom = Reader::new(b"\x77\x02ok").atom()?;
/// assert!(atom.is("ok"));
/// assert_eq!(atom, Atom::new("ok")?);
/// assert_eq!(atom.as_str(), Some("ok"));
/// assert_eq!(atom.to_buf()?.as_str(), "ok");
/// // Older nodes send Latin-1.
/// let atom = Reader::new(b"\x73\x03caf").atom()?;
/// assert_eq!(atom.to_string(), "caf");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct Atom<'a>(Name<'a>);

#[derive(Clone, Copy)]
enum Name<'a> {
    /// UTF-8, at most 255 characters. As bytes, for that costs less until somebody wants to see it.
    Text(&'a [u8]),
    /// Latin-1, with something in it that is not ASCII, at most 255 bytes.
    Latin(&'a [u8]),
}

impl<'a> Atom<'a> {
    /// The atom with this name.
    ///
    /// # Errors
    /// When it has more than 255 characters.
    pub fn new(name: &'a str) -> Result<Self, EncodeError> {
        match name.len() <= ATOM_CHARACTERS || name.chars().count() <= ATOM_CHARACTERS {
            true => Ok(Self(Name::Text(name.as_bytes()))),
            false => Err(EncodeError::AtomTooLong),
        }
    }

    pub(super) fn from_utf8(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        if bytes.len() <= ATOM_CHARACTERS && bytes.is_ascii() {
            return Ok(Self(Name::Text(bytes)));
        }
        let name = core::str::from_utf8(bytes).map_err(|_| DecodeError::NotText)?;
        Self::new(name).map_err(|_| DecodeError::NotText)
    }

    pub(super) const fn from_latin(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        if bytes.len() > ATOM_CHARACTERS {
            return Err(DecodeError::NotText);
        }
        Ok(Self(if bytes.is_ascii() { Name::Text(bytes) } else { Name::Latin(bytes) }))
    }

    /// Its name as UTF-8, if it lies somewhere as that.
    pub(super) const fn utf8(&self) -> Option<&'a [u8]> {
        match self.0 {
            Name::Text(name) => Some(name),
            Name::Latin(_) => None,
        }
    }

    /// Whether this is its name.
    pub fn is(&self, name: &str) -> bool {
        match self.0 {
            Name::Text(own) => own == name.as_bytes(),
            Name::Latin(_) => self.chars().eq(name.chars()),
        }
    }

    /// Its name, unless that came as Latin-1 and has more than ASCII in it: then [`chars`](Self::chars) has it.
    pub fn as_str(&self) -> Option<&'a str> {
        core::str::from_utf8(self.utf8()?).ok()
    }

    /// Its characters.
    ///
    /// ```
    /// use magpie_dist::term::Reader;
    /// let atom = Reader::new(b"\x73\x04caf\xe9").atom()?;
    /// assert_eq!(atom.as_str(), None);
    /// assert!(atom.chars().eq("café".chars()) && atom.is("café"));
    /// # Ok::<(), magpie_dist::term::DecodeError>(())
    /// ```
    pub fn chars(&self) -> impl Iterator<Item = char> + use<'a> {
        let latin = match self.0 {
            Name::Text(_) => &[],
            Name::Latin(bytes) => bytes,
        };
        self.as_str().unwrap_or_default().chars().chain(latin.iter().map(|byte| char::from(*byte)))
    }

    /// One to keep.
    ///
    /// # Errors
    /// Without memory.
    pub fn to_buf(&self) -> Result<AtomBuf, OutOfMemory> {
        let mut name = String::new();
        match self.as_str() {
            Some(text) => {
                name.try_reserve_exact(text.len())?;
                name.push_str(text);
            }
            None => {
                name.try_reserve_exact(self.chars().map(char::len_utf8).sum())?;
                name.extend(self.chars());
            }
        }
        Ok(AtomBuf(name))
    }
}

impl PartialEq for Atom<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self.0, other.0) {
            (Name::Text(one), Name::Text(other)) => one == other,
            (Name::Latin(one), Name::Latin(other)) => one == other,
            _ => self.chars().eq(other.chars()),
        }
    }
}

impl Eq for Atom<'_> {}

impl fmt::Display for Atom<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.chars().try_for_each(|character| f.write_char(character))
    }
}

impl fmt::Debug for Atom<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{self}'")
    }
}

/// An atom to keep.
///
/// ```
/// use magpie_dist::term::{AtomBuf, TermBuf};
/// let atom = AtomBuf::new("ok")?;
/// assert_eq!(atom.as_str(), "ok");
/// assert!(atom.as_atom().is("ok"));
/// assert_eq!(TermBuf::of(&atom, 100)?.as_term().decode::<AtomBuf>()?, atom);
/// assert!(AtomBuf::new(&"long".repeat(100)).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AtomBuf(String);

impl AtomBuf {
    /// The atom with this name.
    ///
    /// # Errors
    /// When it has more than 255 characters, and without memory.
    pub fn new(name: &str) -> Result<Self, EncodeError> {
        Ok(Atom::new(name)?.to_buf()?)
    }

    /// Its name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The same, borrowed.
    pub fn as_atom(&self) -> Atom<'_> {
        Atom(Name::Text(self.0.as_bytes()))
    }
}

impl fmt::Display for AtomBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
