//! A delivery to an actor that has a meter: who pays meanwhile, and what is counted. What a meter is says `storage/meter.rs`.

use crate::actor::storage::CellRef;
use crate::actor::storage::meter::{self, Meter};
use crate::sched;
use crate::sync::{PaidBy, PreemptGuard};

/// From before an actor is handed a message until all is done that this brings about, if the actor has a meter; otherwise it is nothing.
/// Wherever the activation goes on, its stack goes along, and says who pays.
pub(super) struct Metered {
    meter: Option<&'static Meter>,
    /// What the turn was charged before.
    charged: u64,
    _paid: Option<PaidBy>,
}

impl Metered {
    /// The actor in this cell, which the caller runs, is handed a message.
    pub(super) fn begin(cell: CellRef) -> Self {
        let meter = meter::of(cell.word().meter());
        if let Some(meter) = meter {
            meter.count_message(&PreemptGuard::new());
        }
        Self { meter, charged: sched::charged(), _paid: meter.and_then(Meter::paid_by) }
    }

    /// Its behaviour has ended, and the actor has not, yet.
    pub(super) fn count(&self) {
        if let Some(meter) = self.meter {
            // It may have been suspended, and have had other turns since: those count from their beginnings.
            let now = sched::charged();
            meter.count_reductions(1 + now.checked_sub(self.charged).unwrap_or(now));
        }
    }
}
