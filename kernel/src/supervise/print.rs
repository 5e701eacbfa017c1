//! The supervisors and their children as text, for the serial line. It takes no memory, and looks at all children for each line.

use spin::Once;

use super::handle::ChildId;
use super::inspect::{ChildInfo, SupervisorInfo, children, supervisors};
use crate::log::text;
use crate::sched::ProcessRef;
use crate::sync::set_once;

/// How many lines are printed: a thousand would flood the line.
const MOST_LINES: usize = 100;
/// How deep supervisors are shown below each other.
const MOST_LEVELS: usize = 8;

/// How they are printed, once there is a supervisor: an image without one has nothing of it.
static USED: Once<fn()> = Once::new();

/// There is a supervisor.
pub(super) fn note_used() {
    set_once(&USED, || print as fn());
}

/// How to print the supervisors and their children, if there ever was one.
#[inline(always)]
pub(crate) fn printer() -> Option<fn()> {
    USED.get().copied()
}

fn print() {
    text!("    number state     core reductions       age restarts name");
    let mut left = MOST_LINES;
    for SupervisorInfo { process, name } in supervisors() {
        let is = |child: ChildInfo| child.process.is_some_and(|of_child| of_child.id() == process.id());
        // One that is a child comes under its own supervisor.
        if !children().any(is) {
            line(Some(&process), 0, None, name.unwrap_or("a supervisor"), &mut left);
            print_children(process.id(), 1, &mut left);
        }
    }
    if left == 0 {
        text!("and perhaps more");
    }
}

/// The children of the supervisor with that number, in order.
fn print_children(supervisor: usize, level: usize, left: &mut usize) {
    let mut last = ChildId(0);
    let next = |last: ChildId| {
        let others = children().filter(|child| child.supervisor == supervisor && child.id > last);
        others.min_by_key(|child| child.id)
    };
    while *left > 0
        && let Some(child) = next(last)
    {
        last = child.id;
        line(child.process.as_ref(), level, Some(child.restarts), child.name, left);
        if let Some(process) = child.process.filter(|_| level < MOST_LEVELS) {
            print_children(process.id(), level + 1, left);
        }
    }
}

fn line(process: Option<&ProcessRef>, level: usize, restarts: Option<u64>, name: &str, left: &mut usize) {
    let Some(fewer) = left.checked_sub(1) else { return };
    *left = fewer;
    let (restarts, indent) = (restarts.unwrap_or(0), level * 2);
    let Some(process) = process else {
        return text!("         - rests                             {restarts:8} {:indent$}{name}", "");
    };
    let (id, state, core) = (process.id(), process.state(), process.home().index());
    let (reductions, age) = (process.reductions(), process.age().as_millis() as u64);
    text!(
        "{id:10x} {state:9} {core:4} {reductions:10} {:5}.{:03} {restarts:8} {:indent$}{name}",
        age / 1000,
        age % 1000,
        ""
    );
}
