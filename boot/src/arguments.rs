//! Boot arguments that boot itself understands. Whoever boots the image may write anything.

use core::fmt;
use core::time::Duration;

use magpie::log::text;
use magpie::machine;
use magpie::sched::{self, SettingError};

/// Why an argument that looks like a setting was ignored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ignored {
    NotANumber,
    Unknown,
    OutOfRange { least: u64, most: u64 },
}

impl fmt::Display for Ignored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotANumber => f.write_str("its value is a whole number"),
            Self::Unknown => f.write_str("no setting has this name"),
            Self::OutOfRange { least, most } => write!(f, "it goes from {least} to {most}"),
        }
    }
}

/// Changes the settings that the machine's boot arguments name, and reports those that are wrong.
pub(crate) fn apply_all() {
    for (key, value) in machine::arguments() {
        if let Err(ignored) = apply(key, value) {
            text!("boot argument {key}={value} ignored: {ignored}");
        }
    }
}

/// Changes a setting of the scheduler. An argument is one if it has a point in its name, such as
/// `sched.slice_us=500`; others are not looked at.
fn apply(key: &str, value: &str) -> Result<(), Ignored> {
    if !key.contains('.') {
        return Ok(());
    }
    let number = value.parse().map_err(|_| Ignored::NotANumber)?;
    sched::set_by_name(key, number).map_err(|error| match error {
        SettingError::OutOfRange { least, most } => Ignored::OutOfRange { least, most },
        _ => Ignored::Unknown,
    })
}

/// A number that boot itself wants to know, before there are settings: its name, its least and its greatest value.
#[cfg(any(test, target_os = "none"))]
pub(crate) struct Numbered {
    pub key: &'static str,
    pub least: usize,
    pub most: usize,
}

#[cfg(any(test, target_os = "none"))]
impl Numbered {
    /// The value, where there is one and it is within the bounds.
    pub(crate) fn of(&self, arguments: &str) -> Option<usize> {
        self.read(arguments).and_then(Result::ok)
    }

    fn read<'a>(&self, arguments: &'a str) -> Option<Result<usize, (&'a str, Ignored)>> {
        let value = values(arguments, self.key).next()?;
        let out_of_range = Ignored::OutOfRange { least: self.least as u64, most: self.most as u64 };
        Some(match value.parse() {
            Ok(number) if (self.least..=self.most).contains(&number) => Ok(number),
            Ok(_) => Err((value, out_of_range)),
            Err(_) => Err((value, Ignored::NotANumber)),
        })
    }

    /// Reports a value that is not used.
    #[cfg(target_os = "none")]
    #[inline(always)]
    pub(crate) fn report(&self, arguments: &str) {
        if let Some(Err((value, ignored))) = self.read(arguments) {
            text!("boot argument {}={value} ignored: {ignored}", self.key);
        }
    }
}

fn values<'a>(arguments: &'a str, key: &str) -> impl Iterator<Item = &'a str> {
    arguments.split_ascii_whitespace().filter_map(move |word| word.strip_prefix(key)?.strip_prefix('='))
}

/// The value of the argument `key=NUMBER`, where there is one and it is a whole number.
pub(crate) fn number(arguments: &str, key: &str) -> Option<u64> {
    values(arguments, key).filter_map(|value| value.parse().ok()).next()
}

/// Whether this word is among the arguments. An empty input is given as `input=empty`, because neither QEMU nor a
/// board's firmware can hand over an empty file.
#[cfg(any(test, target_os = "none"))]
pub(crate) fn has(arguments: &str, word: &str) -> bool {
    arguments.split_ascii_whitespace().any(|argument| argument == word)
}

