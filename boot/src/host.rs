//! Running an application as an ordinary program, on threads: `cargo run -p wordcount -- --input FILE`.

use std::future::Future;
use std::process;
use std::string::String;

use magpie::arch::MAX_CORES;
use magpie::internals::sched::on_deadlock;
use magpie::log::text;
use magpie::machine::{self, Location, Machine};
use magpie::sched;

use crate::exit::NOTHING_WILL_HAPPEN;
use crate::{ExitCode, Termination, arguments, statistics};

/// Runs `main` with the command line's `--input FILE` and `--smp N`; other arguments become boot arguments.
pub fn run(
    application: &'static str,
    main: impl Future<Output: Termination> + Send + 'static,
) -> process::ExitCode {
    let (mut cores, mut input, mut words) = (4usize, None, String::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--smp" => {
                match arguments.next().and_then(|n| n.parse().ok()).filter(|n| (1..=MAX_CORES).contains(n)) {
                    Some(n) => cores = n,
                    None => return usage("--smp takes a number of cores from 1 to 64"),
                }
            }
            "--input" => match arguments.next().map(std::fs::read) {
                Some(Ok(bytes)) => input = Some(&*bytes.leak()),
                Some(Err(error)) => return usage(&format!("the input cannot be read: {error}")),
                None => return usage("--input takes a file"),
            },
            word => {
                words.push_str(word);
                words.push(' ');
            }
        }
    }
    machine::describe(Machine {
        board: "host",
        application,
        cores,
        places: [Location::default(); MAX_CORES],
        arguments: words.leak(),
        input,
    });
    arguments::apply_all();
    on_deadlock(|| {
        text!("{NOTHING_WILL_HAPPEN}");
        process::exit(1)
    });
    let seed = machine::get().and_then(|machine| arguments::number(machine.arguments, "seed")).unwrap_or(1);
    let reported = async move {
        statistics::begin();
        main.await.report()
    };
    let ended = sched::run_on_threads(cores, seed, reported);
    statistics::print();
    match ended {
        Ok(ExitCode::Success) => process::ExitCode::SUCCESS,
        Ok(ExitCode::Failure) => process::ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            process::ExitCode::FAILURE
        }
    }
}

fn usage(message: &str) -> process::ExitCode {
    eprintln!("error: {message}");
    process::ExitCode::from(2)
}
