//! EPMD: who asks at port 4369 of a machine which port a node listens at. Both sides, as bytes.
//!
//! A node on Magpie answers for itself: the machine has no other. Erlang's own EPMD takes registrations from its own machine alone.

use alloc::vec::Vec;
use core::fmt;

use crate::term::OutOfMemory;

/// Where EPMD listens.
pub const PORT: u16 = 4369;

/// How long a request may be: a name of 255 bytes fits.
pub const LONGEST: usize = 300;

const REGISTER: u8 = 120;
const PLEASE: u8 = 122;
const FOUND: u8 = 119;
const NAMES: u8 = 110;
const HIDDEN: u8 = 72;
const NORMAL: u8 = 77;
/// The version of the handshake.
const VERSION: [u8; 2] = [0, 6];

/// A node that is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry<'a> {
    /// Its name, without what follows the `@`.
    pub name: &'a str,
    /// Where it listens.
    pub port: u16,
}

/// What was done with a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answered {
    /// It is not whole yet.
    Incomplete,
    /// It was answered: send that, then close.
    Done,
    /// It is none, or none that is taken from elsewhere: close.
    Refused,
}

/// Answers a request, of which these bytes have come so far. The answer is appended.
///
/// ```
/// use magpie_dist::epmd::{Answered, Entry, answer, find, found};
/// let (mut request, mut said) = (Vec::new(), Vec::new());
/// find("magpie", &mut request)?;
/// let entries = [Entry { name: "magpie", port: 9100 }];
/// assert_eq!(answer(&request[..3], &entries, &mut said)?, Answered::Incomplete);
/// assert_eq!(answer(&request, &entries, &mut said)?, Answered::Done);
/// let node = found(&said)?.ok_or("not whole")?;
/// assert!(node.port == 9100 && node.is_hidden);
///
/// said.clear();
/// answer(&[0, 1, 110], &entries, &mut said)?;
/// assert_eq!(&said[4..], b"name magpie at port 9100\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Without memory for the answer.
pub fn answer(request: &[u8], entries: &[Entry<'_>], out: &mut Vec<u8>) -> Result<Answered, OutOfMemory> {
    let Some((length, rest)) = request.split_first_chunk() else { return Ok(Answered::Incomplete) };
    let length = usize::from(u16::from_be_bytes(*length));
    if length == 0 || length > LONGEST {
        return Ok(Answered::Refused);
    }
    let Some(request) = rest.get(..length) else { return Ok(Answered::Incomplete) };
    match request {
        [PLEASE, name @ ..] => match entries.iter().find(|entry| entry.name.as_bytes() == name) {
            Some(entry) => write_found(entry, out)?,
            None => {
                out.try_reserve(2)?;
                out.extend_from_slice(&[FOUND, 1]);
            }
        },
        [NAMES] => {
            out.try_reserve(4)?;
            out.extend_from_slice(&u32::from(PORT).to_be_bytes());
            for entry in entries {
                out.try_reserve(entry.name.len() + 32)?;
                out.extend_from_slice(b"name ");
                out.extend_from_slice(entry.name.as_bytes());
                out.extend_from_slice(b" at port ");
                let digits = [10_000, 1000, 100, 10, 1].map(|unit| b'0' + (entry.port / unit % 10) as u8);
                let first = digits.iter().position(|digit| *digit != b'0').unwrap_or(4);
                out.extend_from_slice(&digits[first..]);
                out.push(b'\n');
            }
        }
        [REGISTER, ..] => {
            // Nobody else is answered for.
            out.try_reserve(4)?;
            out.extend_from_slice(&[121, 1, 0, 0]);
        }
        _ => return Ok(Answered::Refused),
    }
    Ok(Answered::Done)
}

fn write_found(entry: &Entry<'_>, out: &mut Vec<u8>) -> Result<(), OutOfMemory> {
    out.try_reserve(14 + entry.name.len())?;
    out.extend_from_slice(&[FOUND, 0]);
    out.extend_from_slice(&entry.port.to_be_bytes());
    // Over IPv4, with the same version as highest and as lowest.
    out.extend_from_slice(&[HIDDEN, 0]);
    out.extend_from_slice(&VERSION);
    out.extend_from_slice(&VERSION);
    out.extend_from_slice(&(entry.name.len() as u16).to_be_bytes());
    out.extend_from_slice(entry.name.as_bytes());
    out.extend_from_slice(&[0, 0]);
    Ok(())
}

/// Appends the request for the node of this name, which is what stands before the `@`.
///
/// ```
/// let mut request = Vec::new();
/// magpie_dist::epmd::find("a", &mut request)?;
/// assert_eq!(request, [0, 2, 122, b'a']);
/// # Ok::<(), magpie_dist::term::OutOfMemory>(())
/// ```
///
/// # Errors
/// Without memory.
pub fn find(name: &str, out: &mut Vec<u8>) -> Result<(), OutOfMemory> {
    let name = &name.as_bytes()[..name.len().min(LONGEST - 1)];
    out.try_reserve(3 + name.len())?;
    out.extend_from_slice(&(1 + name.len() as u16).to_be_bytes());
    out.push(PLEASE);
    out.extend_from_slice(name);
    Ok(())
}

/// A node that an EPMD knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Found {
    /// Where it listens.
    pub port: u16,
    /// Whether it is a hidden node.
    pub is_hidden: bool,
}