/// A time between two reports, given in seconds: a decimal number, of which nanoseconds count. Not by way of a floating-point number,
/// whose reading takes 16 KB of code and tables.
pub(crate) fn seconds(argument: &str) -> Option<Duration> {
    let (whole, fraction) = argument.split_once('.').unwrap_or((argument, ""));
    let digits = || whole.bytes().chain(fraction.bytes());
    if digits().next().is_none() || !digits().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let whole = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let nanos = fraction.bytes().chain(core::iter::repeat(b'0')).take(9);
    let nanos = nanos.fold(0, |nanos, digit| 10 * nanos + u32::from(digit - b'0'));
    let seconds = Duration::new(whole, nanos);
    (Duration::from_millis(10)..=Duration::from_secs(3600)).contains(&seconds).then_some(seconds)
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::{Ignored, Numbered, apply, has, number, seconds};
    use crate::random::{Random, setting};
    use magpie::sched;
    use std::string::String;
    use std::time::Duration;

    #[test]
    fn numbers_have_bounds() {
        let numbered = Numbered { key: "stack_kib", least: 64, most: 1024 };
        assert_eq!(numbered.of("stacks=9 stack_kib=100 x"), Some(100));
        for ignored in ["", "stack_kib=63", "stack_kib=1025", "stack_kib=", "stack_kib=-1", "xstack_kib=100"]
        {
            assert_eq!(numbered.of(ignored), None, "{ignored}");
        }
        assert!(matches!(numbered.read("stack_kib=63"), Some(Err(("63", Ignored::OutOfRange { .. })))));
        assert!(matches!(numbered.read("stack_kib=1k"), Some(Err(("1k", Ignored::NotANumber)))));
    }

    #[test]
    fn settings_are_changed_or_the_reason_is_said() {
        assert_eq!(apply("seed", "x"), Ok(()));
        assert_eq!(apply("sched.normal_per_low", "9"), Ok(()));
        assert!(sched::settings().any(|one| one == ("sched.normal_per_low", 9)));
        assert_eq!(apply("sched.normal_per_low", "-9"), Err(Ignored::NotANumber));
        assert_eq!(apply("sched.normal_per_low", "0"), Err(Ignored::OutOfRange { least: 1, most: 1000 }));
        assert_eq!(apply("sched.nonsense", "1"), Err(Ignored::Unknown));
    }

    #[test]
    fn numbers_and_seconds() {
        assert_eq!(number("seedy=1 seed= seed=x seed=7 seed=8", "seed"), Some(7));
        assert_eq!(number("", "seed"), None);
        assert_eq!(seconds("0.5"), Some(Duration::from_millis(500)));
        assert_eq!(seconds(".25"), Some(Duration::from_millis(250)));
        assert_eq!(seconds("3600."), Some(Duration::from_secs(3600)));
        assert_eq!(seconds("1.0000000019"), Some(Duration::new(1, 1)));
        for wrong in [
            "",
            ".",
            "0",
            "0.009",
            "3600.1",
            "-1",
            "+1",
            "1.-1",
            "1.2.3",
            "nan",
            "inf",
            "1e300",
            "99999999999999999999",
            "x",
        ] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn nothing_that_is_written_breaks_it() {
        const PIECES: [&str; 16] = [
            "sched.",
            "slice_us",
            "=",
            "==",
            " ",
            "\t",
            "9",
            "18446744073709551616",
            "-",
            ".",
            "seed",
            "é",
            "\0",
            "0x10",
            "migration.age_us",
            "1e999",
        ];
        for seed in 0..setting("MAGPIE_FUZZ", 20_000) {
            let mut random = Random::new(seed);
            let arguments: String =
                (0..random.below(12)).map(|_| PIECES[random.below(PIECES.len())]).collect();
            for word in arguments.split_ascii_whitespace() {
                let (key, value) = word.split_once('=').unwrap_or((word, ""));
                // Nothing outside a setting's range is ever stored: see the check below.
                let _ = apply(key, value);
                let _ = (number(&arguments, key), seconds(value));
            }
            let slice = sched::settings().find(|(name, _)| *name == "sched.slice_us").expect("the setting");
            assert!((50..=1_000_000).contains(&slice.1), "seed {seed}: {arguments:?} set {slice:?}");
        }
    }

    #[test]
    fn a_word_is_found_whole() {
        assert!(has("seed=1 input=empty", "input=empty"));
        assert!(!has("seed=1 input=empty2 xinput=empty", "input=empty"));
        assert!(!has("", "input=empty"));
    }
}
