//! The macro that turns an application into an image.

/// Names the application's main function: `async fn main() -> ExitCode`. The image ends when it returns.
///
/// ```ignore
/// #![cfg_attr(target_os = "none", no_std, no_main)]
/// magpie_boot::entry!(application);
/// async fn application() -> magpie_boot::ExitCode { magpie_boot::ExitCode::Success }
/// ```
#[macro_export]
macro_rules! entry {
    ($main:path) => {
        /// The application's name, for the first line of output.
        #[cfg(target_os = "none")]
        #[unsafe(no_mangle)]
        static MAGPIE_APPLICATION: &str = env!("CARGO_CRATE_NAME");

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