/// Why a request for a node led to none.
///
/// ```
/// use magpie_dist::epmd::{EpmdError, found};
/// assert_eq!(found(&[119, 1]), Err(EpmdError::NotFound));
/// assert_eq!(found(&[119, 0, 35]), Ok(None));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EpmdError {
    /// There is no node of that name.
    NotFound,
    /// What came is no answer.
    Malformed,
    /// The node speaks only older versions.
    Version,
}

impl fmt::Display for EpmdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotFound => "there is no node of that name",
            Self::Malformed => "no answer of an EPMD",
            Self::Version => "the node speaks an older version of the protocol",
        })
    }
}

impl core::error::Error for EpmdError {}

/// What an answer says of which these bytes have come; `None` as long as more have to come.
///
/// # Errors
/// When there is no such node, or this is no answer.
pub fn found(answer: &[u8]) -> Result<Option<Found>, EpmdError> {
    match answer {
        [] | [FOUND] => Ok(None),
        [FOUND, 0, rest @ ..] => match rest {
            [high, low, kind @ (HIDDEN | NORMAL), _, high_version @ ..] if high_version.len() >= 4 => {
                let version = u16::from_be_bytes([high_version[0], high_version[1]]);
                if version < 6 {
                    return Err(EpmdError::Version);
                }
                let port = u16::from_be_bytes([*high, *low]);
                Ok(Some(Found { port, is_hidden: *kind == HIDDEN }))
            }
            _ if rest.len() < 8 => Ok(None),
            _ => Err(EpmdError::Malformed),
        },
        [FOUND, _, ..] => Err(EpmdError::NotFound),
        _ => Err(EpmdError::Malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::{Answered, Entry, answer, find, found};
    use alloc::vec::Vec;

    #[test]
    fn what_is_no_request_is_refused() {
        let mut out = Vec::new();
        for request in [&[0, 0][..], &[1, 200, 122], &[0, 1, 107], &[0, 1, 100], &[0, 3, 115, 1, 1]] {
            assert_eq!(answer(request, &[], &mut out), Ok(Answered::Refused));
        }
        assert!(out.is_empty());
        assert_eq!(answer(&[], &[], &mut out), Ok(Answered::Incomplete));
        // Nobody registers here.
        assert_eq!(answer(&[0, 2, 120, 0], &[], &mut out), Ok(Answered::Done));
        assert_eq!(out[..2], [121, 1]);
    }

    #[test]
    fn answers_are_read_however_they_are_cut() {
        let (mut request, mut out) = (Vec::new(), Vec::new());
        find("b", &mut request).unwrap();
        let entries = [Entry { name: "a", port: 1 }, Entry { name: "b", port: 40_001 }];
        answer(&request, &entries, &mut out).unwrap();
        for end in 0..out.len() {
            match found(&out[..end]) {
                Ok(Some(node)) => assert!(end >= 10 && node.port == 40_001),
                none => assert_eq!(none, Ok(None)),
            }
        }
    }
}
