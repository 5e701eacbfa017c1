//! `cargo xtask stats`: runs an application on QEMU and prints what each core has counted, at its end or now and then, for people or programs.

use super::qemu;
use crate::failure::usage;
use crate::stream::{Output, show};
use crate::trace::{Record, values};
use anyhow::{Context, Result};
use clap::Args;
use std::io::{self, Write};
use std::ops::ControlFlow;

/// What `cargo xtask stats` accepts.
#[derive(Args)]
#[group(id = "stats")]
pub struct Options {
    /// Print a line of JSON for each core and time
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print a table of values with commas between them
    #[arg(long)]
    csv: bool,
    /// How far apart, in seconds [default: at the end only]
    #[arg(long, value_name = "SECONDS")]
    every: Option<f64>,
    #[command(flatten)]
    qemu: qemu::Options,
}

#[derive(Clone, Copy)]
enum Form {
    Text,
    Json,
    Csv,
}

/// Runs the verb. What the application prints goes to standard error.
pub fn execute(options: Options) -> Result<u8> {
    let every = options.every.unwrap_or(LONGEST_SECONDS);
    if !(SHORTEST_SECONDS..=LONGEST_SECONDS).contains(&every) {
        return Err(usage(format!("--every takes seconds, from {SHORTEST_SECONDS} to {LONGEST_SECONDS}")));
    }
    let form = match () {
        () if options.json => Form::Json,
        () if options.csv => Form::Csv,
        () => Form::Text,
    };
    let (mut out, mut errors) = (io::stdout().lock(), io::stderr().lock());
    let mut written = head(form, &mut out);
    // Without an interval the first ones are of the beginning, and nobody has asked for them.
    let is_wanted = |count: u64, cores: u64| options.every.is_some() || count > cores;
    let (mut count, mut cores) = (0, 0);
    let status = qemu::hear(options.qemu, &format!("series={every}"), &mut |output| {
        match output {
            Output::Record(_, Record::Hello { cores: found, .. }, _) => cores = found,
            Output::Record(_, Record::Values(core, numbers), _) => {
                count += 1;
                if written.is_ok() && is_wanted(count, cores) {
                    written = row(form, core, &numbers, &mut out);
                }
            }
            Output::Record(..) => {}
            // Who does not read the text may want the numbers.
            output => drop(show(&output, &mut errors)),
        }
        if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    written.context("cannot write the output")?;
    Ok(status)
}

const SHORTEST_SECONDS: f64 = 0.01;
const LONGEST_SECONDS: f64 = 3600.0;

fn head(form: Form, out: &mut dyn Write) -> io::Result<()> {
    match form {
        Form::Csv => writeln!(out, "core,{}", values::NAMES.join(",")),
        Form::Text | Form::Json => Ok(()),
    }
}

fn row(form: Form, core: u8, numbers: &[u64], out: &mut dyn Write) -> io::Result<()> {
    let named = || values::NAMES.iter().zip(numbers);
    match form {
        Form::Json => {
            let fields: Vec<_> = named().map(|(name, number)| format!("\"{name}\":{number}")).collect();
            writeln!(out, "{{\"core\":{core},{}}}", fields.join(","))
        }
        Form::Csv => {
            let fields: Vec<_> = named().map(|(_, number)| number.to_string()).collect();
            writeln!(out, "{core},{}", fields.join(","))
        }
        Form::Text => {
            writeln!(out, "core {core}")?;
            named().try_for_each(|(name, number)| writeln!(out, "  {name:<26} {number:>16}"))
        }
    }?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::{Form, head, row};
    use crate::trace::values::NAMES;

    fn text(form: Form) -> String {
        let numbers: Vec<u64> = (0..NAMES.len() as u64).collect();
        let mut out = Vec::new();
        head(form, &mut out).unwrap();
        row(form, 3, &numbers, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn programs_can_read_it() {
        let json: serde_json::Value = serde_json::from_str(&text(Form::Json)).unwrap();
        assert_eq!((json["core"].as_u64(), json["messages_handled"].as_u64()), (Some(3), Some(8)));
        let csv = text(Form::Csv);
        let (names, numbers) = csv.trim_end().split_once('\n').unwrap();
        assert_eq!(names.split(',').count(), numbers.split(',').count());
        assert!(names.starts_with("core,at_ticks,") && numbers.starts_with("3,0,1,"), "{csv}");
        assert!(text(Form::Text).starts_with("core 3\n  at_ticks"));
    }
}
