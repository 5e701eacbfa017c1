//! The end of an image: how the application says that it went well, and how the host learns it.

/// How an application ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExitCode {
    /// It did what it was to do.
    Success,
    /// It did not; it has said why.
    Failure,
}

#[cfg(target_os = "none")]
mod machine {
    use super::ExitCode;
    use core::sync::atomic::{AtomicBool, Ordering};
    use qemu_exit::QEMUExit;

    static FAILED: AtomicBool = AtomicBool::new(false);

    /// Remembers how the application ended, for [`now`].
    pub(crate) fn set(code: ExitCode) {
        // Release: pairs with the acquire in `now`.
        FAILED.store(code == ExitCode::Failure, Ordering::Release);
    }

    /// Ends the image with what [`set`] was given.
    pub(crate) fn now() -> ! {
        // Acquire: pairs with the release in `set`.
        with(if FAILED.load(Ordering::Acquire) { ExitCode::Failure } else { ExitCode::Success })
    }

    /// Ends the image. Under QEMU the host sees the status; where nobody listens, the board ends the run in its own way.
    pub(crate) fn with(code: ExitCode) -> ! {
        let board = crate::board::this();
        if (board.semihosting)() {
            let handle = qemu_exit::AArch64::new();
            match code {
                ExitCode::Success => handle.exit_success(),
                ExitCode::Failure => handle.exit_failure(),
            }
        }
        crate::pl011::CONSOLE.drain();
        (board.end)()
    }
}

#[cfg(target_os = "none")]
pub(crate) use machine::{now, set, with};
