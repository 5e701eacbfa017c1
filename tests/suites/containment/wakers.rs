//! Wakers that an application makes itself, in safe code, and that go wrong where an event comes.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::task::Wake;
use core::future::Future;
use core::mem::ManuallyDrop;
use core::pin::Pin;
use core::task::{Context as TaskContext, Waker};
use core::time::Duration;

use magpie::actor::{Actor, Config, Context, Executor, Receive, Reply, Request, stop};
use magpie::arch::CoreId;
use magpie::channel::ProcessMailbox;
use magpie::{sched, time};
use magpie_tests::{Outcome, ensure, kernel_test};

use crate::misdeeds::{ALL, Misdeed, Trouble, is_contained, reset};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum When {
    Woken,
    Dropped,
}

struct Bad {
    when: When,
    trouble: ManuallyDrop<Trouble>,
}

impl Wake for Bad {
    fn wake(self: Arc<Self>) {
        if self.when == When::Woken {
            self.trouble.commit();
        }
    }
}

impl Drop for Bad {
    fn drop(&mut self) {
        if self.when == When::Dropped {
            self.trouble.commit();
        }
    }
}

/// A future that waits, polled with such a waker, of which nobody but the kernel has a clone.
fn waiting<F: Future>(future: F, when: When, trouble: Trouble) -> Result<Pin<Box<F>>, &'static str> {
    let mut future = Box::pin(future);
    let waker = Waker::from(Arc::new(Bad { when, trouble: ManuallyDrop::new(trouble) }));
    if future.as_mut().poll(&mut TaskContext::from_waker(&waker)).is_ready() {
        // Its trouble is nobody's event.
        core::mem::forget(waker);
        return Err("it did not wait");
    }
    Ok(future)
}

/// An actor that answers, or ends, or crashes, when it is told.
struct Told(Option<Reply<()>>);

impl Actor for Told {}

impl Receive<Request<(), ()>> for Told {
    type Reply = ();

    fn receive(&mut self, request: Request<(), ()>, _: &mut Context<Self>) {
        self.0 = Some(request.reply);
    }
}

struct Answer;

impl Receive<Answer> for Told {
    type Reply = ();

    fn receive(&mut self, _: Answer, context: &mut Context<Self>) {
        let _ = self.0.take().map(|reply| reply.send(()));
        context.end();
    }
}

struct Crash;

impl Receive<Crash> for Told {
    type Reply = ();

    fn receive(&mut self, _: Crash, _: &mut Context<Self>) {
        panic!("on purpose, while somebody waits")
    }
}

async fn each_event(misdeed: Misdeed, when: When) -> Outcome {
    const SOON: Duration = Duration::from_millis(10);
    let executor = Executor::start(&Config::default())?;
    let others = Executor::start(&Config::default())?;
    let trouble = || {
        reset();
        Trouble::knowing(misdeed, others.handle())
    };

    // A busy host may let the moment pass before it was waited for.
    let sleep = loop {
        if let Ok(sleep) = waiting(time::sleep(SOON), when, trouble()) {
            break sleep;
        }
    };
    is_contained("a timer", misdeed, 1, 0).await?;
    drop(sleep);

    for crashes in [false, true] {
        let gate = ProcessMailbox::<()>::new(1)?;
        let open = gate.address();
        let process = sched::spawn(async move {
            let mut gate = gate;
            gate.receive().await;
            assert!(!crashes, "on purpose, while somebody waits");
        })?;
        let joined = waiting(process, when, trouble())?;
        open.send(())?;
        is_contained("the end of a process", misdeed, 1, 0).await?;
        drop(joined);
    }

    for crashes in [false, true] {
        let told = executor.handle().spawn_pinned(CoreId::BOOT, Told(None))?;
        let answer = waiting(told.ask(()), when, trouble())?;
        if crashes {
            told.send(Crash)?;
        } else {
            told.send(Answer)?;
        }
        is_contained("an answer", misdeed, 1, 0).await?;
        drop(answer);
    }

    let mut mailbox = ProcessMailbox::<u64>::new(1)?;
    let address = mailbox.address();
    let received = waiting(mailbox.receive(), when, trouble())?;
    address.send(1)?;
    is_contained("a message", misdeed, 1, 0).await?;
    drop(received);

    let told = executor.handle().spawn_pinned(CoreId::BOOT, Told(None))?;
    let ended = waiting(executor.all_ended(), when, trouble())?;
    told.send(stop::End)?;
    is_contained("the end of all actors", misdeed, 1, 0).await?;
    drop(ended);

    let idle = waiting(sched::out_of_work(), when, trouble())?;
    sched::out_of_work().await;
    is_contained("the end of work", misdeed, 1, 0).await?;
    drop(idle);

    others.stop().await;
    executor.stop().await;
    Ok(())
}

kernel_test! {
    /// Called, it ends its own call, in whatever event.
    #[machine("isolation")]
    async fn called() -> Outcome {
        for misdeed in ALL {
            each_event(misdeed, When::Woken).await?;
        }
        Ok(())
    }
}

kernel_test! {
    /// Dropped, after the call or without it.
    #[machine("isolation")]
    async fn dropped() -> Outcome {
        for misdeed in ALL {
            each_event(misdeed, When::Dropped).await?;
            reset();
            let executor = Executor::start(&Config::default())?;
            let sleep = time::sleep(Duration::from_secs(1000));
            let sleep = waiting(sleep, When::Dropped, Trouble::knowing(misdeed, executor.handle()))?;
            // By the kernel, in the name of whoever gives it up, who is innocent.
            let drops = sched::procedure(move || drop(sleep))?;
            is_contained("a future that is given up", misdeed, 1, 0).await?;
            ensure!(drops.await.is_ok(), "who gave it up crashed");
            executor.stop().await;
        }
        Ok(())
    }
}
