//! A page about a run: one file of HTML with everything in it, which no network and no mouse is needed for.
//!
//! `run` takes what a kernel has said and counts, `spread` knows how numbers are spread, `plot` draws, `page` puts the page together.

mod page;
mod plot;
mod run;
mod spread;

pub use page::page;
pub use run::Run;
