//! How the two processes of a test understand each other: an environment variable says to the child what it is to run, and
//! marked lines in the child's output say to the parent how far it is. All else there is the test's own output, or the harness's.

use std::string::String;

/// The variable: which run of the test it is, counted from 0.
pub(super) const VARIABLE: &str = "MAGPIE_TEST_RUN";

/// The child's status after a failure that it has reported.
pub(super) const FAILED: i32 = 101;

/// No text begins so.
const MARK: &str = "\0magpie-test ";

/// What the child says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Line {
    /// From here on the output is the test's own.
    Begins,
    /// Somebody has panicked, or the test has failed otherwise: why.
    Failure(String),
    /// It has passed.
    Passed,
}

impl Line {
    /// As it is written, with its end. It has one line, whatever the message.
    pub(super) fn written(&self) -> String {
        match self {
            Self::Begins => std::format!("{MARK}begins\n"),
            Self::Passed => std::format!("{MARK}passed\n"),
            Self::Failure(why) => std::format!("{MARK}failure {}\n", why.escape_default()),
        }
    }

    /// What is before the mark in a line of output, which may have been begun by somebody else, and what is said.
    pub(super) fn read(line: &str) -> Option<(&str, Self)> {
        let (before, said) = line.split_once(MARK)?;
        match said.split_once(' ').unwrap_or((said, "")) {
            ("begins", _) => Some((before, Self::Begins)),
            ("passed", _) => Some((before, Self::Passed)),
            ("failure", why) => Some((before, Self::Failure(unescaped(why)))),
            _ => None,
        }
    }
}

/// The reverse of `escape_default`.
fn unescaped(text: &str) -> String {
    let mut characters = text.chars();
    let mut found = String::new();
    while let Some(character) = characters.next() {
        if character != '\\' {
            found.push(character);
            continue;
        }
        match characters.next() {
            Some('n') => found.push('\n'),
            Some('r') => found.push('\r'),
            Some('t') => found.push('\t'),
            Some('u') => {
                let digits: String = characters.by_ref().skip(1).take_while(|&digit| digit != '}').collect();
                found.extend(u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32));
            }
            Some(other) => found.push(other),
            None => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::Line;

    #[test]
    fn what_is_written_is_read() {
        for why in ["", "left: 1\n right: 2", "a \\ and \"quotes\" and \t", "grüße \u{0} \u{1f600} {}"] {
            let line = Line::Failure(why.into());
            let written = line.written();
            assert_eq!(written.matches('\n').count(), 1, "one line: {written}");
            assert_eq!(Line::read(written.trim_end_matches('\n')), Some(("", line)));
        }
        let written = std::format!("test a ... {}", Line::Begins.written());
        assert_eq!(Line::read(written.trim_end()), Some(("test a ... ", Line::Begins)));
        assert_eq!(Line::read("what a test prints"), None);
    }
}
