//! The schedulers: one for each core, in the style of the BEAM.

pub mod resident;
pub mod step;
