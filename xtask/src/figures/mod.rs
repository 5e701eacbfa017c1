//! Benchmark figures: from the lines of the benchmark image to tables and JSON.
//!
//! [`goals`] has what is known beforehand of every benchmark, [`measured`] what one line says, [`row`] a benchmark on
//! several machines. [`boot`] gets the figures: of everything on several numbers of cores ([`counted`], [`wall`]), or on
//! a grid of settings ([`mod@sweep`]). [`table`], [`json`] and [`mod@page`] show them. What the user may ask for, and in which
//! combinations, is the business of `verbs/bench.rs`.

mod boot;
mod counted;
mod goals;
mod json;
mod measured;
mod page;
mod row;
mod spec;
mod sweep;
mod table;
mod wall;

pub use boot::{Bench, Broken};
pub use counted::count;
pub use json::{document, sweep_document};
pub use page::page;
pub use row::{Kind, Row};
pub use spec::Spec;
#[cfg(test)]
pub use sweep::MAX_COMBINATIONS;
pub use sweep::{Grid, sweep};
pub use table::{
    activity, comparison, histograms, in_step, instructions, latencies, sweep_table, wall_clock,
};
pub use wall::{RUNS_IN_A_BOOT, clock, compare};
