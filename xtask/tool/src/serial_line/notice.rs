//! What a user of a line is to be told.

use std::fmt;

/// Something to be said once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notice {
    /// Somebody has connected, and the other machine does not answer.
    Silent,
    /// It does, after that.
    Answers,
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Silent => {
                "nothing answers on the line: does the application drive it (boot argument net=line), at that speed, and are the two data wires crossed?"
            }
            Self::Answers => "the machine answers on the line",
        })
    }
}
