//! How one has ended, as others are told: a term.

use alloc::string::String;

use magpie::crash;
use magpie::watch::Exit;
use magpie_dist::term::{EncodeError, ToTerm, Writer};

/// The reason of an end: `normal`, `shutdown` (its executor was stopped), `killed`, `failed`, `noproc` (it had ended before it was watched), or `{crashed, Text}`
/// with what it said last, if that is still known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reason {
    /// Of an actor.
    Exit(Exit),
    /// Of a function, which has crashed.
    Crashed,
    /// Nobody has that name, or that pid.
    Nobody,
    /// There was no memory to watch it.
    NoMemory,
    /// Too many were called that have not answered.
    Busy,
}

impl ToTerm for Reason {
    fn to_term(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        match self {
            Self::Exit(Exit::Normal) => writer.atom("normal"),
            Self::Exit(Exit::Stopped) => writer.atom("shutdown"),
            Self::Exit(Exit::Killed) => writer.atom("killed"),
            Self::Exit(Exit::Crashed(number)) => {
                let record = crash::record(*number);
                let text = record.as_ref().map_or("", |record| record.message());
                writer.tuple(2)?;
                writer.atom("crashed")?;
                writer.binary(text.as_bytes())
            }
            Self::Exit(Exit::Gone) | Self::Nobody => writer.atom("noproc"),
            Self::Crashed => writer.atom("crashed"),
            Self::Exit(_) => writer.atom("failed"),
            Self::NoMemory | Self::Busy => writer.atom("system_limit"),
        }
    }
}

/// `{error, {Tag, Text}}`: the answer to a call that nobody could take.
pub struct Refusal {
    pub tag: &'static str,
    pub text: String,
}

impl ToTerm for Refusal {
    fn to_term(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        writer.tuple(2)?;
        writer.atom("error")?;
        writer.tuple(2)?;
        writer.atom(self.tag)?;
        writer.binary(self.text.as_bytes())
    }
}
