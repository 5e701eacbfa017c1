//! The macro that turns an application into an image.

/// Names the application's main function, an `async fn` without arguments that returns what [`Termination`] is
/// implemented for: nothing, an [`ExitCode`], or a `Result`. The image ends when it returns. On the developer's own machine
/// the same makes a program that runs the application on threads.
///
/// ```
/// # mod application {
/// magpie_boot::entry!(application);
/// async fn application() -> magpie_boot::ExitCode { magpie_boot::ExitCode::Success }
/// # }
/// ```
///
/// [`Termination`]: crate::Termination
/// [`ExitCode`]: crate::ExitCode
#[macro_export]
macro_rules! entry {
    ($main:path) => {
        /// The application's name, for the first line of output.
        #[cfg(target_os = "none")]
        #[unsafe(no_mangle)]
        static MAGPIE_APPLICATION: &str = core::env!("CARGO_CRATE_NAME");

        #[cfg(target_os = "none")]
        #[unsafe(no_mangle)]
        fn magpie_main() {
            $crate::run_main($main());
        }

        #[cfg(not(target_os = "none"))]
        fn main() -> std::process::ExitCode {
            $crate::host::run(env!("CARGO_CRATE_NAME"), $main())
        }
    };
}
