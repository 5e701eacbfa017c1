//! What makes a device's interrupt pending: a word that the interrupt controller, the device tree and drivers share.

/// How a device asks.
///
/// ```
/// use magpie::interrupt::{Line, Trigger};
///
/// let line = Line { number: 79, trigger: Trigger::Edge };
/// assert_ne!(line.trigger, Trigger::Level);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trigger {
    /// As long as it wants something its line is high. Who lets it through before the device is quiet is interrupted again.
    Level,
    /// Once, each time that it begins to want something.
    Edge,
}
