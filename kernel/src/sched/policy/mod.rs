//! What the scheduler decides by: settings, and rules over numbers. Nothing here knows a core, a process or a queue.

pub(crate) mod dispatch;
pub(crate) mod lead;
pub(crate) mod migration;
pub(crate) mod pace;
pub(crate) mod settings;
pub(crate) mod sharing;
#[cfg(any(test, target_os = "none"))]
pub(crate) mod suspicion;
pub mod tuning;
pub(crate) mod victim;
pub(crate) mod watchdog;
