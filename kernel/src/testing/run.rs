//! A test runs: in the harness's process it is handed to a child, in the child the kernel is started.

use core::future::Future;
use std::cell::Cell;
use std::string::{String, ToString};

use super::{Options, Verdict, child, parent, protocol};

std::thread_local! {
    /// How many runs the test that this thread belongs to has begun.
    static RUNS: Cell<usize> = const { Cell::new(0) };
}

/// Runs `body` as the main process of a kernel of its own, on threads, in another process of the host: see [the
/// module](self). Returns when all is over and well; otherwise the test fails with the message of whoever has panicked.
///
/// ```no_run
/// use core::time::Duration;
/// use magpie::testing::{Options, run};
/// use magpie::{sched, time};
///
/// // In a test's module: #[test]
/// fn an_hour_passes() {
///     run(&Options::default().virtual_time(), || async {
///         let begin = time::Instant::now();
///         let sleeper = sched::spawn(time::sleep(Duration::from_secs(3600)))?;
///         sleeper.await.expect("it sleeps well");
///         assert_eq!(begin.elapsed().as_secs(), 3600);
///         Ok::<(), sched::SpawnError>(())
///     });
/// }
/// ```
///
/// # Panics
/// If the test has failed; if its process cannot be started, ends otherwise, or hangs; if it is called where the name of
/// the test is not known ([`Options::name`]), or in a run.
#[track_caller]
pub fn run<F>(options: &Options, body: fn() -> F)
where
    F: Future<Output: Verdict> + Send + 'static,
{
    let number = RUNS.replace(RUNS.get() + 1);
    match std::env::var(protocol::VARIABLE) {
        Ok(wanted) if wanted == number.to_string() => child::run(options, body),
        // Another run of the same test, which is not this child's.
        Ok(_) => {}
        Err(_) => parent::run(options, &name(options, core::any::type_name::<F>()), number),
    }
}

/// The name of the test: the harness calls the test's thread by it. A program without a harness has one thread, called `main`,
/// and there the name does not matter; something to be called by is in the name of the body's type.
fn name(options: &Options, body: &str) -> String {
    if let Some(name) = &options.name {
        return name.clone();
    }
    match std::thread::current().name() {
        Some("main") => {
            let path = body.split_once("::").map_or(body, |(_crate, path)| path);
            path.split("::{{closure}}").next().unwrap_or(path).into()
        }
        Some(name) => name.into(),
        None => panic!(
            "magpie::testing::run does not know the name of the test on a thread without a name: say it with Options::name"
        ),
    }
}
