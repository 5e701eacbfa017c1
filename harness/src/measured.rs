//! A figure of a project's own: what a piece of work takes. `cargo xtask bench` boots the suite with instructions counted, and
//! makes a table of the figures.

use core::future::Future;

use magpie::internals::console;
use magpie::time::Instant;

/// Does `work`, and reports what it takes as so many operations of this name, which is one word.
///
/// The time of the machine's clock, which under `cargo xtask bench` is the instructions of all cores together; its tick is
/// 16 of them, so do many operations. What `work` returns is returned.
///
/// ```ignore
/// kernel_test! {
///     async fn an_ask() -> Outcome {
///         let executor = Executor::start(&Config::default())?;
///         let counter = executor.handle().spawn(Counter::default())?;
///         measured("ask", 10_000, async {
///             for number in 0..10_000 {
///                 counter.ask(number).await?;
///             }
///             Ok(())
///         })
///         .await
///     }
/// }
/// ```
pub async fn measured<T>(name: &str, operations: u64, work: impl Future<Output = T>) -> T {
    let begin = Instant::now();
    let result = work.await;
    let nanoseconds = begin.elapsed().as_nanos();
    console::notice(format_args!("@bench {name} ops={operations} ns={nanoseconds}"));
    result
}
