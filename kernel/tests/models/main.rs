//! Model checking of the lock-free structures: the real code under loom or shuttle, and its mutants.
//!
//!     RUSTFLAGS="--cfg loom"    cargo test -p magpie --release --test models
//!     RUSTFLAGS="--cfg shuttle" cargo test -p magpie --release --test models
//!
//! (with a `--target-dir` of its own for each, or everything is built anew.) Each model runs as it is and must
//! pass. With `-- --mutants` it runs once more with each of its mutants, in which one ordering or one step is
//! broken, and the tool must then object, or the table says that the tool is blind to it. The kernel that can
//! be broken is a copy, which `cargo xtask verify --weave` makes: it stands in place of `-p magpie`, as
//! `--manifest-path "$(cargo xtask verify --weave)"`. Another argument keeps the models and mutants whose names
//! contain it. Every run is a process of its own, because a failing model may abort. The table goes to the
//! standard output, the exit status is 0 if every verdict is the expected one.
//!
//! loom explores interleavings and the orderings that a load may see, up to a number of preemptions. shuttle
//! explores random interleavings of sequentially consistent code. `docs/verification.md` has the results.

#[cfg(any(loom, shuttle))]
mod aside;
#[cfg(any(loom, shuttle))]
mod batch;
#[cfg(any(loom, shuttle))]
mod checks;
#[cfg(any(loom, shuttle))]
mod chosen;
#[cfg(any(loom, shuttle))]
mod delayed_call;
#[cfg(any(loom, shuttle))]
mod deque;
#[cfg(any(loom, shuttle))]
mod ends;
#[cfg(any(loom, shuttle))]
mod guests;
#[cfg(any(loom, shuttle))]
mod handshake;
#[cfg(any(loom, shuttle))]
mod harness;
#[cfg(any(loom, shuttle))]
mod held;
#[cfg(any(loom, shuttle))]
mod in_hand;
#[cfg(any(loom, shuttle))]
mod interrupts;
#[cfg(any(loom, shuttle))]
mod kill;
#[cfg(any(loom, shuttle))]
mod lane;
#[cfg(any(loom, shuttle))]
mod limits;
#[cfg(any(loom, shuttle))]
mod links;
#[cfg(any(loom, shuttle))]
mod lists;
#[cfg(any(loom, shuttle))]
mod live_count;
#[cfg(any(loom, shuttle))]
mod lives;
#[cfg(any(loom, shuttle))]
mod locked_append;
#[cfg(any(loom, shuttle))]
mod mailboxes;
#[cfg(any(loom, shuttle))]
mod mutex;
#[cfg(any(loom, shuttle))]
mod nodes;
#[cfg(any(loom, shuttle))]
mod rounds;
#[cfg(any(loom, shuttle))]
mod section;
#[cfg(any(loom, shuttle))]
mod shares;
#[cfg(any(loom, shuttle))]
mod signals;
#[cfg(any(loom, shuttle))]
mod standstill;
#[cfg(any(loom, shuttle))]
mod stopping;
#[cfg(any(loom, shuttle))]
mod supervise;
#[cfg(any(loom, shuttle))]
mod swap;
#[cfg(any(loom, shuttle))]
mod timers;
#[cfg(any(loom, shuttle))]
mod tool;
#[cfg(any(loom, shuttle))]
mod traces;
#[cfg(any(loom, shuttle))]
mod turns;
#[cfg(any(loom, shuttle))]
mod urgent;
#[cfg(any(loom, shuttle))]
mod waiting_senders;
#[cfg(any(loom, shuttle))]
mod watch;
#[cfg(any(loom, shuttle))]
mod written;

#[cfg(any(loom, shuttle))]
fn main() -> std::process::ExitCode {
    harness::main(
        &[
            deque::MODELS,
            ends::MODELS,
            lists::MODELS,
            swap::MODELS,
            handshake::MODELS,
            locked_append::MODELS,
            mailboxes::MODELS,
            guests::MODELS,
            in_hand::MODELS,
            checks::MODELS,
            rounds::MODELS,
            lives::MODELS,
            aside::MODELS,
            batch::MODELS,
            live_count::MODELS,
            turns::MODELS,
            mutex::MODELS,
            section::MODELS,
            standstill::MODELS,
            delayed_call::MODELS,
            urgent::MODELS,
            chosen::MODELS,
            held::MODELS,
            waiting_senders::MODELS,
            watch::MODELS,
            links::MODELS,
            kill::MODELS,
            lane::MODELS,
            signals::MODELS,
            interrupts::MODELS,
            limits::MODELS,
            stopping::MODELS,
            supervise::MODELS,
            shares::MODELS,
            written::MODELS,
            timers::MODELS,
            traces::MODELS,
        ]
        .concat(),
    )
}

#[cfg(not(any(loom, shuttle)))]
fn main() -> std::process::ExitCode {
    eprintln!("no model checker: build with RUSTFLAGS=\"--cfg loom\" or RUSTFLAGS=\"--cfg shuttle\"");
    std::process::ExitCode::from(2)
}
