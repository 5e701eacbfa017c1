//! The pages that there are: the command that fills each, and what the rows look like that the kernel prints for it.

use crate::trace::short;

/// What can be looked at.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Page {
    /// The cores, which `view` shows.
    #[default]
    Cores,
    /// The processes.
    Processes,
    /// The actors.
    Actors,
    /// Supervisors and their children.
    Tree,
    /// The settings, which can be changed.
    Settings,
    /// The mailboxes of executors.
    Mailboxes,
}

impl Page {
    /// All, by the key that leads there: 1 and on.
    pub const ALL: [Self; 6] =
        [Self::Cores, Self::Processes, Self::Actors, Self::Tree, Self::Settings, Self::Mailboxes];

    pub(super) fn command(self) -> &'static str {
        match self {
            Self::Cores => "",
            Self::Processes => "ps",
            Self::Actors => "actors",
            Self::Tree => "tree",
            Self::Settings => "settings",
            Self::Mailboxes => "mailboxes",
        }
    }

    /// What the kernel's columns are, in its order; the last takes the rest.
    pub(super) fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Cores => &[],
            Self::Processes => {
                &["number", "state", "core", "waiting", "reductions", "moved", "age, ms", "type, name"]
            }
            Self::Actors => {
                &["number", "state", "core", "mailbox", "waiting", "taken", "moved", "type, name"]
            }
            Self::Tree => &["number", "state", "core", "reductions", "age", "restarts", "name"],
            Self::Settings => &["setting", "value"],
            Self::Mailboxes => &[
                "number",
                "core",
                "waiting",
                "most",
                "bound",
                "taken",
                "moved",
                "bytes, and what is special",
            ],
        }
    }

    /// What stands above them.
    pub(super) fn heading(self) -> &'static str {
        match self {
            Self::Cores => "",
            Self::Processes => "    number state     core waiting reductions moved    age ms type, name",
            Self::Actors => "    number state     core mailbox waiting      taken moved type, name",
            Self::Tree => "    number state     core reductions       age restarts name",
            Self::Settings => "setting, and its value",
            Self::Mailboxes => {
                "    number core waiting    most      bound      taken moved     bytes, and what is special"
            }
        }
    }

    /// Whether its rows may stand in another order.
    pub(super) fn is_sortable(self) -> bool {
        matches!(self, Self::Processes | Self::Actors | Self::Mailboxes)
    }

    /// Whether that is one of the kernel's rows.
    pub(super) fn is_row(self, line: &str) -> bool {
        let words: Vec<&str> = line.split_whitespace().collect();
        match self {
            Self::Cores => false,
            Self::Settings => {
                words.len() == 2
                    && words[0].contains('.')
                    && words[1].chars().all(|digit| digit.is_ascii_digit())
            }
            Self::Mailboxes => {
                let is_count = |word: &&str| word.chars().all(|digit| digit.is_ascii_digit());
                words.len() >= self.columns().len() && words[..4].iter().all(is_count)
            }
            Self::Tree => words.len() >= 4 && is_number(words[0]),
            Self::Processes | Self::Actors => {
                words.len() >= self.columns().len() - 1
                    && is_number(words[0])
                    && words[2].chars().all(|digit| digit.is_ascii_digit())
            }
        }
    }

    /// A row with the end of its type's path alone, which has room in 80 columns; the page about one has all of it.
    pub(super) fn shortened(self, row: &str) -> String {
        if !matches!(self, Self::Processes | Self::Actors) {
            return row.into();
        }
        // The type comes behind so many words.
        let before = self.columns().len() - 1;
        let Some(word) = row.split_whitespace().nth(before) else { return row.into() };
        // It is a part of the same text, so that is where it begins.
        let (numbers, what) = row.split_at(word.as_ptr().addr() - row.as_ptr().addr());
        // A name is one word behind the type, which may have several in brackets.
        let is_name = |word: &&str| !word.contains(['<', '>', '{', ':', ',']);
        let name = what.split_whitespace().skip(1).last().filter(is_name).unwrap_or("");
        format!("{numbers}{} {name}", short(what.strip_suffix(name).unwrap_or(what).trim()))
    }
}

/// Whether it is the number of one of the kernel's things: an address. One that has no life now is shown as a dash.
fn is_number(word: &str) -> bool {
    word == "-" || (word.len() >= 6 && word.chars().all(|digit| digit.is_ascii_hexdigit()))
}
