//! How long interrupts are masked at a time, and preemption disabled: an image is traced instruction by instruction, and every stretch
//! between the one that masks them and the one that takes that back is counted, on each core.
//!
//! What precedes a core's first unmasking is its boot, and left out. So is the instruction that waits for an interrupt while they are
//! masked: it takes as long as there is nothing to do. Here is the run of QEMU; what its lines mean is in [`stretches`] and
//! [`sections`], what the image's instructions do in [`code`] and [`count`].

mod code;
mod count;
mod sections;
mod stretches;

use crate::build::Image;
use crate::machine::{Guest, Machine, end_with_this_tool, guest_command};
use crate::setup::Qemu;
use anyhow::{Context, Result, bail};
use code::Code;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};
pub use stretches::Stretch;
use stretches::Stretches;

/// Bytes of the trace that are read at once.
const BUFFER_BYTES: usize = 1 << 20;

/// What was found, the longest first: of those stretches that begin and end in the same functions the longest.
pub struct Traced {
    /// With interrupts masked.
    pub masked: Vec<Stretch>,
    /// With preemption disabled, in a turn.
    pub sections: Vec<Stretch>,
    /// The loops of the cores, which cannot be preempted, from a turn or a wait to the next.
    pub loops: Vec<Stretch>,
}

/// Boots an image with these arguments, traced, until it ends.
pub fn trace(
    qemu: &Qemu,
    image: &Image,
    machine: &Machine,
    arguments: &str,
    limit: Duration,
) -> Result<Traced> {
    let elf = std::fs::read(&image.elf).with_context(|| format!("cannot read {}", image.elf.display()))?;
    let code = Code::of(&elf)?;
    let guest = Guest {
        arguments: arguments.to_owned(),
        ..Guest::new(Machine { icount: true, is_traced: true, ..machine.clone() }, image.clone(), limit)
    };
    let mut command = guest_command(&qemu.path, &guest);
    end_with_this_tool(&mut command);
    let began = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("{} cannot be started", qemu.path.display()))?;
    let mut serial = child.stdout.take().context("QEMU has no output")?;
    let said = thread::spawn(move || {
        let mut said = Vec::new();
        let _ = serial.read_to_end(&mut said);
        said
    });
    let mut lines = BufReader::with_capacity(BUFFER_BYTES, child.stderr.take().context("QEMU has no trace")?);
    let mut stretches = Stretches::new(&code, machine.cores as usize);
    let (mut line, mut count) = (Vec::new(), 0_u32);
    while lines.read_until(b'\n', &mut line).context("the trace cannot be read")? > 0 {
        stretches.take(&line);
        line.clear();
        count = count.wrapping_add(1);
        if count.is_multiple_of(1 << 16) && began.elapsed() > limit {
            let _ = child.kill();
            let _ = child.wait();
            bail!("the traced image did not end within {} s: give it less to do", limit.as_secs());
        }
    }
    let status = child.wait().context("QEMU is gone")?;
    let said = said.join().unwrap_or_default();
    if !status.success() {
        bail!("the traced image failed ({status}): {}", String::from_utf8_lossy(&said));
    }
    let (masked, sections) = (stretches.masked.sorted(), stretches.sections);
    if sections.not_understood > 0 {
        bail!(
            "{} sections ended that had not begun, the first in {}: the image counts in a way that is not known here",
            sections.not_understood,
            sections
                .first_not_understood
                .map_or("nothing".into(), |at| format!("{} at {at:#x}", code.function(at)))
        );
    }
    Ok(Traced { masked, sections: sections.in_turns.sorted(), loops: sections.in_loops.sorted() })
}
