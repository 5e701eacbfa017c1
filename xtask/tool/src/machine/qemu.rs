//! QEMU's command line for a guest.

use super::{Debugger, Machine};
use crate::build::{Board, Image};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// What is to run, on what.
#[derive(Debug, Clone)]
pub struct Guest {
    /// The machine.
    pub machine: Machine,
    /// The kernel.
    pub image: Image,
    /// The file that the guest finds as its initrd.
    pub input: Option<PathBuf>,
    /// The device tree to hand over in place of QEMU's own.
    pub tree: Option<PathBuf>,
    /// The boot arguments, `key=value` words.
    pub arguments: String,
    /// How long it may run.
    pub limit: Duration,
    /// Who gets what is typed here.
    pub typed: Typed,
}

impl Guest {
    /// That image on that machine, for so long at most; with no input, no tree of its own and no boot arguments, and nobody gets what is typed.
    pub fn new(machine: Machine, image: Image, limit: Duration) -> Self {
        let arguments = String::new();
        Self { machine, image, input: None, tree: None, arguments, limit, typed: Typed::Nothing }
    }
}

/// Who gets what is typed here, by the guest's serial line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Typed {
    /// Nobody: it is not read.
    Nothing,
    /// The kernel, as commands.
    Commands,
    /// The application.
    Application,
}

/// The command that boots the guest, its serial line on standard output.
pub fn guest_command(qemu: &Path, guest: &Guest) -> Command {
    let machine = &guest.machine;
    let mut command = Command::new(qemu);
    match machine.board {
        Board::Virt => {
            let virtualization = if machine.el2 { ",virtualization=on" } else { "" };
            command.arg("-M").arg(format!("virt,gic-version={}{virtualization}", machine.gic));
            command.arg("-cpu").arg(&machine.cpu);
            command.arg("-smp").arg(processors(machine.cores));
            // No network: a boot ROM for it is in a package that is often not installed.
            command.args(["-nic", "none"]);
            command.args(machine.attached.arguments());
        }
        Board::Rpi4 => {
            command.args(["-M", "raspi4b", "-smp", "4"]);
            command.args(machine.attached.arguments());
        }
    }
    command.arg("-m").arg(machine.memory.to_string());
    if machine.is_traced {
        command.args(["-accel", "tcg,thread=single,one-insn-per-tb=on", "-d", "exec,nochain"]);
        // Where standard error leads by its name, QEMU does not write each line by itself.
        command.args(["-D", "/dev/stderr"]);
        command.args(["-icount", "shift=0,sleep=off"]);
    } else if machine.icount {
        command.args(["-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off"]);
    } else {
        command.args(["-accel", "tcg,thread=multi"]);
    }
    if let Some(plugin) = &machine.in_step {
        // It is asked for the time in place of the C library.
        command.env("LD_PRELOAD", plugin).arg("-plugin").arg(plugin);
    }
    command.args(["-display", "none", "-serial", "stdio", "-monitor", "none"]);
    command.args(["-semihosting", "-no-reboot"]);
    command.args(machine.debugger.into_iter().flat_map(Debugger::arguments));
    command.arg("-kernel").arg(&guest.image.flat);
    // QEMU hands over no file without bytes; that there is one is said.
    let is_empty = |input: &PathBuf| std::fs::metadata(input).is_ok_and(|found| found.len() == 0);
    let (empty_input, input) = match &guest.input {
        Some(input) if is_empty(input) => ("input=empty", None),
        input => ("", input.as_ref()),
    };
    if let Some(input) = input {
        command.arg("-initrd").arg(input);
    }
    if let Some(tree) = &guest.tree {
        command.arg("-dtb").arg(tree);
    }
    // A real board has nobody who takes an exit status, so its image asks first.
    let allows = if machine.board == Board::Rpi4 { "semihosting" } else { "" };
    let commands = if guest.typed == Typed::Commands { "commands" } else { "" };
    // Where a card is not what the application looks for.
    let line = if machine.attached.line.is_some() { "net=line" } else { "" };
    let words = [allows, commands, line, empty_input, guest.arguments.trim()];
    let arguments = words.into_iter().filter(|words| !words.is_empty()).collect::<Vec<_>>().join(" ");
    if !arguments.is_empty() {
        command.arg("-append").arg(arguments);
    }
    command
}

