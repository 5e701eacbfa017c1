//! The end of an image: how the application says that it went well, and how the host learns it.

/// What is said when all that is left are processes that wait.
pub(crate) const NOTHING_WILL_HAPPEN: &str =
    "every process waits for another, and no timer or device can end that";

/// How an application ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExitCode {
    /// It did what it was meant to do.
    Success,
    /// It did not, and has said why.
    Failure,
}

/// What an application's main function may return.
///
/// An error is printed, and the image fails. `Result<(), E>` is for `?`; `Result<ExitCode, E>` for a main function that
/// chooses the status itself.
///
/// ```
/// use magpie_boot::{ExitCode, Termination};
///
/// assert_eq!(().report(), ExitCode::Success);
/// assert_eq!("7".parse::<u32>().map(drop).report(), ExitCode::Success);
/// assert_eq!("seven".parse::<u32>().map(drop).report(), ExitCode::Failure);
/// assert_eq!(Ok::<_, core::fmt::Error>(ExitCode::Failure).report(), ExitCode::Failure);
/// ```
#[diagnostic::on_unimplemented(
    message = "the main function returns `{Self}`, which says nothing about success",
    label = "its main function returns `{Self}`",
    note = "it returns nothing, a `magpie::ExitCode`, or a `Result` of these, such as `magpie::Result`"
)]
pub trait Termination: Send + 'static {
    /// Prints the error, if there is one, and returns how the application ended.
    fn report(self) -> ExitCode;
}

impl Termination for ExitCode {
    fn report(self) -> Self {
        self
    }
}

impl Termination for () {
    fn report(self) -> ExitCode {
        ExitCode::Success
    }
}

impl<T: Termination, E: core::fmt::Display + Send + 'static> Termination for Result<T, E> {
    fn report(self) -> ExitCode {
        match self {
            Ok(value) => value.report(),
            Err(error) => {
                magpie::log::text!("error: {error}");
                ExitCode::Failure
            }
        }
    }
}

#[cfg(target_os = "none")]
mod machine {
    use super::ExitCode;
    use core::sync::atomic::{AtomicBool, Ordering};
    use magpie::internals::arch::cpu;
    use magpie::internals::arch::psci::{self, Conduit};
    use magpie::log::text;
    use qemu_exit::QEMUExit;
    use spin::Once;

    use crate::tree::FirmwareCall;

    /// How the firmware is called, if there is one.
    static FIRMWARE: Once<Conduit> = Once::new();
    /// The host was asked to take the status.
    static ASKED: AtomicBool = AtomicBool::new(false);
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
        // Relaxed: it matters only to the core that asks, to which it comes back as a fault if nobody listens.
        if (board.semihosting)() && !ASKED.swap(true, Ordering::Relaxed) {
            let handle = qemu_exit::AArch64::new();
            match code {
                ExitCode::Success => handle.exit_success(),
                ExitCode::Failure => handle.exit_failure(),
            }
        }
        end()
    }

    fn end() -> ! {
        crate::pl011::CONSOLE.drain();
        (crate::board::this().end)()
    }

    /// For the handler of faults: ends the image if the fault comes from asking a host that is not there.
    pub(crate) fn end_if_nobody_listens() {
        if ASKED.load(Ordering::Relaxed) {
            text!("nobody takes the exit status: the machine is switched off");
            end()
        }
    }

    /// Starts the machine again; returns if that cannot be.
    pub(crate) fn start_again() {
        text!("the machine starts again");
        crate::pl011::CONSOLE.drain();
        (crate::board::this().restart)();
        text!("it does not");
    }

    /// Has the firmware start the machine again; returns if it cannot.
    #[cfg(not(feature = "rpi4"))]
    pub(crate) fn restart_by_firmware() {
        if let Some(conduit) = FIRMWARE.get() {
            psci::system_reset(*conduit);
        }
    }

    /// Records how the firmware is called.
    pub(crate) fn set_firmware(call: Option<FirmwareCall>) {
        if let Some(call) = call {
            FIRMWARE.call_once(|| match call {
                FirmwareCall::Hvc => Conduit::Hvc,
                FirmwareCall::Smc => Conduit::Smc,
            });
        }
    }

    /// Switches the machine off, or waits for ever if the firmware cannot.
    #[inline(always)]
    pub(crate) fn switch_off() -> ! {
        if let Some(conduit) = FIRMWARE.get() {
            psci::system_off(*conduit);
        }
        loop {
            cpu::wait_for_interrupt();
        }
    }
}

#[cfg(all(target_os = "none", not(feature = "rpi4")))]
pub(crate) use machine::restart_by_firmware;
#[cfg(target_os = "none")]
pub(crate) use machine::{end_if_nobody_listens, now, set, set_firmware, start_again, switch_off, with};
