//! What should not be done, and what comes of it: an error that says so, and nothing lost.

use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::SocketAddrV4;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;

use magpie::channel::ProcessMailbox;
use magpie::time;
use magpie_net::{Config as Net, Faults};
use magpie_node::term::AtomBuf;
use magpie_node::{Closed, Config, Error, Limits, Node, RemoteDown, RemoteRecipient};
use magpie_tests::{amount, ensure, ensure_eq, kernel_test};

use crate::common::{ADDRESS_THERE, HERE, Job, PATIENCE, Pair, THERE};

kernel_test! {
    async fn a_wrong_cookie_is_refused() -> Outcome {
        let pair = Pair::start_with(Faults::none(), 1000, |mut config| {
            config.cookie = "another".into();
            config
        }).await?;
        let refused = pair.here.connect(THERE).await;
        ensure!(matches!(refused, Err(Error::Closed(Closed::Cookie) | Error::Disconnected)), "{refused:?}");
        ensure_eq!((pair.here.peers().await?.len(), pair.there.peers().await?.len()), (0, 0), "connections");
        pair.end().await;
        Ok(())
    }
}

kernel_test! {
    async fn names_that_are_none_are_refused() -> Outcome {
        let pair = Pair::start(Faults::none(), 1000).await?;
        for name in ["", "there", "@", "there@", "@10.0.0.2", "a@b@10.0.0.2"] {
            let refused = pair.here.connect(name).await;
            ensure!(refused.is_err(), "'{name}' is a node's name");
        }
        ensure_eq!(pair.here.connect(HERE).await, Err(Error::Name), "to itself");
        ensure_eq!(pair.here.connect("nobody@10.0.0.2").await, Err(Error::NotFound), "no such node");
        let refused = Node::start(&pair.networks.0, Config::new("a\nb", "cookie")).await;
        ensure_eq!(refused.map(drop), Err(Error::Name), "a line's end in a name");
        pair.end().await;
        Ok(())
    }
}

kernel_test! {
    /// Messages of another type: the caller hears of it, others are counted.
    async fn another_shape_is_an_answer() -> Outcome {
        let pair = Pair::start(Faults::none(), 1000).await?;
        pair.here.connect(THERE).await?;
        let other: RemoteRecipient<(u64, AtomBuf)> = pair.here.recipient(THERE, &pair.name).await?;
        let odd = (1, AtomBuf::new("odd")?);
        let answer = other.call::<Result<u64, (AtomBuf, magpie_node::term::TermBuf)>>(&odd, PATIENCE).await;
        ensure!(matches!(&answer, Ok(Err((tag, _))) if tag.as_str() == "badarg"), "{answer:?}");
        other.cast(&odd).await?;
        other.send(&odd).await?;
        let adder = pair.remote().await?;
        ensure_eq!(adder.call::<u64>(&Job::Add(1), PATIENCE).await, Ok(1), "the next message");
        ensure_eq!(pair.there.statistics().misshapen, 3, "what was counted");
        // An answer of another type than is expected.
        let answer = adder.call::<AtomBuf>(&Job::Add(1), PATIENCE).await;
        ensure!(matches!(answer, Err(Error::Shape(_))), "{answer:?}");
        let nobody: RemoteRecipient<u64> = pair.here.recipient(THERE, "nobody").await?;
        let answer = nobody.call::<u64>(&1, PATIENCE).await;
        ensure!(matches!(&answer, Err(Error::Ended(reason)) if reason.as_term().to_string() == "noproc"), "{answer:?}");
        pair.end().await;
        Ok(())
    }
}

kernel_test! {
    /// A slow actor with a small mailbox, and many who send without waiting: nothing is lost, and the senders are held up.
    async fn a_full_mailbox_holds_up_the_sender() -> Outcome {
        let pair = Pair::start(Faults::none(), 8).await?;
        let adder = pair.remote().await?;
        let (senders, each) = (32, amount("messages", 20));
        let mut sent = Vec::new();
        for _ in 0..senders {
            let adder = adder.clone();
            sent.push(magpie::sched::spawn(async move {
                for _ in 0..each {
                    adder.cast(&Job::Linger(300)).await?;
                }
                Ok::<_, Error>(())
            })?);
        }
        for sender in sent {
            sender.await??;
        }
        ensure_eq!(adder.call::<u64>(&Job::Add(0), PATIENCE).await, Ok(senders * each), "what came");
        ensure!(pair.there.statistics().full > 0, "the mailbox was never full");
        pair.end().await;
        Ok(())
    }
}

kernel_test! {
    /// Who gives up is not answered, and others are.
    async fn calls_that_are_given_up_cost_nothing() -> Outcome {
        let pair = Pair::start(Faults::none(), 4000).await?;
        let adder = pair.remote().await?;
        // More than may be under way at once.
        for _ in 0..amount("calls", 1500) {
            let answer = adder.call::<u64>(&Job::Add(1), Duration::ZERO).await;
            ensure!(matches!(answer, Err(Error::TimedOut | Error::Busy) | Ok(_)), "{answer:?}");
        }
        let mut answer = Err(Error::Busy);
        while answer == Err(Error::Busy) {
            answer = adder.call::<u64>(&Job::Add(1), PATIENCE).await;
        }
        ensure!(answer.is_ok(), "{answer:?}");
        pair.end().await;
        Ok(())
    }
}

