//! What names processes, ports and references: of any node, so each has its node's name in it.

use core::fmt;

use super::atom::{Atom, AtomBuf};
use super::error::OutOfMemory;
use super::tags::REFERENCE_WORDS;

/// The address of a process of some node, borrowed.
///
/// ```
/// use magpie_dist::term::{Atom, Pid, TermBuf};
/// let pid = Pid { node: Atom::new("a@host")?, id: 90, serial: 0, creation: 1_700_000_000 };
/// let term = TermBuf::of(&pid, 100)?;
/// assert_eq!(term.as_term().decode::<Pid<'_>>()?, pid);
/// assert_eq!(pid.to_string(), "<a@host.90.0>");
/// assert_eq!(pid.to_buf()?.as_pid(), pid);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pid<'a> {
    /// Whose process it is.
    pub node: Atom<'a>,
    /// Its number.
    pub id: u32,
    /// How often the numbers have begun anew.
    pub serial: u32,
    /// Which life of that node's it is in.
    pub creation: u32,
}

impl Pid<'_> {
    /// One to keep.
    ///
    /// # Errors
    /// Without memory.
    pub fn to_buf(&self) -> Result<PidBuf, OutOfMemory> {
        let Self { node, id, serial, creation } = *self;
        Ok(PidBuf { node: node.to_buf()?, id, serial, creation })
    }
}

impl fmt::Display for Pid<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{}.{}.{}>", self.node, self.id, self.serial)
    }
}

/// The address of a process of some node, to keep.
///
/// ```
/// use magpie_dist::term::{AtomBuf, PidBuf};
/// let pid = PidBuf { node: AtomBuf::new("a@host")?, id: 90, serial: 0, creation: 1 };
/// assert_eq!(pid.as_pid().to_string(), "<a@host.90.0>");
/// # Ok::<(), magpie_dist::term::EncodeError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PidBuf {
    /// Whose process it is.
    pub node: AtomBuf,
    /// Its number.
    pub id: u32,
    /// How often the numbers have begun anew.
    pub serial: u32,
    /// Which life of that node's it is in.
    pub creation: u32,
}

impl PidBuf {
    /// The same, borrowed.
    pub fn as_pid(&self) -> Pid<'_> {
        let Self { ref node, id, serial, creation } = *self;
        Pid { node: node.as_atom(), id, serial, creation }
    }
}

/// The address of a port of some node. It is passed on, and nothing more.
///
/// ```
/// use magpie_dist::term::{Atom, Port, TermBuf};
/// let port = Port { node: Atom::new("a@host")?, id: 5, creation: 1 };
/// assert_eq!(TermBuf::of(&port, 100)?.as_term().decode::<Port<'_>>()?, port);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Port<'a> {
    /// Whose port it is.
    pub node: Atom<'a>,
    /// Its number.
    pub id: u64,
    /// Which life of that node's it is in.
    pub creation: u32,
}

/// The words of a reference: five at most.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Words {
    words: [u32; REFERENCE_WORDS],
    count: u8,
}

impl Words {
    pub(crate) fn new(words: &[u32]) -> Option<Self> {
        let mut all = [0; REFERENCE_WORDS];
        all.get_mut(..words.len())?.copy_from_slice(words);
        Some(Self { words: all, count: words.len() as u8 })
    }

    pub(crate) fn get(&self) -> &[u32] {
        &self.words[..usize::from(self.count)]
    }
}

/// A reference of some node, borrowed.
///
/// ```
/// use magpie_dist::term::{Atom, Reference, TermBuf};
/// let reference = Reference::new(Atom::new("a@host")?, 1, &[7, 8, 9]).ok_or("five words at most")?;
/// let term = TermBuf::of(&reference, 100)?;
/// assert_eq!(term.as_term().decode::<Reference<'_>>()?, reference);
/// assert_eq!((reference.words(), reference.to_string().as_str()), (&[7, 8, 9][..], "#Ref<a@host.9.8.7>"));
/// assert_eq!(reference.to_buf()?.as_reference(), reference);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reference<'a> {
    /// Whose reference it is.
    pub node: Atom<'a>,
    /// Which life of that node's it is of.
    pub creation: u32,
    pub(crate) words: Words,
}

impl<'a> Reference<'a> {
    /// Of these words, of which there are five at most.
    pub fn new(node: Atom<'a>, creation: u32, words: &[u32]) -> Option<Self> {
        Some(Self { node, creation, words: Words::new(words)? })
    }

    /// What makes it different from others.
    pub fn words(&self) -> &[u32] {
        self.words.get()
    }

    /// One to keep.
    ///
    /// # Errors
    /// Without memory.
    pub fn to_buf(&self) -> Result<ReferenceBuf, OutOfMemory> {
        Ok(ReferenceBuf { node: self.node.to_buf()?, creation: self.creation, words: self.words })
    }
}

impl fmt::Display for Reference<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#Ref<{}", self.node)?;
        self.words().iter().rev().try_for_each(|word| write!(f, ".{word}"))?;
        f.write_str(">")
    }
}

/// A reference of some node, to keep.
///
/// ```
/// use magpie_dist::term::{Atom, Reference, ReferenceBuf};
/// let reference = Reference::new(Atom::new("a@host")?, 1, &[7]).ok_or("five words at most")?;
/// let kept: ReferenceBuf = reference.to_buf()?;
/// assert_eq!(kept.as_reference(), reference);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ReferenceBuf {
    node: AtomBuf,
    creation: u32,
    words: Words,
}

impl ReferenceBuf {
    /// The same, borrowed.
    pub fn as_reference(&self) -> Reference<'_> {
        Reference { node: self.node.as_atom(), creation: self.creation, words: self.words }
    }
}
