//! The words of the kernel's commands, for who types them: `boot/src/commands/command.rs` understands them, and a test of this tree holds
//! that these are the same.

/// What may follow a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Argument {
    /// Nothing, or what nobody can guess.
    Any,
    /// One of these.
    OneOf(&'static [&'static str]),
    /// The name of a setting.
    Setting,
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
    ("kill", Argument::Any),
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

/// What the word that ends at the end of `line` may become, and where it begins.
pub fn completions(line: &str) -> (usize, Vec<&'static str>) {
    let begin = line.rfind(char::is_whitespace).map_or(0, |at| at + 1);
    let (before, word) = line.split_at(begin);
    let mut earlier = before.split_whitespace();
    let all: Vec<&'static str> = match (earlier.next(), earlier.next()) {
        (None, _) => COMMANDS.iter().map(|(name, _)| *name).collect(),
        (Some(command), None) => match COMMANDS.iter().find(|(name, _)| *name == command) {
            Some((_, Argument::OneOf(words))) => words.to_vec(),
            Some((_, Argument::Setting)) => SETTINGS.to_vec(),
            Some((_, Argument::Any)) | None => Vec::new(),
        },
        _ => Vec::new(),
    };
    (begin, all.into_iter().filter(|known| known.starts_with(word)).collect())
}

#[cfg(test)]
mod tests {
    use super::completions;

    #[test]
    fn words_are_completed_where_they_may_stand() {
        assert_eq!(completions("vi"), (0, vec!["victim"]));
        assert_eq!(completions("s"), (0, vec!["stats", "settings", "set", "series"]));
        assert_eq!(completions("victim lo"), (7, vec!["longest-victim", "load", "locality"]));
        assert_eq!(completions("  trace  sta"), (9, vec!["start"]));
        assert_eq!(completions("set sched.sli"), (4, vec!["sched.slice_us"]));
        for line in ["set sched.slice_us 5", "kill a", "nonsense v", "é", "victim load "] {
            assert_eq!(completions(line).1, Vec::<&str>::new(), "{line}");
        }
        assert_eq!(completions("set é"), (4, vec![]));
    }
}
