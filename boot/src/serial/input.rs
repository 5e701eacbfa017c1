//! Input for the application, by an actor that is told when something has arrived.

use core::fmt;

use magpie::actor::Recipient;

/// Something has arrived on the serial line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrived;

/// Why there is no input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum NoInput {
    /// The boot argument `commands` gives what is typed to the kernel.
    Commands,
    /// Another actor has it, and lives.
    Taken,
    /// The device tree does not say what interrupt the serial port has.
    NoInterrupt,
    /// The application runs on the developer's own machine, on threads.
    OnTheHost,
}

impl fmt::Display for NoInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Commands => "the kernel takes what is typed: leave out the boot argument commands",
            Self::Taken => "another actor has the serial line's input",
            Self::NoInterrupt => "the device tree names no interrupt of the serial port",
            Self::OnTheHost => "there is no serial line on the host: boot the image",
        })
    }
}

impl core::error::Error for NoInput {}

/// The serial line's input, which one actor at a time has.
///
/// The actor is sent [`Arrived`] at once, takes byte after byte until there is none, and is sent it again when more has come. Bytes that come
/// faster than they are taken fill the port's queue, 16 on a PL011, and are lost beyond that.
///
/// ```
/// use magpie::actor::{Actor, Context, Hook, Receive};
/// use magpie_boot::serial::{Arrived, Input};
///
/// struct Count {
///     input: Option<Input>,
///     bytes: u64,
/// }
///
/// impl Actor for Count {
///     fn started() -> Option<Hook<Self>> {
///         Some(|count, context| match Input::take(context.address().recipient()) {
///             Ok(input) => count.input = Some(input),
///             Err(_) => context.end(),
///         })
///     }
/// }
///
/// impl Receive<Arrived> for Count {
///     type Reply = ();
///
///     fn receive(&mut self, _: Arrived, _: &mut Context<Self>) {
///         while let Some(_) = self.input.as_mut().and_then(Input::receive) {
///             self.bytes += 1;
///         }
///     }
/// }
/// ```
#[derive(Debug)]
pub struct Input {
    /// Which one of all that there were. One that a crash has left behind is not dropped, and the next takes its place.
    #[cfg_attr(not(target_os = "none"), allow(dead_code, reason = "there is none on the host"))]
    number: u64,
}

impl Input {
    /// From now on that actor is told. Pinned to the first core, which has the interrupt, it is told soonest.
    ///
    /// If an actor that had it has ended, or crashed, without dropping it, it is taken from that one.
    ///
    /// # Errors
    /// [`NoInput`].
    pub fn take(recipient: Recipient<Arrived>) -> Result<Self, NoInput> {
        #[cfg(target_os = "none")]
        return on_the_machine::take(recipient).map(|number| Self { number });
        #[cfg(not(target_os = "none"))]
        {
            let _ = recipient;
            Err(NoInput::OnTheHost)
        }
    }

    /// The next byte that has arrived. `None` if there is none: then the actor is told when one has come.
    pub fn receive(&mut self) -> Option<u8> {
        #[cfg(target_os = "none")]
        return on_the_machine::receive(self.number);
        #[cfg(not(target_os = "none"))]
        None
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        #[cfg(target_os = "none")]
        on_the_machine::leave(self.number);
    }
}

#[cfg(target_os = "none")]
mod on_the_machine {
    //! Who has the input.

    use super::{Arrived, NoInput};
    use crate::pl011::CONSOLE;
    use crate::serial::port::{self, Refused};
    use magpie::actor::{Recipient, Signal};
    use magpie::internals::sync::SpinLock;

    struct Holder {
        /// The one that has it.
        recipient: Option<Recipient<Arrived>>,
        /// The number of that one, or of the last.
        number: u64,
    }

    static HOLDER: SpinLock<Holder> = SpinLock::new(Holder { recipient: None, number: 0 });
    static ARRIVED: Signal<Arrived> = Signal::new();

    fn on_arrival() {
        ARRIVED.raise();
    }

    pub(super) fn take(recipient: Recipient<Arrived>) -> Result<u64, NoInput> {
        let mut holder = HOLDER.lock();
        match &holder.recipient {
            Some(known) if known.is_alive() => return Err(NoInput::Taken),
            // The port is still the application's.
            Some(_) => CONSOLE.mask_receive(),
            None => port::take_for_application(on_arrival).map_err(|refused| match refused {
                Refused::NoInterrupt => NoInput::NoInterrupt,
                Refused::Taken => NoInput::Commands,
            })?,
        }
        holder.number += 1;
        holder.recipient = Some(recipient);
        let number = holder.number;
        ARRIVED.send_to(recipient, Arrived);
        drop(holder);
        // What is there already raises no interrupt. Whoever finds nothing more unmasks it.
        ARRIVED.raise();
        Ok(number)
    }

    pub(super) fn receive(number: u64) -> Option<u8> {
        // One at a time reads the port: a handle that was passed over may be used still.
        let holder = HOLDER.lock();
        if holder.number != number {
            return None;
        }
        let byte = CONSOLE.receive();
        if byte.is_none() {
            CONSOLE.unmask_receive();
        }
        byte
    }

    pub(super) fn leave(number: u64) {
        let mut holder = HOLDER.lock();
        if holder.number == number && holder.recipient.take().is_some() {
            ARRIVED.send_to_nobody();
            port::leave();
        }
    }
}
