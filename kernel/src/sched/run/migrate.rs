//! Moving a process to another core, if the rules of the [policy](crate::sched::policy::migration) allow it.

use crate::arch::clock;
use crate::sched::cores::Core;
use crate::sched::policy::migration::{self, Rule, Urgency, Wish};
use crate::sched::process::Header;
use crate::trace::{self, Kind};

/// Asks every rule that applies, and records the move. The caller holds the process out of any queue.
pub(crate) fn move_process(header: &Header, from: &Core, to: &Core, urgency: Urgency) -> Result<(), Rule> {
    let now = clock::now();
    // In every build: moves are rare, and what follows would run a process twice or one that has ended.
    assert!(
        header.is_dispatchable(),
        "corrupted queue: core {} took {header:p} from core {}'s queue {:?}, and it is not runnable",
        to.id().index(),
        from.id().index(),
        header.priority()
    );
    let wish = Wish {
        urgency,
        from: from.id(),
        to: to.id(),
        affinity: header.affinity_mask(),
        // The process itself is out of the queue already, hence the added one.
        source_load: from.load() + 1,
        target_load: to.load(),
        scale: to.pace.scale(),
        enqueued_at: header.enqueued_at(),
        moved_at: header.moved_at(),
        migrations: header.migrations(),
    };
    if let Err(rule) = migration::ask(&wish, &to.history, now) {
        to.statistics.migrations_refused[rule as usize].bump();
        if trace::is_on() {
            note_refusal(header, rule);
        }
        return Err(rule);
    }
    header.record_move(now);
    header.set_home(to.id());
    migration::record(&to.history, from.id(), now);
    Ok(())
}

#[cold]
#[inline(never)]
fn note_refusal(header: &Header, rule: Rule) {
    let subject = core::ptr::from_ref(header).addr() as u64;
    trace::note(Kind::Refused, subject, rule as u32, Some(header.vtable().name));
}
