//! What may be asked of QEMU's `virt` machine, checked before anything is built.
//!
//! A GICv2 serves at most 8 cores; with a GICv3 the kernel is meant for up to 64. The guest's memory holds
//! the kernel, its heap and the input file side by side.

use super::{Attached, Debugger, Size};
use crate::build::Board;
use crate::failure::usage;
use anyhow::Result;
use clap::ValueEnum;
use std::fmt;
use std::path::{Path, PathBuf};

/// Most cores with a GICv2.
const MAX_CORES_GICV2: u32 = 8;
/// Most cores with a GICv3.
const MAX_CORES_GICV3: u32 = 64;
/// What the kernel needs beside the input.
const KERNEL_MEMORY: Size = Size::from_mebibytes(64);
/// The memory of QEMU's `raspi4b`.
const RASPI4B_MEMORY: Size = Size::from_mebibytes(2048);
/// Most memory: below 4 GiB of addresses nothing else is in the way, and more is never needed.
const MAX_MEMORY: Size = Size::from_mebibytes(64 * 1024);

/// The interrupt controller's version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Gic {
    /// GICv2, up to 8 cores.
    #[value(name = "2")]
    V2,
    /// GICv3, more than 8 cores.
    #[value(name = "3")]
    V3,
}

impl fmt::Display for Gic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::V2 { "2" } else { "3" })
    }
}

/// An emulated machine that can exist: made by [`Machine::new`] alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// The board it emulates.
    pub board: Board,
    /// How many cores.
    pub cores: u32,
    /// How much memory.
    pub memory: Size,
    /// The interrupt controller.
    pub gic: Gic,
    /// Whether the kernel is entered at EL2.
    pub el2: bool,
    /// QEMU's name for the processor.
    pub cpu: String,
    /// Whether one instruction is one nanosecond of guest time, on one thread: repeatable counts.
    pub icount: bool,
    /// Whether QEMU writes a line for each instruction.
    pub is_traced: bool,
    /// The plugin that holds the cores in step, if one is to.
    pub in_step: Option<PathBuf>,
    /// How a debugger may come, if one may.
    pub debugger: Option<Debugger>,
    /// What hangs on it, on `virt` only.
    pub attached: Attached,
}

impl Machine {
    /// A `virt` machine. Without a GIC version, GICv2 up to 8 cores, GICv3 above.
    pub fn new(cores: u32, memory: Size, gic: Option<Gic>) -> Result<Self> {
        if cores == 0 {
            return Err(usage("--smp 0: a machine needs at least one core; give --smp 1 or more"));
        }
        let gic = gic.unwrap_or(if cores > MAX_CORES_GICV2 { Gic::V3 } else { Gic::V2 });
        if cores > MAX_CORES_GICV3 {
            return Err(usage(format!(
                "--smp {cores} is above the machine's limit; give at most --smp {MAX_CORES_GICV3}"
            )));
        }
        if gic == Gic::V2 && cores > MAX_CORES_GICV2 {
            return Err(usage(format!(
                "--smp {cores} needs --gic 3: a GICv2 serves at most {MAX_CORES_GICV2} cores"
            )));
        }
        if memory < KERNEL_MEMORY {
            return Err(usage(format!(
                "--memory {memory} is too little; give at least --memory {KERNEL_MEMORY}"
            )));
        }
        if memory > MAX_MEMORY {
            return Err(usage(format!("--memory {memory} is too much; give at most --memory {MAX_MEMORY}")));
        }
        Ok(Self {
            board: Board::Virt,
            cores,
            memory,
            gic,
            el2: false,
            cpu: "cortex-a72".into(),
            icount: false,
            is_traced: false,
            in_step: None,
            debugger: None,
            attached: Attached::default(),
        })
    }

