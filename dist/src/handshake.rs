//! What two nodes say before they are connected: the handshake of version 6, as bytes. Who says what when is the matter of
//! [`connection`](crate::connection).
//!
//! | | initiator | acceptor |
//! |---|---|---|
//! | 1 | its name | |
//! | 2 | | a status |
//! | 2a | with the status `alive`: `true` or `false` | |
//! | 3 | | its name, and a challenge |
//! | 4 | its own challenge, and the digest of the cookie and the acceptor's | |
//! | 5 | | the digest of the cookie and the initiator's |
//!
//! The digest is MD5: it shows that somebody knows the cookie, to who does not listen in.

use alloc::vec::Vec;
use core::fmt::Write as _;

use md5::{Digest as _, Md5};

/// How long a message of the handshake may be: a name of 255 characters of four bytes fits.
pub const LONGEST: usize = 1100;

/// Sixteen bytes that only who knows the cookie can say.
pub type Digest = [u8; 16];

/// One message of the handshake, without its length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hello<'a> {
    /// 1.
    Name { flags: u64, creation: u32, name: &'a str },
    /// 2, and 2a.
    Status(&'a str),
    /// 3.
    Challenge { flags: u64, challenge: u32, creation: u32, name: &'a str },
    /// 4.
    Reply { challenge: u32, digest: Digest },
    /// 5.
    Ack { digest: Digest },
}

/// Which message may come. The first and the third begin with the same letter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expected {
    Name,
    Status,
    Challenge,
    Reply,
    Ack,
}

/// What both prove to know, with a number that the other has chosen.
pub fn digest(cookie: &str, challenge: u32) -> Digest {
    /// Ten digits at most.
    struct Text(Md5);
    impl core::fmt::Write for Text {
        fn write_str(&mut self, text: &str) -> core::fmt::Result {
            self.0.update(text.as_bytes());
            Ok(())
        }
    }
    let mut text = Text(Md5::new());
    text.0.update(cookie.as_bytes());
    // A digest takes everything.
    let _ = write!(text, "{challenge}");
    text.0.finalize().into()
}

fn chunk<const N: usize>(bytes: &[u8]) -> Option<([u8; N], &[u8])> {
    bytes.split_first_chunk().map(|(first, rest)| (*first, rest))
}

fn name(bytes: &[u8]) -> Option<&str> {
    let (length, rest) = chunk(bytes)?;
    // What follows behind it is for versions to come.
    core::str::from_utf8(rest.get(..u16::from_be_bytes(length).into())?).ok()
}

impl<'a> Hello<'a> {
    /// Reads one, if it is the one that was expected.
    pub fn read(bytes: &'a [u8], expected: Expected) -> Option<Self> {
        let (letter, rest) = bytes.split_first()?;
        match (expected, letter) {
            (Expected::Name, b'N') => {
                let (flags, rest) = chunk(rest)?;
                let (creation, rest) = chunk(rest)?;
                let (flags, creation) = (u64::from_be_bytes(flags), u32::from_be_bytes(creation));
                Some(Self::Name { flags, creation, name: name(rest)? })
            }
            (Expected::Status, b's') => core::str::from_utf8(rest).ok().map(Self::Status),
            (Expected::Challenge, b'N') => {
                let (flags, rest) = chunk(rest)?;
                let (challenge, rest) = chunk(rest)?;
                let (creation, rest) = chunk(rest)?;
                Some(Self::Challenge {
                    flags: u64::from_be_bytes(flags),
                    challenge: u32::from_be_bytes(challenge),
                    creation: u32::from_be_bytes(creation),
                    name: name(rest)?,
                })
            }
            (Expected::Reply, b'r') => {
                let (challenge, rest) = chunk(rest)?;
                let (digest, rest) = chunk(rest)?;
                rest.is_empty().then_some(Self::Reply { challenge: u32::from_be_bytes(challenge), digest })
            }
            (Expected::Ack, b'a') => {
                let (digest, rest) = chunk(rest)?;
                rest.is_empty().then_some(Self::Ack { digest })
            }
            _ => None,
        }
    }

    /// Appends it, with its length, to bytes whose room is there.
    pub fn write(&self, bytes: &mut Vec<u8>) {
        let begin = bytes.len();
        bytes.extend_from_slice(&[0; 2]);
        let put_name = |bytes: &mut Vec<u8>, name: &str| {
            bytes.extend_from_slice(&(name.len() as u16).to_be_bytes());
            bytes.extend_from_slice(name.as_bytes());
        };
        match *self {
            Self::Name { flags, creation, name } => {
                bytes.push(b'N');
                bytes.extend_from_slice(&flags.to_be_bytes());
                bytes.extend_from_slice(&creation.to_be_bytes());
                put_name(bytes, name);
            }
            Self::Status(status) => {
                bytes.push(b's');
                bytes.extend_from_slice(status.as_bytes());
            }
            Self::Challenge { flags, challenge, creation, name } => {
                bytes.push(b'N');
                bytes.extend_from_slice(&flags.to_be_bytes());
                bytes.extend_from_slice(&challenge.to_be_bytes());
                bytes.extend_from_slice(&creation.to_be_bytes());
                put_name(bytes, name);
            }
            Self::Reply { challenge, digest } => {
                bytes.push(b'r');
                bytes.extend_from_slice(&challenge.to_be_bytes());
                bytes.extend_from_slice(&digest);
            }
            Self::Ack { digest } => {
                bytes.push(b'a');
                bytes.extend_from_slice(&digest);
            }
        }
        let length = (bytes.len() - begin - 2) as u16;
        bytes[begin..begin + 2].copy_from_slice(&length.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::{Expected, Hello, digest};
    use alloc::vec::Vec;

    #[test]
    fn messages_come_back() {
        let name = "magpie@host";
        for (hello, expected, length) in [
            (Hello::Name { flags: 1 << 35, creation: 7, name }, Expected::Name, 28),
            (Hello::Status("ok"), Expected::Status, 5),
            (
                Hello::Challenge { flags: 5, challenge: 6, creation: 7, name: "aaaaaaaaa@127.0.0.1" },
                Expected::Challenge,
                40,
            ),
            (Hello::Reply { challenge: 1, digest: [3; 16] }, Expected::Reply, 23),
            (Hello::Ack { digest: [9; 16] }, Expected::Ack, 19),
        ] {
            let mut bytes = Vec::new();
            hello.write(&mut bytes);
            assert_eq!(bytes.len(), length);
            assert_eq!(usize::from(u16::from_be_bytes([bytes[0], bytes[1]])), length - 2);
            assert_eq!(Hello::read(&bytes[2..], expected), Some(hello));
            // A status and a name may be longer or shorter; the rest may not.
            for end in 2..length {
                let cut = Hello::read(&bytes[2..end], expected);
                assert!(cut.is_none() || expected == Expected::Status);
            }
        }
        assert_eq!(Hello::read(b"N", Expected::Ack), None);
        assert_eq!(Hello::read(b"", Expected::Name), None);
    }

    #[test]
    fn the_digest_is_that_of_the_cookie_and_the_number_as_text() {
        // md5sum of "secret4294967295".
        let text = digest("secret", u32::MAX);
        assert_eq!(text, <md5::Md5 as md5::Digest>::digest(b"secret4294967295").as_slice());
        assert_ne!(text, digest("secret", 1));
    }
}
