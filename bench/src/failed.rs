//! Why a benchmark has no figure.

use alloc::string::String;
use core::fmt;

use magpie::actor::NotSpawned;

/// Why a benchmark has no figure.
#[derive(Debug)]
pub enum Failed {
    /// It could not be set up.
    Memory,
    /// It cannot be run with these parameters.
    Parameters(&'static str),
    /// The system ran out of work before the benchmark's last part was done.
    Unfinished,
    /// It came to its end with a wrong result.
    Wrong(String),
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("there is too little memory: give the machine more"),
            Self::Parameters(why) => write!(f, "it does not take these parameters: {why}"),
            Self::Unfinished => {
                f.write_str("it did not come to its end: a message was lost, or memory is short")
            }
            Self::Wrong(what) => write!(f, "wrong result: {what}"),
        }
    }
}

impl<A> From<NotSpawned<A>> for Failed {
    fn from(_: NotSpawned<A>) -> Self {
        Self::Memory
    }
}
