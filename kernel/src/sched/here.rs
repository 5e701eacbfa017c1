//! What a process can ask about where it runs.

use super::cores::Core;
use crate::arch::CoreId;
use crate::sync::PreemptGuard;

/// The core that runs the caller, if a scheduler does. The answer may be outdated at once, unless the
/// caller is pinned.
pub fn current_core() -> Option<CoreId> {
    let here = PreemptGuard::new();
    Core::current(&here).map(Core::id)
}
