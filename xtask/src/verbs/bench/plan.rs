//! What `cargo xtask bench` is to do: which options fit together, and which machines and benchmarks they mean. Checked
//! before anything is installed or built.

use super::Options;
use crate::failure::usage;
use crate::figures::{Grid, Spec};
use crate::machine::{Machine, Size};
use anyhow::Result;

const MEMORY: Size = Size::from_mebibytes(1024);
const CORES: [u32; 4] = [1, 2, 4, 8];
const SMP: [u32; 2] = [2, 4];
const MASKED_CORES: [u32; 1] = [2];

/// What is to be done; made of options that fit together.
#[derive(Debug)]
pub struct Plan {
    /// What to run.
    pub specs: Vec<Spec>,
    /// Machines to count instructions on; none leaves that out.
    pub counted: Vec<Machine>,
    /// Machines for wall clock.
    pub clocked: Vec<Machine>,
    /// What to do with them.
    pub task: Task,
}

/// What to do.
#[derive(Debug, PartialEq, Eq)]
pub enum Task {
    /// Count the specs; make the comparisons in wall clock.
    Measure,
    /// Clock the specs.
    Wall,
    /// Clock the specs on the counted machines, by the time of cores that are held in step.
    InStep,
    /// Count the specs on each point of the grid.
    Sweep(Grid),
    /// Trace the specs for stretches with interrupts masked.
    Masked,
}

impl Plan {
    /// Checks the options.
    pub fn of(options: &Options) -> Result<Self> {
        let named = !options.benchmarks.is_empty();
        let specs = options.benchmarks.iter().map(|text| Spec::parse(text)).collect::<Result<Vec<_>>>()?;
        let specs = if named { specs } else { Spec::all() };
        let task = match (options.wall, options.sweep.is_empty()) {
            (false, true) if options.masked => Task::Masked,
            _ if options.masked => {
                return Err(usage("--masked traces instructions; leave out --wall and --sweep"));
            }
            _ if options.in_step && (options.wall || !options.sweep.is_empty()) => {
                return Err(usage("--in-step is a clock of its own; leave out --wall and --sweep"));
            }
            (false, true) if options.in_step => Task::InStep,
            (false, true) => Task::Measure,
            (true, true) => Task::Wall,
            (false, false) => Task::Sweep(Grid::parse(&options.sweep)?),
            (true, false) => {
                return Err(usage("--sweep counts instructions, --wall does not; give one of them"));
            }
        };
        if options.wall && !named {
            return Err(usage("--wall takes the names of benchmarks, as in: bench thread-ring --wall"));
        }
        if task == Task::InStep && !named {
            return Err(usage("--in-step takes the names of benchmarks, as in: bench executor --in-step"));
        }
        if options.masked && (!named || options.json || options.activity || options.in_step) {
            return Err(usage(
                "--masked takes the names of benchmarks, and shows nothing else, as in: bench wake-hogs:20 --masked",
            ));
        }
        if options.wall && options.cores.is_some() {
            return Err(usage("--cores is for instructions; with --wall give the numbers of cores as --smp"));
        }
        let asked_for_wall = options.smp.as_ref().is_some_and(|smp| smp.iter().any(|&cores| cores > 0));
        if asked_for_wall && task != Task::Wall && (named || task != Task::Measure) {
            return Err(usage(
                "--smp is for wall clock, which named benchmarks have with --wall; \
                 to count instructions give the numbers of cores as --cores",
            ));
        }
        if options.activity && options.uncounted {
            return Err(usage("--activity shows the counters that --uncounted leaves out; give one of them"));
        }
        let counted = match task {
            Task::Wall => Vec::new(),
            Task::Masked => machines("--cores", options.cores.as_deref().unwrap_or(&MASKED_CORES), true)?,
            Task::Measure | Task::Sweep(_) | Task::InStep => {
                machines("--cores", options.cores.as_deref().unwrap_or(&CORES), task != Task::InStep)?
            }
        };
        let clocked = match task {
            Task::Sweep(_) | Task::Masked | Task::InStep => Vec::new(),
            Task::Measure if named => Vec::new(),
            _ => machines("--smp", options.smp.as_deref().unwrap_or(&SMP), false)?,
        };
        if counted.is_empty() && clocked.is_empty() {
            return Err(usage("there is nothing to do: give --cores or --smp a number above 0"));
        }
        let several = counted.len() > 1 && counted.iter().any(|machine| machine.cores == 1);
        if matches!(task, Task::Sweep(_)) && !several {
            return Err(usage("--sweep compares several cores with one: give --cores 1 and others"));
        }
        Ok(Self { specs, counted, clocked, task })
    }
}

