//! A message that cannot be sent to another core.
#![no_std]
#![no_main]
extern crate alloc;

use alloc::rc::Rc;
use magpie::prelude::*;

struct Reader;
impl Actor for Reader {}

impl Receive<Rc<u32>> for Reader {
    type Reply = ();

    fn receive(&mut self, _: Rc<u32>, _: &mut Context<Self>) {}
}

magpie::entry!(application);

async fn application() -> magpie::Result {
    let executor = Executor::start(&Config::default())?;
    let reader = executor.handle().spawn(Reader)?;
    let _ = reader.send(Rc::new(1));
    Ok(())
}