    /// QEMU's `raspi4b`, which comes in one shape only.
    pub fn raspi4b() -> Self {
        Self {
            board: Board::Rpi4,
            cores: 4,
            memory: RASPI4B_MEMORY,
            gic: Gic::V2,
            el2: true,
            cpu: "cortex-a72".into(),
            icount: false,
            is_traced: false,
            in_step: None,
            debugger: None,
            attached: Attached::default(),
        }
    }

    /// Whether a file can be handed over: it exists, can be read, and fits beside the kernel.
    pub fn check_input(&self, input: &Path) -> Result<()> {
        let shown = input.display();
        let file = std::fs::File::open(input).map_err(|error| {
            usage(format!("cannot read the input {shown} ({error}); give an existing file"))
        })?;
        let metadata =
            file.metadata().map_err(|error| usage(format!("cannot read the input {shown}: {error}")))?;
        if !metadata.is_file() {
            return Err(usage(format!("the input {shown} is no file; give a file")));
        }
        self.check_input_size(metadata.len(), &shown.to_string())
    }

    fn check_input_size(&self, bytes: u64, shown: &str) -> Result<()> {
        let needed = bytes.saturating_add(KERNEL_MEMORY.bytes());
        if needed <= self.memory.bytes() {
            return Ok(());
        }
        if self.board == Board::Rpi4 {
            return Err(usage(format!(
                "the input {shown} ({} MiB) does not fit into the board's {} of memory; give a smaller one",
                bytes >> 20,
                self.memory
            )));
        }
        let enough = Size::from_mebibytes((needed >> 20).saturating_add(1).next_power_of_two());
        if enough > MAX_MEMORY {
            return Err(usage(format!("the input {shown} is too large for any guest ({} MiB)", bytes >> 20)));
        }
        Err(usage(format!(
            "the input {shown} ({} MiB) does not fit into {} of memory; give --memory {enough}",
            bytes.div_ceil(1 << 20),
            self.memory
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::{Gic, Machine, Size};
    use crate::failure::{USAGE, status_of};

    const MEMORY: Size = Size::from_mebibytes(512);

    fn refusal(result: anyhow::Result<impl std::fmt::Debug>) -> String {
        let error = result.unwrap_err();
        assert_eq!(status_of(&error), USAGE);
        assert!(!error.to_string().contains('\n'));
        error.to_string()
    }

    #[test]
    fn the_gic_follows_the_number_of_cores() {
        assert_eq!(Machine::new(8, MEMORY, None).unwrap().gic, Gic::V2);
        assert_eq!(Machine::new(9, MEMORY, None).unwrap().gic, Gic::V3);
        assert_eq!(Machine::new(1, MEMORY, Some(Gic::V3)).unwrap().gic, Gic::V3);
    }

    #[test]
    fn core_counts_outside_the_limits_are_refused() {
        assert!(refusal(Machine::new(0, MEMORY, None)).contains("--smp 1"));
        assert!(refusal(Machine::new(9, MEMORY, Some(Gic::V2))).contains("--gic 3"));
        assert!(refusal(Machine::new(65, MEMORY, None)).contains("--smp 64"));
        assert!(Machine::new(64, MEMORY, Some(Gic::V3)).is_ok());
    }

    #[test]
    fn memory_sizes_outside_the_limits_are_refused() {
        assert!(refusal(Machine::new(1, Size::from_mebibytes(8), None)).contains("--memory 64M"));
        assert!(refusal(Machine::new(1, Size::from_mebibytes(1 << 30), None)).contains("--memory 64G"));
    }

    #[test]
    fn an_input_must_exist_and_fit() {
        let machine = Machine::new(4, MEMORY, None).unwrap();
        assert!(refusal(machine.check_input("/no/such/file".as_ref())).contains("/no/such/file"));
        assert!(refusal(machine.check_input("/".as_ref())).contains("no file"));
        assert!(machine.check_input_size(448 << 20, "big").is_ok());
        assert!(refusal(machine.check_input_size((448 << 20) + 1, "big")).contains("--memory 1G"));
        assert!(refusal(machine.check_input_size(u64::MAX, "big")).contains("too large"));
    }
}
