//! How much earlier than its moment an urgent timer fires. What that is for is told in `time/timers/lead.rs`.

use super::settings::{self, Setting};
use crate::arch::timer;

/// How much earlier a timer fires, in clock ticks, that is urgent or not. Where a timer does not interrupt, never.
pub(crate) fn lead(is_urgent: bool) -> u64 {
    if is_urgent && timer::INTERRUPTS { settings::ticks_inline(Setting::LeadMicroseconds) } else { 0 }
}
