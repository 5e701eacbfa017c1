//! One that asks and does not listen.

use alloc::format;
use alloc::sync::Arc;
use core::net::SocketAddrV4;
use core::time::Duration;

use magpie::actor::{Actor, Context, Receive};
use magpie::internals::mem::heap::HEAP;
use magpie::{registry, time};
use magpie_dist::connection::{Chance, Connection, Identity, Limits, LocalPid, To};
use magpie_net::{Faults, TcpStream};
use magpie_node::term::TermBuf;
use magpie_tests::{Failure, ensure, ensure_eq, kernel_test};

use crate::common::{ADDRESS_THERE, Job, PATIENCE, Pair, THERE};

/// Sends back what it gets.
struct Echo;

impl Actor for Echo {}

impl Receive<TermBuf> for Echo {
    type Reply = TermBuf;

    fn receive(&mut self, term: TermBuf, _: &mut Context<Self>) -> TermBuf {
        term
    }
}

/// A node of another make: it connects, and then talks and never listens.
struct Deaf {
    stream: TcpStream,
    connection: Connection,
}

/// Nobody checks that this one's clock goes.
const NOW: u64 = 0;

impl Deaf {
    async fn connect(pair: &Pair) -> Result<Self, Failure> {
        let identity = Arc::new(Identity::new("deaf@10.0.0.1", "cookie", 1).map_err(|_| "no identity")?);
        let chance = Chance { challenge: 7, salt: 7 };
        let connection = Connection::connect(identity, THERE, Limits::default(), chance, NOW);
        let mut connection = connection.map_err(|_| "no connection")?;
        let mut stream = pair.networks.0.connect(SocketAddrV4::new(ADDRESS_THERE, 9100)).await?;
        while !connection.is_up() {
            while !connection.output().is_empty() {
                let count = stream.write(connection.output()).await?;
                connection.sent(count, NOW);
            }
            let count = stream.read(connection.space()).await?;
            ensure!(count > 0, "it was not let in");
            connection.received(count, NOW);
            while connection.event().map_err(|closed| Failure(format!("{closed}")))?.is_some() {}
        }
        Ok(Self { stream, connection })
    }

    /// Asks, as often as it is let, but so many times at most.
    async fn ask(&mut self, name: &str, text: &str, most: usize) -> Result<usize, Failure> {
        const STUCK_AFTER: Duration = Duration::from_secs(2);
        for asked in 0..most {
            let called = self.connection.peer().call(LocalPid::new(1, 0), To::Name(name), &text);
            called.map_err(|error| Failure(format!("{error}")))?;
            while !self.connection.output().is_empty() {
                let Ok(count) = time::timeout(STUCK_AFTER, self.stream.write(self.connection.output())).await
                else {
                    return Ok(asked);
                };
                self.connection.sent(count?, NOW);
            }
        }
        Ok(most)
    }
}

kernel_test! {
    /// Who asks without end and never listens is not heard without end: what waits for it has a bound.
    async fn who_does_not_listen_is_not_heard_without_end() -> Outcome {
        const ECHO: &str = "echo of a node";
        const LENGTH: usize = 200_000;
        const CALLS: usize = 400;
        // A node's (`docs/cluster.md`).
        const OUTPUT: usize = 2 << 20;
        let pair =
            Pair::start_alike(Faults::none(), 4000, |config| config.actor::<Echo, TermBuf, _>(ECHO)).await?;
        registry::register(ECHO, pair.executor.handle().spawn(Echo)?)?;
        let mut deaf = Deaf::connect(&pair).await?;
        let before = HEAP.usage().0;
        let asked = deaf.ask(ECHO, &"t".repeat(LENGTH), CALLS).await?;
        let grown = HEAP.usage().0.saturating_sub(before);
        ensure!(asked < CALLS, "all {CALLS} calls were heard");
        // The output, twice, because it grows by a copy; what is heard behind it; a frame that is not heard; and what belongs to the connections.
        let frame = Limits::default().frame;
        let most = 2 * OUTPUT + (OUTPUT + 2 * frame) + frame + (1 << 20);
        ensure!(grown <= most, "{asked} calls have taken {grown} bytes");
        // Others are served.
        ensure_eq!(pair.remote().await?.call::<u64>(&Job::Add(1), PATIENCE).await, Ok(1), "a call");
        drop(deaf);
        registry::unregister(ECHO);
        pair.end().await;
        Ok(())
    }
}
