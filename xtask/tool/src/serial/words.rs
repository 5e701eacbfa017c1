//! The words of the kernel's commands, for who types them: `boot/src/commands/command.rs` understands them, and a test of this tree holds
//! that these are the same.

use super::names::Names;

/// What may follow a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Argument {
    /// Nothing, or what nobody can guess.
    Any,
    /// One of these.
    OneOf(&'static [&'static str]),
    /// The name of a setting.
    Setting,
    /// A name in the registry.
    Name,
}

/// Every command, in the order of the kernel's list.
pub const COMMANDS: &[(&str, Argument)] = &[
    ("help", Argument::Any),
    ("load", Argument::Any),
    ("stats", Argument::Any),
    ("crashes", Argument::Any),
    ("actors", Argument::Any),
    ("mailboxes", Argument::Any),
    ("ps", Argument::Any),
    ("top", Argument::Any),
    ("dump", Argument::Any),
    ("tree", Argument::Any),
    ("kill", Argument::Name),
    ("victim", Argument::OneOf(VICTIMS)),
    ("settings", Argument::Any),
    ("set", Argument::Setting),
    ("offline", Argument::Any),
    ("online", Argument::Any),
    ("trace", Argument::OneOf(&["start", "stop"])),
    ("series", Argument::Any),
];

/// The rules by which thieves choose.
pub const VICTIMS: &[&str] = &["longest-victim", "random", "load", "locality", "hybrid"];

/// The scheduler's settings.
pub const SETTINGS: &[&str] = &[
    "sched.slice_us",
    "sched.reductions",
    "sched.normal_per_low",
    "sched.run_next_turns",
    "sched.thieves",
    "sched.doze_us",
    "sched.steal_batch",
    "sched.victim_rule",
    "sched.dispatch",
    "sched.processes",
    "sched.timers_per_pass",
    "sched.lead_us",
    "migration.interval_us",
    "migration.per_process",
    "migration.per_core",
    "migration.system_wide",
    "migration.minimum_queue",
    "migration.load_difference_percent",
    "migration.age_us",
    "migration.residency_us",
    "migration.cooling_us",
    "balance.interval_us",
    "balance.loaded_us",
    "balance.quiet_us",
    "share.wait_us",
    "share.backlog",
    "share.processes",
    "share.looks",
    "share.worth_us",
    "collect.pause_us",
    "watchdog.limit_us",
    "watchdog.action",
];

/// What the word that ends at the end of `line` may become, and where it begins. `names` are those of the registry that were seen.
pub fn completions(line: &str, names: &Names) -> (usize, Vec<String>) {
    let begin = line.rfind(char::is_whitespace).map_or(0, |at| at + 1);
    let (before, word) = line.split_at(begin);
    let mut earlier = before.split_whitespace();
    let all: Vec<&'static str> = match (earlier.next(), earlier.next()) {
        (None, _) => COMMANDS.iter().map(|(name, _)| *name).collect(),
        (Some(command), None) => match COMMANDS.iter().find(|(name, _)| *name == command) {
            Some((_, Argument::OneOf(words))) => words.to_vec(),
            Some((_, Argument::Setting)) => SETTINGS.to_vec(),
            Some((_, Argument::Name)) => return (begin, names.beginning_with(word)),
            Some((_, Argument::Any)) | None => Vec::new(),
        },
        _ => Vec::new(),
    };
    (begin, all.into_iter().filter(|known| known.starts_with(word)).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::{Names, completions};

    #[test]
    fn words_are_completed_where_they_may_stand() {
        let names = Names::default();
        names.read("    number state     core waiting type, name\n     a4f20 waiting      0       0 idle::main log\n");
        let complete = |line: &str| completions(line, &names);
        let is = |line: &str, begin: usize, words: &[&str]| {
            let (at, completed) = complete(line);
            assert_eq!(
                (at, completed.iter().map(String::as_str).collect::<Vec<_>>()),
                (begin, words.to_vec()),
                "{line}"
            );
        };
        is("vi", 0, &["victim"]);
        is("s", 0, &["stats", "settings", "set", "series"]);
        is("victim lo", 7, &["longest-victim", "load", "locality"]);
        is("  trace  sta", 9, &["start"]);
        is("set sched.sli", 4, &["sched.slice_us"]);
        is("kill l", 5, &["log"]);
        is("set é", 4, &[]);
        for line in ["set sched.slice_us 5", "kill a", "kill log l", "nonsense v", "é", "victim load "] {
            assert_eq!(complete(line).1, Vec::<String>::new(), "{line}");
        }
    }
}
