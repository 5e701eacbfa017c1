//! Who has the serial line's input. That bytes arrive is in the host tool's end-to-end tests.

use magpie::actor::{Actor, Addr, Config, Context, Executor, Receive};
use magpie_boot::serial::{Arrived, Input, NoInput};
use magpie_tests::{ensure, ensure_eq, kernel_test};

#[derive(Default)]
struct Holder(Option<Input>);

impl Actor for Holder {}

impl Receive<Arrived> for Holder {
    type Reply = ();

    fn receive(&mut self, _: Arrived, _: &mut Context<Self>) {}
}

/// To take it, for itself.
struct Take;

impl Receive<Take> for Holder {
    type Reply = Option<NoInput>;

    fn receive(&mut self, _: Take, context: &mut Context<Self>) -> Option<NoInput> {
        match Input::take(context.address().recipient()) {
            Ok(input) => {
                self.0 = Some(input);
                None
            }
            Err(error) => Some(error),
        }
    }
}

/// To do something else with what it has.
#[derive(Clone, Copy)]
enum Do {
    Drop,
    Crash,
}

impl Receive<Do> for Holder {
    type Reply = ();

    fn receive(&mut self, what: Do, _: &mut Context<Self>) {
        match what {
            Do::Drop => self.0 = None,
            Do::Crash => panic!("on purpose"),
        }
    }
}

async fn take(holder: &Addr<Holder>) -> Result<Option<NoInput>, magpie_tests::Failure> {
    Ok(holder.ask(Take).await?)
}

kernel_test! {
    /// One actor at a time has it; it is free when that one drops it, and when that one has crashed with it.
    #[machine("isolation")]
    async fn one_has_the_serial_input() -> Outcome {
        let executor = Executor::start(&Config::default())?;
        let holder = || executor.handle().spawn(Holder::default()).map_err(|error| error.without_actor());
        let (first, second) = (holder()?, holder()?);
        ensure_eq!(take(&first).await?, None, "for the first");
        ensure_eq!(take(&second).await?, Some(NoInput::Taken), "for the second");
        ensure_eq!(take(&first).await?, Some(NoInput::Taken), "twice for the first");
        first.ask(Do::Drop).await?;
        ensure_eq!(take(&second).await?, None, "for the second, when the first has dropped it");
        ensure!(second.ask(Do::Crash).await.is_err(), "it has not crashed");
        while second.is_alive() {
            magpie::sched::yield_now().await;
        }
        ensure_eq!(take(&first).await?, None, "when the second has crashed with it");
        executor.stop().await;
        Ok(())
    }
}