/// QEMU's description of the processors. Many are in clusters of four, as on real machines, so that distance
/// means something.
fn processors(cores: u32) -> String {
    const CLUSTER_CORES: u32 = 4;
    const MANY: u32 = 16;
    if cores >= MANY && cores.is_multiple_of(CLUSTER_CORES) {
        format!("{cores},sockets=1,clusters={},cores={CLUSTER_CORES},threads=1", cores / CLUSTER_CORES)
    } else {
        cores.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::{Guest, guest_command};
    use crate::build::Image;
    use crate::machine::{Machine, Net, Size};
    use std::path::Path;
    use std::time::Duration;

    fn line(machine: Machine, input: Option<&str>, arguments: &str) -> String {
        let guest = Guest {
            input: input.map(Into::into),
            arguments: arguments.into(),
            ..Guest::new(machine, Image { elf: "k".into(), flat: "k.img".into() }, Duration::from_secs(1))
        };
        let command = guest_command(Path::new("qemu"), &guest);
        let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        words.join(" ")
    }

    #[test]
    fn the_plain_machine() {
        let machine = Machine::new(4, Size::from_mebibytes(512), None).unwrap();
        assert_eq!(
            line(machine, None, ""),
            "-M virt,gic-version=2 -cpu cortex-a72 -smp 4 -nic none -m 512M -accel tcg,thread=multi -display none \
             -serial stdio -monitor none -semihosting -no-reboot -kernel k.img"
        );
    }

    #[test]
    fn the_raspberry_pi() {
        assert_eq!(
            line(Machine::raspi4b(), None, "seed=1"),
            "-M raspi4b -smp 4 -m 2G -accel tcg,thread=multi -display none -serial stdio -monitor none \
             -semihosting -no-reboot -kernel k.img -append semihosting seed=1"
        );
    }

    #[test]
    fn with_a_line_the_application_is_told_so() {
        let mut machine = Machine::raspi4b();
        machine.attached.line = Some(Net::default());
        assert!(line(machine, None, "seed=1").ends_with("-append semihosting net=line seed=1"));
    }

    #[test]
    fn cores_in_step_have_a_thread_each_and_the_plugin_twice() {
        let mut machine = Machine::new(2, Size::from_mebibytes(512), None).unwrap();
        machine.in_step = Some("step.so".into());
        let guest = Guest::new(machine, Image { elf: "k".into(), flat: "k".into() }, Duration::from_secs(1));
        let command = guest_command(Path::new("qemu"), &guest);
        let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
        assert!(words.join(" ").contains("-accel tcg,thread=multi -plugin step.so -display none"));
        let preloaded =
            command.get_envs().find(|(name, _)| *name == "LD_PRELOAD").and_then(|(_, value)| value);
        assert_eq!(preloaded.unwrap(), "step.so");
    }

    #[test]
    fn every_option() {
        let mut machine = Machine::new(16, Size::from_mebibytes(1024), None).unwrap();
        machine.el2 = true;
        machine.icount = true;
        let line = line(machine, Some("in.txt"), "seed=1 filter=steal");
        assert!(line.starts_with("-M virt,gic-version=3,virtualization=on -cpu cortex-a72 -smp 16,sockets=1,clusters=4,cores=4,threads=1 -nic none -m 1G"));
        assert!(line.contains("-accel tcg,thread=single -icount shift=0,sleep=off"));
        assert!(line.ends_with("-kernel k.img -initrd in.txt -append seed=1 filter=steal"));
    }
}
