//! Names in the registry, as the kernel has said them in its lists of processes and actors: what may follow the command `kill`.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// So many are remembered; what comes beyond that is not offered.
const MOST: usize = 1_000;

/// The names that were seen.
#[derive(Clone, Default)]
pub struct Names(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    names: BTreeSet<String>,
    /// The last line was of a list whose lines end in a name, where there is one.
    is_list: bool,
}

impl Names {
    /// Reads whole lines of what the kernel says.
    pub fn read(&self, said: &str) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        said.lines().for_each(|line| seen.read(line));
    }

    /// Those that begin so.
    pub fn beginning_with(&self, word: &str) -> Vec<String> {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.names.iter().filter(|name| name.starts_with(word)).cloned().collect()
    }
}

impl Seen {
    fn read(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        let first = [words.next(), words.next(), words.next()];
        match (first, words.next_back()) {
            // The headings of both, and of no other list.
            ([Some("number"), Some("state"), _], _) => self.is_list = line.contains(" waiting "),
            // A number, a state, a core, and whatever else.
            ([Some(number), _, Some(core)], Some(last))
                if self.is_list && u64::from_str_radix(number, 16).is_ok() && core.parse::<u32>().is_ok() =>
            {
                // Who has no name has its type there.
                let is_type = last.contains(['<', '>', ':', '{']);
                if !is_type && self.names.len() < MOST {
                    self.names.insert(last.to_owned());
                }
            }
            _ => self.is_list = false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Names;

    #[test]
    fn the_last_words_of_lists_are_names() {
        let names = Names::default();
        names.read(
            "> ps\n    number state     core waiting reductions moved    age ms type, name\n     a4f20 waiting      0       0          3     0      1200 idle::main log\n\
             \x20    b4f20 waiting      1       0          3     0      1200 idle::{{closure}}\n2 in all, and 0 that have not had a turn yet\n",
        );
        names.read("     c4f20 this is no list any more\n1 crash so far\n");
        names.read(
            "    number state     core mailbox waiting      taken moved   messages reductions\n\
             \x20    d4f20 ready        0      12       0          3     0          -          - ledger::Ledger ledger\n",
        );
        // Children have names of their own, which the registry does not know.
        names.read("    number state     core reductions       age restarts name\n     e4f20 waiting      0          3        12        0   teller\n");
        assert_eq!(names.beginning_with(""), ["ledger", "log"]);
        assert_eq!(names.beginning_with("le"), ["ledger"]);
        assert_eq!(names.beginning_with("é"), Vec::<String>::new());
    }
}
