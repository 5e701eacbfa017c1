//! Who watches is told.

use super::Result;

use magpie::actor::{Actor, Config, Context, Executor, Receive};
use magpie::channel::ProcessMailbox;
use magpie::sched;
use magpie::watch::{Ended, Exit, WatchId};

struct Lamp;

impl Actor for Lamp {}

struct Burn;

impl Receive<Burn> for Lamp {
    type Reply = ();

    fn receive(&mut self, _: Burn, context: &mut Context<Self>) {
        context.end();
    }
}

struct Guardian {
    lamp: Option<WatchId>,
    burnt: u32,
}

impl Actor for Guardian {}

struct Light;

impl Receive<Light> for Guardian {
    type Reply = ();

    fn receive(&mut self, _: Light, context: &mut Context<Self>) {
        let lit = context.spawn(Lamp).ok().and_then(|lamp| {
            let watch = context.watch(lamp).ok()?;
            lamp.send(Burn).ok()?;
            Some(watch.id())
        });
        self.lamp = lit;
    }
}

impl Receive<Ended> for Guardian {
    type Reply = ();

    fn receive(&mut self, ended: Ended, context: &mut Context<Self>) {
        if self.lamp == Some(ended.watch()) {
            self.burnt += 1;
            if self.burnt == 3 || context.address().send(Light).is_err() {
                context.end();
            }
        }
    }
}

pub async fn chapter() -> Result {
    let executor = Executor::start(&Config::default())?;
    let handle = executor.handle();

    let mut ends = ProcessMailbox::<Ended>::new(10)?;
    let guardian = handle.spawn(Guardian { lamp: None, burnt: 0 })?;
    let watch = guardian.watch(&ends.address())?;
    guardian.send(Light)?;
    let ended = ends.receive().await.ok_or("nobody has an address")?;
    assert_eq!((ended.watch(), ended.exit()), (watch.id(), Exit::Normal));

    let errand = sched::spawn(async {})?;
    let watch = errand.process().watch(&ends.address())?;
    if watch.cancel() {
        // No address is left, with the watch: nothing can come.
        assert_eq!(ends.receive().await, None);
    }

    executor.all_ended().await;
    executor.stop().await;
    Ok(())
}
