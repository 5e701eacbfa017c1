//! Children that are large: neither their futures nor their states are moved about on their supervisor's stack.

use core::future::pending;
use core::hint::black_box;
use core::time::Duration;

use magpie::actor::{Actor, Config, Executor};
use magpie::supervise::{Child, Shutdown, Supervisor};
use magpie::time;
use magpie_tests::{Outcome, ensure_eq, kernel_test};

use super::scene::{patient, until};

/// A future of more than so many bytes.
async fn large_process<const BYTES: usize>(mut shutdown: Shutdown) {
    let mut content = [1_u8; BYTES];
    black_box(&mut content);
    shutdown.requested().await;
    black_box(&mut content);
}

struct LargeActor<const BYTES: usize>([u8; BYTES]);

impl<const BYTES: usize> Actor for LargeActor<BYTES> {}

/// Starts it in a supervisor that has another child: both run.
async fn try_child(child: Child) -> Outcome {
    let supervisor = patient(Supervisor::one_for_one())
        .child(Child::process("small", |_| pending::<()>()).within(Duration::ZERO))
        .start()?;
    supervisor.start_child(child.temporary().within(Duration::ZERO)).await?;
    time::sleep(Duration::from_millis(2)).await;
    let children = supervisor.children().await?;
    ensure_eq!(children.len(), 2, "children");
    supervisor.stop().await?;
    Ok(())
}

kernel_test! {
    async fn a_large_future_does_not_end_its_supervisor() -> Outcome {
        try_child(Child::process("large", large_process::<900>)).await?;
        try_child(Child::process("large", large_process::<2000>)).await?;
        try_child(Child::process("large", large_process::<13_000>)).await?;
        try_child(Child::process("large", large_process::<60_000>)).await
    }
}

kernel_test! {
    async fn a_large_actor_does_not_end_its_supervisor() -> Outcome {
        let executor = Executor::start(&Config::default())?;
        let handle = executor.handle();
        try_child(Child::actor("large", handle, || LargeActor(black_box([1; 1000])))).await?;
        try_child(Child::actor("large", handle, || LargeActor(black_box([1; 4000])))).await?;
        executor.stop().await;
        Ok(())
    }
}

/// More than there is of any stack, and it is made there.
fn huge() -> Child {
    Child::process("huge", |mut shutdown: Shutdown| {
        let mut content = black_box([1_u8; 60_000]);
        async move {
            shutdown.requested().await;
            black_box(&mut content);
        }
    })
}

kernel_test! {
    /// What does not fit on its own stack ends alone.
    async fn one_that_is_too_large_ends_alone() -> Outcome {
        let supervisor = patient(Supervisor::one_for_one()).child(Child::process("small", |_| pending::<()>()).within(Duration::ZERO)).start()?;
        // Whether its start is told of depends on how far it comes.
        let _ = supervisor.start_child(huge().temporary()).await;
        until(&supervisor, |children| children.len() == 1).await?;
        let children = supervisor.children().await?;
        ensure_eq!(children[0].restarts, 0, "restarts of the other");
        supervisor.stop().await?;
        Ok(())
    }
}
