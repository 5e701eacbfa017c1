//! Carries out a command, and prints the result.

use magpie::arch::CoreId;
use magpie::channel;
use magpie::crash;
use magpie::internals::sched::whereabouts;
use magpie::internals::{actor, supervise};
use magpie::log::text;
use magpie::registry;
use magpie::sched::{self, LoadMonitor, ProcessRef, Setting, SettingError, VictimRule};
use magpie::stats::{Table, Worst};

#[cfg(feature = "traced")]
use crate::trace;

use super::command::{Command, HELP};
use super::line::{Completed, MOST_BYTES};

/// Answers what has arrived on the line.
pub(super) fn answer(arrived: Completed<'_>, monitor: &mut Option<LoadMonitor>) {
    match arrived {
        Completed::Line(line) => {
            text!("> {line}");
            match super::command::parse(line) {
                Ok(command) => carry_out(command, monitor),
                Err(error) => text!("{error}"),
            }
        }
        Completed::TooLong => text!("a line of more than {MOST_BYTES} bytes was ignored"),
        Completed::NotText => text!("a line that is no text was ignored"),
    }
}

fn carry_out(command: Command<'_>, monitor: &mut Option<LoadMonitor>) {
    match command {
        Command::Help => {
            text!("{HELP}");
            #[cfg(feature = "traced")]
            text!("{}", super::command::HELP_TRACED);
        }
        Command::Load => load(monitor),
        Command::Stats => {
            text!("{Table}");
            text!("{Worst}");
        }
        Command::Crashes => crashes(),
        Command::Actors => print_with(actor::actors_printer()),
        Command::Mailboxes => print_with(actor::mailboxes_printer()),
        Command::Processes => processes(),
        Command::Top => top(monitor),
        Command::Dump => dump(monitor),
        Command::Tree => print_with(supervise::printer()),
        Command::Kill(name) => {
            let is_killed = registry::kill(name).is_ok();
            text!("{name} is {}killed", if is_killed { "" } else { "not " });
        }
        #[cfg(feature = "traced")]
        Command::Trace(on) => trace::switch(on),
        #[cfg(feature = "traced")]
        Command::Series(argument) => trace::series_of(argument),
        Command::Victim(name) => victim(name),
        Command::Settings => sched::settings().for_each(|(name, value)| text!("{name} {value}")),
        Command::Set { name, value } => match sched::set_by_name(name, value) {
            Ok(()) => text!("{name} is {value} now"),
            Err(SettingError::Unknown) => text!("there is no setting {name}: settings lists them"),
            Err(SettingError::OutOfRange { least, most }) => {
                text!("{name} goes from {least} to {most}; it stays as it is");
            }
            Err(error) => text!("{name} stays as it is: {error}"),
        },
        Command::Offline(core) => in_service(core, "out of service", sched::offline),
        Command::Online(core) => in_service(core, "in service", sched::online),
    }
}

/// The same as setting `sched.victim_rule`, by a name.
fn victim(name: &str) {
    match VictimRule::ALL.into_iter().find(|rule| rule.name() == name) {
        Some(rule) => match sched::set_setting(Setting::VictimRule, rule as u64) {
            Ok(()) => text!("victims are chosen by {name} now"),
            Err(error) => text!("the rule stays as it is: {error}"),
        },
        None => {
            text!("there is no rule {name}, and it stays as it is; the rules:");
            VictimRule::ALL.into_iter().for_each(|rule| text!("{}", rule.name()));
        }
    }
}

/// Prints what is only in an image that has some of it.
fn print_with(printer: Option<fn()>) {
    match printer {
        Some(print) => print(),
        None => text!("none"),
    }
}

/// How many processes are shown: a thousand would flood the line.
const MOST_PROCESSES: u64 = 100;

fn processes() {
    text!("{PROCESS_HEADINGS}");
    let mut listed = 0;
    for process in sched::processes() {
        listed += 1;
        if listed <= MOST_PROCESSES {
            show(&process);
        }
    }
    // Some may have ended since they were listed.
    let new = sched::live_processes().saturating_sub(listed);
    text!("{listed} in all, and {new} that have not had a turn yet");
}

const PROCESS_HEADINGS: &str = "    number state     core waiting reductions moved    age ms type, name";

fn show(process: &ProcessRef) {
    let (id, name) = (process.id(), registry::name_of(process.id()));
    text!(
        "{id:10x} {:9} {:4} {:7} {:10} {:5} {:9} {} {}",
        process.state(),
        process.home().index(),
        channel::waiting_for(process),
        process.reductions(),
        process.migrations(),
        process.age().as_millis() as u64,
        process.type_name(),
        name.as_deref().unwrap_or("")
    );
}

/// What fits on one screen of 24 rows with 8 cores: their load, and the processes that have done most.
fn top(monitor: &mut Option<LoadMonitor>) {
    const MOST_SHOWN: usize = 10;
    load(monitor);
    let mut busiest = [const { None }; MOST_SHOWN];
    for process in sched::processes() {
        // Each takes the place of the first that has done less, which goes on to the next.
        let mut next = Some(process);
        for place in &mut busiest {
            let done = |of: &Option<ProcessRef>| of.as_ref().map_or(0, |process| process.reductions());
            if place.is_none() || done(&next) > done(place) {
                core::mem::swap(place, &mut next);
            }
        }
    }
    text!("{PROCESS_HEADINGS}");
    busiest.iter().flatten().for_each(show);
}

/// All that there is to see, for who looks at it later: with the echo of each command that would have printed it.
fn dump(monitor: &mut Option<LoadMonitor>) {
    whereabouts();
    for line in ["stats", "crashes", "ps", "actors", "mailboxes", "tree", "settings"] {
        answer(Completed::Line(line), monitor);
    }
    text!("end of the dump");
}

fn crashes() {
    match crash::total() {
        0 => return text!("nothing has crashed"),
        1 => text!("1 crash so far"),
        total => text!("{total} crashes so far"),
    }
    crash::records().for_each(|record| {
        text!("{record}");
        record.tell_events();
    });
}

fn load(monitor: &mut Option<LoadMonitor>) {
    let sample = match monitor {
        Some(monitor) => monitor.sample(),
        None => {
            text!("there was no memory for watching the load");
            return;
        }
    };
    match sample {
        Ok(load) => text!("{load}"),
        Err(error) => text!("the load is not known: {error}"),
    }
}

fn in_service(number: usize, state: &str, change: fn(CoreId) -> Result<(), sched::OfflineError>) {
    let Some(core) = CoreId::new(number) else { return text!("core {number}: there is no such core") };
    match change(core) {
        Ok(()) => text!("core {number} is {state} now"),
        Err(error) => text!("core {number} stays as it is: {error}"),
    }
}
