//! Boots the benchmark image and takes its figures.
//!
//! A run counts only if it did what was asked: the image ends with success, every benchmark gives a figure, and the
//! kernel has taken every boot argument. A setting that it does not know it only mentions, and goes on; then the figures
//! are those of other settings, so that is an error here.

use super::measured::Measured;
use super::spec::Spec;
use crate::build::Image;
use crate::failure::usage;
use crate::machine::{Ending, Guest, Machine, run};
use crate::setup::Qemu;
use crate::stream::{Decoder, Notice, Output, show};
use anyhow::{Result, bail};
use std::fmt;
use std::io::Write;
use std::time::Duration;

/// The user pressed Ctrl-C.
#[derive(Debug)]
pub struct Broken;

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted; QEMU was ended")
    }
}

impl std::error::Error for Broken {}

/// What the figures were got with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machinery {
    /// QEMU's version.
    pub qemu: String,
    /// The image's build, as it says itself; empty before the first boot.
    pub build: String,
    /// The boot arguments of every run.
    pub arguments: String,
}

/// The benchmark image, ready to be booted.
pub struct Bench<'a> {
    qemu: &'a Qemu,
    image: &'a Image,
    limit: Duration,
    /// What it runs with.
    pub machinery: Machinery,
}

impl<'a> Bench<'a> {
    /// An image with boot arguments for every run.
    pub fn new(qemu: &'a Qemu, image: &'a Image, arguments: &str, limit: Duration) -> Self {
        let machinery = Machinery {
            qemu: qemu.version.to_string(),
            build: String::new(),
            arguments: arguments.trim().to_owned(),
        };
        Self { qemu, image, limit, machinery }
    }

    /// Runs benchmarks on a machine: a figure for each, in order.
    pub fn run(&mut self, machine: &Machine, specs: &[Spec], arguments: &str) -> Result<Vec<Measured>> {
        let mut figures = self.run_often(machine, specs, arguments, 1)?;
        Ok(figures.iter_mut().filter_map(Vec::pop).collect())
    }

    /// Runs benchmarks several times in one boot, all of them before the first comes again: as many figures for each, in
    /// order.
    pub fn run_often(
        &mut self,
        machine: &Machine,
        specs: &[Spec],
        arguments: &str,
        repeat: u32,
    ) -> Result<Vec<Vec<Measured>>> {
        let words = [
            Spec::argument(specs),
            format!("repeat={repeat}"),
            arguments.to_owned(),
            self.machinery.arguments.clone(),
        ];
        let guest = Guest {
            arguments: words.join(" "),
            ..Guest::new(machine.clone(), self.image.clone(), self.limit)
        };
        let mut decoder = Decoder::for_elf(&guest.image.elf)?;
        let mut heard = Heard::default();
        let run = run(&self.qemu.path, &guest, &mut |bytes| decoder.push(bytes, &mut |out| heard.take(out)))?;
        decoder.finish(&mut |out| heard.take(out));
        let describe = || run.describe(self.limit);
        if run.ending == Ending::Interrupted {
            return Err(Broken.into());
        }
        heard.judge(run.ending == Ending::Status(0), describe, machine)?;
        let wanted = specs.len() * repeat as usize;
        if heard.figures.len() != wanted {
            bail!("the image gave {} figures in place of {wanted}", heard.figures.len());
        }
        self.machinery.build = heard.build;
        let figures_of = |index| heard.figures.iter().skip(index).step_by(specs.len()).cloned().collect();
        Ok((0..specs.len()).map(figures_of).collect())
    }
}

/// What an image has said.
#[derive(Default)]
struct Heard {
    figures: Vec<Measured>,
    build: String,
    /// Everything else, as a person would see it.
    text: Vec<u8>,
}

impl Heard {
    fn take(&mut self, output: Output) {
        match &output {
            Output::Notice(Notice::Bench(name, words)) => self.figures.extend(Measured::parse(name, words)),
            Output::Notice(Notice::Boot { build, .. }) => self.build = format!("{build:016x}"),
            _ => {}
        }
        // It goes into a vector, which takes everything.
        let _ = show(&output, &mut self.text);
    }

    /// Fails if the run did not do what was asked.
    fn judge(&self, ended_well: bool, describe: impl FnOnce() -> String, machine: &Machine) -> Result<()> {
        let text = String::from_utf8_lossy(&self.text);
        if let Some(ignored) = text.lines().find_map(ignored_argument) {
            return Err(usage(ignored));
        }
        if ended_well {
            return Ok(());
        }
        let s = if machine.cores == 1 { "" } else { "s" };
        let failures: Vec<_> = text.lines().filter(|line| line.contains(" failed: ")).collect();
        if !failures.is_empty() {
            bail!("on {} core{s}: {}", machine.cores, failures.join("; "));
        }
        // Nobody else would show it, and it may be a panic.
        let _ = std::io::stderr().write_all(&self.text);
        bail!("the benchmark image failed on {} core{s}: {}", machine.cores, describe())
    }
}

/// What to say about a line in which the kernel says that it ignores an argument (`boot/src/arguments.rs`).
fn ignored_argument(line: &str) -> Option<String> {
    let (argument, reason) = line.trim_end().strip_prefix("boot argument ")?.split_once(" ignored: ")?;
    Some(format!("the kernel does not take {argument}: {reason}; docs/settings.md lists all settings"))
}

#[cfg(test)]
mod tests {
    use super::{Heard, ignored_argument};
    use crate::failure::{FAILURE, USAGE, status_of};
    use crate::machine::{Machine, Size};
    use crate::stream::{Notice, Output};

    fn judged(lines: &[&str], ended_well: bool) -> anyhow::Result<()> {
        let mut heard = Heard::default();
        lines.iter().for_each(|line| heard.take(Output::Text(line.as_bytes().to_vec())));
        let machine = Machine::new(2, Size::from_mebibytes(512), None).unwrap();
        heard.judge(ended_well, || "it stopped".into(), &machine)
    }

    #[test]
    fn an_argument_that_is_ignored_is_wrong_usage() {
        let line = "boot argument sched.doze=1 ignored: no setting has this name";
        assert!(ignored_argument(line).unwrap().contains("sched.doze=1: no setting has this name"));
        assert_eq!(ignored_argument("an argument ignored: by nobody"), None);
        assert_eq!(status_of(&judged(&[line], true).unwrap_err()), USAGE);
    }

    #[test]
    fn a_benchmark_that_failed_says_why() {
        let error = judged(&["bank failed: wrong result: 1 in place of 2", "x"], false).unwrap_err();
        assert_eq!(error.to_string(), "on 2 cores: bank failed: wrong result: 1 in place of 2");
        assert_eq!(status_of(&error), FAILURE);
        assert!(judged(&[], false).unwrap_err().to_string().ends_with("it stopped"));
        assert!(judged(&["all is well"], true).is_ok());
    }

    #[test]
    fn figures_and_the_build_are_taken_from_the_lines_for_the_tool() {
        let mut heard = Heard::default();
        let boot = Notice::Boot { build: 0x5d0, app: "bench".into(), board: "virt".into(), cores: 2 };
        heard.take(Output::Notice(boot));
        heard.take(Output::Notice(Notice::Bench("big".into(), "ops=2 ns=3".into())));
        heard.take(Output::Notice(Notice::Bench("big".into(), "damaged".into())));
        assert_eq!((heard.figures.len(), heard.build.as_str()), (1, "00000000000005d0"));
    }
}
