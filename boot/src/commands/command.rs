//! The commands, and how a line is understood.

use core::fmt;

/// What can be asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Command<'a> {
    /// Says what there is.
    Help,
    /// The load since it was last asked for.
    Load,
    /// The table of what each core has done.
    Stats,
    /// The last crashes.
    Crashes,
    /// The actors.
    Actors,
    /// The mailboxes of executors.
    Mailboxes,
    /// The processes.
    Processes,
    /// The load, and the processes that have done most.
    Top,
    /// Where all cores and suspended processes are, and all lists.
    Dump,
    /// The supervisors and their children.
    Tree,
    /// Kills whoever has that name.
    Kill(&'a str),
    /// Has thieves choose their victims by the rule of that name.
    Victim(&'a str),
    /// Begins a trace, or ends it.
    #[cfg(feature = "traced")]
    Trace(bool),
    /// Sends statistics this often.
    #[cfg(feature = "traced")]
    Series(&'a str),
    /// Every setting and its value.
    Settings,
    /// Changes a setting.
    Set { name: &'a str, value: u64 },
    /// Takes a core out of service.
    Offline(usize),
    /// Takes a core back into service.
    Online(usize),
}

/// What is printed for [`Command::Help`].
pub(super) const HELP: &str = "\
help            this list
load            each core's load since last asked
stats           what each core has done
crashes         the last 32 crashes
actors          the actors
mailboxes       their mailboxes
ps              the processes
top             the load, and the busiest processes
dump            all lists, and where cores and processes are
tree            the supervisors and their children
kill NAME       kills who has that name
victim NAME     changes how thieves choose victims
settings        every setting and its value
set NAME VALUE  changes a setting
offline CORE    takes a core out of service
online CORE     takes it back";

/// What is printed besides in an image that sends traces and statistics.
#[cfg(feature = "traced")]
pub(super) const HELP_TRACED: &str = "\
trace start|stop writes down turns, wake-ups and what else is frequent, and sends it
series SECONDS   sends each core's statistics that often; 0 ends it";

/// Why a line is not a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CommandError<'a> {
    /// There is no command of this name.
    Unknown(&'a str),
    /// The command takes other arguments: these.
    Usage(&'static str),
    /// This is not a whole number.
    NotANumber(&'a str),
}

impl fmt::Display for CommandError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(word) => write!(f, "there is no command {word} here: help lists them"),
            Self::Usage(usage) => write!(f, "it takes other words: {usage}"),
            Self::NotANumber(word) => write!(f, "{word} is no whole number"),
        }
    }
}

/// Parses a line that is not empty.
pub(super) fn parse(line: &str) -> Result<Command<'_>, CommandError<'_>> {
    let mut words = line.split_ascii_whitespace();
    let name = words.next().unwrap_or("");
    let rest = [words.next(), words.next(), words.next()];
    let alone = |command, usage| match rest {
        [None, ..] => Ok(command),
        _ => Err(CommandError::Usage(usage)),
    };
    match name {
        "help" => alone(Command::Help, "help"),
        "load" => alone(Command::Load, "load"),
        "stats" => alone(Command::Stats, "stats"),
        "crashes" => alone(Command::Crashes, "crashes"),
        "actors" => alone(Command::Actors, "actors"),
        "mailboxes" => alone(Command::Mailboxes, "mailboxes"),
        "ps" => alone(Command::Processes, "ps"),
        "top" => alone(Command::Top, "top"),
        "dump" => alone(Command::Dump, "dump"),
        "tree" => alone(Command::Tree, "tree"),
        "kill" => match rest {
            [Some(name), None, _] => Ok(Command::Kill(name)),
            _ => Err(CommandError::Usage("kill NAME")),
        },
        "victim" => match rest {
            [Some(name), None, _] => Ok(Command::Victim(name)),
            _ => Err(CommandError::Usage("victim NAME")),
        },
        #[cfg(feature = "traced")]
        "trace" => match rest {
            [Some(word @ ("start" | "stop")), None, _] => Ok(Command::Trace(word == "start")),
            _ => Err(CommandError::Usage("trace start, or trace stop")),
        },
        #[cfg(feature = "traced")]
        "series" => match rest {
            [Some(every), None, _] => Ok(Command::Series(every)),
            _ => Err(CommandError::Usage("series SECONDS")),
        },
        "settings" => alone(Command::Settings, "settings"),
        "set" => match rest {
            [Some(name), Some(value), None] => Ok(Command::Set { name, value: number(value)? }),
            _ => Err(CommandError::Usage("set NAME VALUE")),
        },
        "offline" => match rest {
            [Some(core), None, _] => Ok(Command::Offline(number(core)?)),
            _ => Err(CommandError::Usage("offline CORE")),
        },
        "online" => match rest {
            [Some(core), None, _] => Ok(Command::Online(number(core)?)),
            _ => Err(CommandError::Usage("online CORE")),
        },
        unknown => Err(CommandError::Unknown(unknown)),
    }
}

fn number<T: core::str::FromStr>(word: &str) -> Result<T, CommandError<'_>> {
    word.parse().map_err(|_| CommandError::NotANumber(word))
}

#[cfg(test)]
mod tests {
    use super::{Command, CommandError, HELP, parse};

    #[test]
    fn every_command_is_understood_and_in_the_list() {
        for (line, command) in [
            ("help", Command::Help),
            ("load", Command::Load),
            ("stats", Command::Stats),
            ("crashes", Command::Crashes),
            ("actors", Command::Actors),
            ("mailboxes", Command::Mailboxes),
            ("ps", Command::Processes),
            ("top", Command::Top),
            ("dump", Command::Dump),
            ("tree", Command::Tree),
            ("kill printer", Command::Kill("printer")),
            ("victim load", Command::Victim("load")),
            #[cfg(feature = "traced")]
            ("trace start", Command::Trace(true)),
            #[cfg(feature = "traced")]
            ("trace stop", Command::Trace(false)),
            #[cfg(feature = "traced")]
            ("series 0.5", Command::Series("0.5")),
            ("settings", Command::Settings),
            ("set  sched.slice_us\t500", Command::Set { name: "sched.slice_us", value: 500 }),
            ("offline 3", Command::Offline(3)),
            ("online 3", Command::Online(3)),
        ] {
            assert_eq!(parse(line), Ok(command));
            let name = line.split_whitespace().next().expect("a word");
            let all = HELP.lines();
            #[cfg(feature = "traced")]
            let all = all.chain(super::HELP_TRACED.lines());
            assert!({ all }.any(|help| help.split_whitespace().next() == Some(name)), "{name}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        assert_eq!(parse("hlep"), Err(CommandError::Unknown("hlep")));
        assert_eq!(parse("load 3"), Err(CommandError::Usage("load")));
        assert_eq!(parse("crashes 3"), Err(CommandError::Usage("crashes")));
        assert_eq!(parse("ps aux"), Err(CommandError::Usage("ps")));
        assert_eq!(parse("kill"), Err(CommandError::Usage("kill NAME")));
        assert_eq!(parse("kill a b"), Err(CommandError::Usage("kill NAME")));
        for line in ["victim", "victim load 1"] {
            assert_eq!(parse(line), Err(CommandError::Usage("victim NAME")));
        }
        #[cfg(feature = "traced")]
        for line in ["trace", "trace it"] {
            assert_eq!(parse(line), Err(CommandError::Usage("trace start, or trace stop")));
        }
        assert_eq!(parse("crash"), Err(CommandError::Unknown("crash")));
        assert_eq!(parse("set sched.slice_us"), Err(CommandError::Usage("set NAME VALUE")));
        assert_eq!(parse("set a 1 2"), Err(CommandError::Usage("set NAME VALUE")));
        assert_eq!(parse("set sched.slice_us -1"), Err(CommandError::NotANumber("-1")));
        assert_eq!(parse("offline"), Err(CommandError::Usage("offline CORE")));
        assert_eq!(
            parse("online 99999999999999999999"),
            Err(CommandError::NotANumber("99999999999999999999"))
        );
    }
}