kernel_test! {
    /// A message that is longer than a frame may be ends nothing, if it is known here; if it is not, it ends the connection.
    async fn a_huge_message_is_refused() -> Outcome {
        let small = |mut config: Config| {
            config.limits.frame = 2000;
            config
        };
        let pair = Pair::start_with(Faults::none(), 1000, small).await?;
        let adder = pair.remote().await?;
        let too_long = adder.call::<u64>(&Job::Text("t".repeat(2 << 20)), PATIENCE).await;
        ensure!(matches!(too_long, Err(Error::Encode(_))), "{too_long:?}");
        ensure_eq!(adder.call::<u64>(&Job::Add(1), PATIENCE).await, Ok(1), "the next one");
        let cut = adder.call::<u64>(&Job::Text("t".repeat(100_000)), PATIENCE).await;
        ensure_eq!(cut, Err(Error::Disconnected), "what is too long there");
        ensure_eq!(adder.call::<u64>(&Job::Add(1), PATIENCE).await, Ok(2), "over the next connection");
        pair.end().await;
        Ok(())
    }
}

kernel_test! {
    /// Whoever connects and says nothing, or nonsense, is not waited for, and keeps nobody else out.
    async fn noise_keeps_nobody_out() -> Outcome {
        let pair = Pair::start(Faults::none(), 1000).await?;
        let mut open = Vec::new();
        for round in 0..8_u8 {
            for port in [9100, 4369] {
                let mut stream = pair.networks.0.connect(SocketAddrV4::new(ADDRESS_THERE, port)).await?;
                // It may be closed already.
                let _ = stream.write_all(&[round.wrapping_mul(37); 400]).await;
                open.push(stream);
            }
        }
        time::sleep(Duration::from_millis(50)).await;
        ensure_eq!(pair.remote().await?.call::<u64>(&Job::Add(1), PATIENCE).await, Ok(1), "a call");
        drop(open);
        pair.end().await;
        Ok(())
    }
}

kernel_test! {
    /// More connections than the network has places for, to both ports: when they have gone, the node is there as before.
    async fn connections_without_end_keep_nobody_out_for_good() -> Outcome {
        const PLACES: usize = 40;
        let small = Net { sockets: PLACES, ..Net::fixed(ADDRESS_THERE, 24) };
        let pair = Pair::start_on(Faults::none(), 1000, small, |config| config).await?;
        let is_full = Arc::new(AtomicBool::new(false));
        let mut dialers = Vec::new();
        for dialer in 0..16 {
            let (network, is_full) = (pair.networks.0.clone(), is_full.clone());
            dialers.push(magpie::sched::spawn(async move {
                let mut open = Vec::new();
                let port = if dialer % 2 == 0 { 9100 } else { 4369 };
                while !is_full.load(Ordering::Relaxed) {
                    let dial = network.connect(SocketAddrV4::new(ADDRESS_THERE, port));
                    // Refused as long as none is in store, and not answered when there is no more room.
                    match time::timeout(Duration::from_secs(1), dial).await {
                        Ok(Ok(stream)) => open.push(stream),
                        _ => time::sleep(Duration::from_millis(1)).await,
                    }
                }
            })?);
        }
        while pair.networks.1.statistics().await?.sockets < PLACES {
            time::sleep(Duration::from_millis(1)).await;
        }
        // Whoever accepts is told now that there is no place.
        time::sleep(Duration::from_millis(20)).await;
        is_full.store(true, Ordering::Relaxed);
        for dialer in dialers {
            dialer.await?;
        }
        ensure!(!pair.there.process().is_done(), "the node has ended");
        let mut answer = Err(Error::Disconnected);
        while answer.is_err() {
            time::sleep(Duration::from_millis(10)).await;
            answer = match pair.remote().await {
                Ok(adder) => adder.call::<u64>(&Job::Add(1), PATIENCE).await,
                Err(error) => Err(error),
            };
        }
        ensure_eq!(answer, Ok(1), "afterwards");
        pair.end().await;
        Ok(())
    }
}

kernel_test! {
    /// Who monitors and is gone takes no place for ever: there are as many as before for those who come later.
    async fn monitors_of_those_who_are_gone_make_room() -> Outcome {
        let pair = Pair::start(Faults::none(), 1000).await?;
        let adder = pair.remote().await?;
        let most = Limits::default().monitors;
        let mut kept = ProcessMailbox::<RemoteDown>::new(4)?;
        let monitor = adder.monitor(&kept.address()).await?;
        for round in 0..2 * most {
            let gone = ProcessMailbox::new(1)?;
            let done = adder.monitor(&gone.address()).await;
            ensure!(done.is_ok(), "number {round} of {most}: {done:?}");
        }
        // Who is there is told.
        pair.there.process().kill();
        let told = kept.receive_within(PATIENCE).await.map_err(|_| "no word of an end")?;
        ensure!(told.is_some_and(|told| told.monitor == monitor), "another monitor told");
        pair.end().await;
        Ok(())
    }
}
