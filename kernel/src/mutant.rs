//! Mutants: a proof build can weaken one named step of a protocol, and a checker must then object.
//!
//! A model that passes proves little unless it fails on a broken copy. With the feature `mutants` (host
//! only) the environment variable `MAGPIE_MUTANT` names the one step to break; `docs/verification.md`
//! lists the names and which tool rejects each. Without the feature every function here is a constant,
//! so a kernel contains nothing of this.

#[cfg(all(feature = "mutants", target_os = "none"))]
compile_error!("the feature `mutants` is for proofs on the host; leave it out of a kernel");

/// Whether the step `name` is to be broken.
#[cfg(not(feature = "mutants"))]
#[inline(always)]
pub(crate) const fn is(_name: &str) -> bool {
    false
}

/// Whether the step `name` is to be broken.
#[cfg(feature = "mutants")]
pub(crate) fn is(name: &str) -> bool {
    use std::sync::OnceLock;
    static CHOSEN: OnceLock<String> = OnceLock::new();
    CHOSEN.get_or_init(|| std::env::var("MAGPIE_MUTANT").unwrap_or_default()) == name
}

/// `sound`, or `broken` in the proof build that breaks the step `name`.
#[inline(always)]
pub(crate) fn choose<O>(name: &str, sound: O, broken: O) -> O {
    if is(name) { broken } else { sound }
}
