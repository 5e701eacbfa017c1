//! For tests: a verb's options, as the words behind the verb would give them.

use clap::error::Result;
use clap::{Args, Command};

/// What clap makes of `words`.
pub fn parse<'a, O: Args>(words: impl IntoIterator<Item = &'a str>) -> Result<O> {
    let line = std::iter::once("verb").chain(words);
    O::from_arg_matches(&O::augment_args(Command::new("verb")).try_get_matches_from(line)?)
}
