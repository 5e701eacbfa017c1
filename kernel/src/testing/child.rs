//! The child: starts the kernel on threads, runs what it is to run, and ends with a status, without returning to the harness.

use core::future::Future;
use std::boxed::Box;
use std::io::{Read, Write, stdin, stdout};
use std::num::ParseIntError;
use std::panic::PanicHookInfo;
use std::string::{String, ToString};
use std::{panic, process, thread};

use super::protocol::{FAILED, Line};
use super::{Options, Verdict};
use crate::arch::{MAX_CORES, virtual_time};
use crate::machine::{self, Location, Machine};
use crate::sched::{self, Setting, run_on_threads};

/// Runs `body`, and ends the process.
pub(super) fn run<F>(options: &Options, body: fn() -> F)
where
    F: Future<Output: Verdict> + Send + 'static,
{
    end_with_the_parent();
    report_panics();
    let application = thread::current().name().map_or_else(|| "test".into(), ToString::to_string);
    machine::describe(Machine {
        board: "host",
        application: application.leak(),
        cores: options.cores,
        places: [Location::default(); MAX_CORES],
        arguments: options.arguments.clone().leak(),
        input: None,
    });
    if options.is_virtual {
        virtual_time::turn_on();
        // Who dozes waits for the clock.
        if let Err(error) = sched::set_setting(Setting::DozeMicroseconds, 0) {
            fail(error.to_string());
        }
    }
    for (key, value) in machine::arguments().filter(|(key, _)| key.contains('.')) {
        let set = value.parse().map_err(|error: ParseIntError| error.to_string());
        if let Err(error) =
            set.and_then(|value| sched::set_by_name(key, value).map_err(|error| error.to_string()))
        {
            fail(std::format!("the argument {key}={value}: {error}"));
        }
    }
    sched::run::stop::on_deadlock(|| fail("every process waits, and nothing will ever wake one".into()));
    say(&Line::Begins);
    let ended = run_on_threads(options.cores, options.seed, async move { body().await.failure() });
    match ended {
        Ok(None) => {
            say(&Line::Passed);
            process::exit(0)
        }
        Ok(Some(why)) => fail(why),
        Err(error) => fail(error.to_string()),
    }
}

fn fail(why: String) -> ! {
    say(&Line::Failure(why));
    process::exit(FAILED)
}

/// Says a line to the parent, in one piece.
fn say(line: &Line) {
    // If the parent is gone, nobody has to be told.
    let mut out = stdout().lock();
    let _ = out.write_all(line.written().as_bytes());
    let _ = out.flush();
}

/// Whoever panics is reported, as ever and to the parent. That the process ends for it is seen to where its thread does.
fn report_panics() {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        usual(info);
        say(&Line::Failure(message(info)));
    }));
}

fn message(info: &PanicHookInfo<'_>) -> String {
    match info.payload_as_str() {
        Some(message) => message.into(),
        None => "a panic with a value that is no text".into(),
    }
}

/// A parent that was killed leaves nothing behind: the child's standard input ends with it.
fn end_with_the_parent() {
    thread::spawn(|| {
        let _ = stdin().lock().read(&mut [0]);
        process::exit(FAILED);
    });
}