/// A machine for each number of cores above 0, each once.
fn machines(option: &str, cores: &[u32], icount: bool) -> Result<Vec<Machine>> {
    let mut wanted: Vec<u32> = Vec::new();
    for &cores in cores {
        if cores > 0 && !wanted.contains(&cores) {
            wanted.push(cores);
        }
    }
    let machine = |cores| {
        let machine = Machine::new(cores, MEMORY, None);
        let machine = machine.map_err(|error| usage(error.to_string().replace("--smp", option)))?;
        Ok(Machine { icount, ..machine })
    };
    wanted.into_iter().map(machine).collect()
}

#[cfg(test)]
mod tests {
    use super::{Plan, Task};
    use crate::failure::{USAGE, status_of};
    use crate::verbs::bench::{Options, cores_of};
    use crate::verbs::words::parse;

    fn plan(line: &str) -> anyhow::Result<Plan> {
        Plan::of(&parse(line.split_whitespace())?)
    }

    #[test]
    fn by_default_everything_is_counted_and_compared() {
        let plan = plan("").unwrap();
        assert_eq!((cores_of(&plan.counted), cores_of(&plan.clocked)), (vec![1, 2, 4, 8], vec![2, 4]));
        assert!(plan.counted.iter().all(|machine| machine.icount));
        assert!(plan.clocked.iter().all(|machine| !machine.icount));
        assert!(plan.specs.iter().any(|spec| spec.text() == "bank"));
    }

    #[test]
    fn a_trace_is_of_named_benchmarks_and_nothing_else() {
        let traced = plan("big:3 --masked").unwrap();
        assert_eq!(
            (&traced.task, cores_of(&traced.counted), traced.clocked.len()),
            (&Task::Masked, vec![2], 0)
        );
        for line in
            ["--masked", "big --masked --wall", "big --masked --json", "big --masked --sweep share.looks=1"]
        {
            assert_eq!(status_of(&plan(line).unwrap_err()), USAGE, "{line}");
        }
    }

    #[test]
    fn named_benchmarks_are_counted_alone() {
        let plan = plan("big bank:3 --cores 1,16,1").unwrap();
        assert_eq!((cores_of(&plan.counted), plan.clocked.len(), plan.specs.len()), (vec![1, 16], 0, 2));
        assert_eq!(plan.counted[1].gic.to_string(), "3");
        assert_eq!(cores_of(&Plan::of(&options("big --smp 0")).unwrap().counted), [1, 2, 4, 8]);
    }

    fn options(line: &str) -> Options {
        parse(line.split_whitespace()).unwrap()
    }

    #[test]
    fn wall_clock_is_for_the_cores_of_smp() {
        let plan = plan("thread-ring --wall --smp 1,2,4").unwrap();
        assert_eq!((plan.counted.len(), cores_of(&plan.clocked)), (0, vec![1, 2, 4]));
        assert_eq!(plan.task, Task::Wall);
    }

    #[test]
    fn in_step_cores_run_at_once() {
        let plan = plan("big --in-step --cores 2,4").unwrap();
        assert_eq!((&plan.task, cores_of(&plan.counted), plan.clocked.len()), (&Task::InStep, vec![2, 4], 0));
        assert!(plan.counted.iter().all(|machine| !machine.icount));
    }

    #[test]
    fn parts_can_be_left_out_but_not_all() {
        assert!(plan("--cores 0").unwrap().counted.is_empty());
        assert!(plan("--smp 0").unwrap().clocked.is_empty());
        assert!(plan("--cores 0 --smp 0").is_err());
    }

    #[test]
    fn what_does_not_fit_together_is_refused() {
        for (line, says) in [
            ("--wall", "takes the names"),
            ("big --wall --cores 2", "as --smp"),
            ("big --smp 2", "--wall"),
            ("--sweep sched.doze_us=1 --smp 2", "as --cores"),
            ("big --wall --sweep sched.doze_us=1", "give one of them"),
            ("big --sweep sched.doze_us=1 --cores 2,4", "with one"),
            ("big --sweep sched.doze_us=1 --cores 1", "with one"),
            ("big --sweep doze=1", "a point"),
            ("big --activity --uncounted", "give one of them"),
            ("--in-step", "takes the names"),
            ("big --in-step --wall", "leave out"),
            ("big --in-step --masked", "shows nothing else"),
            ("big --in-step --smp 2", "as --cores"),
            ("big --cores 65", "--cores 64"),
            ("big --cores 0", "nothing to do"),
            ("big --wall --smp 65", "--smp 64"),
        ] {
            let error = plan(line).unwrap_err();
            assert_eq!(status_of(&error), USAGE, "{line}");
            assert!(error.to_string().contains(says), "{line}: {error}");
        }
    }
}
