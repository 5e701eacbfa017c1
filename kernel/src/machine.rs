//! The machine's description: plain data, set once by boot, read by all.
//!
//! ```
//! use magpie::arch::{CoreId, MAX_CORES};
//! use magpie::machine::{self, Location, Machine};
//!
//! // What boot does: two clusters of two cores.
//! let mut places = [Location::default(); MAX_CORES];
//! (places[2].cluster, places[3].cluster) = (1, 1);
//! machine::describe(Machine {
//!     board: "virt",
//!     application: "wordcount",
//!     cores: 4,
//!     places,
//!     arguments: "seed=7 details",
//!     input: Some(b"a text"),
//! });
//!
//! // What an application does.
//! assert_eq!(machine::get().map(|machine| machine.board), Some("virt"));
//! assert_eq!(machine::cores(), 4);
//! assert_eq!((machine::argument("seed"), machine::argument("details")), (Some("7"), Some("")));
//! assert_eq!(machine::argument("filter"), None);
//! assert_eq!(machine::arguments().count(), 2);
//! assert_eq!(machine::input(), Some(&b"a text"[..]));
//! let near_and_far = [1, 2].map(|core| CoreId::new(core).map(|core| machine::distance(CoreId::BOOT, core)));
//! assert_eq!(near_and_far, [Some(1), Some(2)]);
//! ```

use spin::Once;

use crate::arch::{self, CoreId, MAX_CORES};

/// Where a core sits. Cores that share more of these are nearer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Location {
    /// The value that names the core to the firmware and the interrupt controller: Arm's word for it. Where a process may
    /// run, its own affinity, is another matter.
    pub affinity: u64,
    /// Memory node.
    pub node: u32,
    /// Socket.
    pub socket: u32,
    /// Cluster within the socket.
    pub cluster: u32,
}

/// The machine, as boot found it.
pub struct Machine {
    /// The board's name.
    pub board: &'static str,
    /// The application's name.
    pub application: &'static str,
    /// How many cores run.
    pub cores: usize,
    /// Where each sits.
    pub places: [Location; MAX_CORES],
    /// The boot arguments: words `key=value`.
    pub arguments: &'static str,
    /// What the host handed over: the initrd.
    pub input: Option<&'static [u8]>,
}

static MACHINE: Once<Machine> = Once::new();

/// Describes the machine. Boot does this before the application begins; later calls change nothing.
pub fn describe(machine: Machine) {
    MACHINE.call_once(|| machine);
}

/// The machine, once boot has described it.
pub fn get() -> Option<&'static Machine> {
    MACHINE.get()
}

/// How many cores run; 1 if nobody has described the machine.
pub fn cores() -> usize {
    MACHINE.get().map_or(1, |machine| machine.cores)
}

/// What the host handed over, if anything.
pub fn input() -> Option<&'static [u8]> {
    MACHINE.get()?.input
}

/// The value of a boot argument `key=value`; a word without `=` has the value "".
pub fn argument(key: &str) -> Option<&'static str> {
    MACHINE.get()?.arguments.split_ascii_whitespace().find_map(|word| {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        (name == key).then_some(value)
    })
}

/// Every boot argument, as key and value, in order; a word without `=` has the value "".
pub fn arguments() -> impl Iterator<Item = (&'static str, &'static str)> {
    let words = MACHINE.get().map_or("", |machine| machine.arguments).split_ascii_whitespace();
    words.map(|word| word.split_once('=').unwrap_or((word, "")))
}

/// 64 random bits by an instruction of this core's (`RNDR`). `None`: it has no such instruction, or nothing came in time. For more than a seed of one's own
/// there is the crate `magpie-random`.
///
/// ```
/// // The host's processors are not asked.
/// assert_eq!(magpie::machine::random_bits(), None);
/// ```
pub fn random_bits() -> Option<u64> {
    arch::random::bits()
}

/// How far apart two cores are: 0 for the same core, 1 in one cluster, 2 in one socket, 3 in one memory
/// node, 4 beyond. If nobody has described the machine, any two are 1 apart.
pub fn distance(a: CoreId, b: CoreId) -> u32 {
    let Some(machine) = MACHINE.get() else { return u32::from(a != b) };
    distance_of(a == b, &machine.places[a.index()], &machine.places[b.index()])
}

fn distance_of(same: bool, a: &Location, b: &Location) -> u32 {
    if same {
        0
    } else if a.node != b.node {
        4
    } else if a.socket != b.socket {
        3
    } else if a.cluster != b.cluster {
        2
    } else {
        1
    }
}

#[cfg(test)]
mod tests {
    use super::{Location, distance_of};

    #[test]
    fn what_is_shared_makes_near() {
        let here = Location::default();
        assert_eq!(distance_of(true, &here, &here), 0);
        assert_eq!(distance_of(false, &here, &here), 1);
        assert_eq!(distance_of(false, &here, &Location { cluster: 1, ..here }), 2);
        assert_eq!(distance_of(false, &here, &Location { socket: 1, ..here }), 3);
        assert_eq!(distance_of(false, &here, &Location { node: 1, ..here }), 4);
    }
}
