//! The table of what took longest on each core, and below it where.

use core::fmt;

use super::longest::Stretch;
use super::per_core::CoreStatistics;
use super::{core, cores};

/// What took longest on each core, and where; formats as text. See [`CoreStatistics::longest_turn`] and its neighbours for
/// what exactly is measured.
pub struct Worst;

type Find = fn(&CoreStatistics) -> Option<Stretch>;

const COLUMNS: [(&str, Find); 4] = [
    ("turn", |core| core.longest_turn.get()),
    ("interrupt", |core| core.longest_interrupt.get()),
    ("masked", CoreStatistics::longest_masked),
    ("postponed", |core| core.longest_postponement.get()),
];

impl fmt::Display for Worst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "longest, ns")?;
        for (heading, _) in COLUMNS {
            write!(f, " {heading:>12}")?;
        }
        for id in cores() {
            write!(f, "\n{:>11}", id.index())?;
            for (_, find) in COLUMNS {
                write!(f, " {:>12}", find(core(id)).map_or(0, |stretch| stretch.nanoseconds()))?;
            }
        }
        for (heading, find) in COLUMNS {
            let found = cores().filter_map(|id| Some((id, find(core(id))?)));
            if let Some((id, Stretch { name, place, .. })) = found.max_by_key(|(_, stretch)| stretch.ticks) {
                write!(f, "\n{heading:>11} core {}: {name}, {place:#x}", id.index())?;
            }
        }
        Ok(())
    }
}
