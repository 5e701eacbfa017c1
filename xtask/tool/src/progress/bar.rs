//! The line at the foot of the terminal. Only where standard error is a terminal that can move its cursor: a log gets
//! the lines alone.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal};

/// The bar's own unit.
const WHOLE: u64 = 1000;

/// The bar, if this terminal can show one.
pub fn bar() -> Option<ProgressBar> {
    let is_dumb = std::env::var_os("TERM").is_none_or(|terminal| terminal.is_empty() || terminal == "dumb");
    if is_dumb || !io::stderr().is_terminal() {
        return None;
    }
    let style = ProgressStyle::with_template("[{bar:24}] {wide_msg}").ok()?.progress_chars("=> ");
    let bar = ProgressBar::with_draw_target(Some(WHOLE), ProgressDrawTarget::stderr());
    Some(bar.with_style(style))
}
