//! Pages: one file of HTML with everything in it, which no network and no mouse is needed for.
//!
//! `sheet` is what all pages have, `plot` draws. Of the page about a run, `run` takes what a kernel has said and counts, `spread` knows how numbers
//! are spread, `page` puts it together, and `picture` draws the loads by themselves. Those about benchmarks and proofs are this tree's own.

mod page;
mod picture;
mod plot;
mod run;
mod sheet;
mod spread;

pub use page::page;
pub use picture::picture;
pub use plot::bars;
pub use run::Run;
pub use sheet::{Section, details, sheet, table};
