//! Random numbers of the machine.

use magpie::sched::{Spawn, yield_now};
use magpie_drivers::DriverError;
use magpie_drivers::entropy::{Source, feed};
use magpie_random::{Quality, Random};
use magpie_tests::{Failure, ensure, kernel_test};

async fn numbers() -> Result<[u8; 1000], DriverError> {
    let mut bytes = [0; 1000];
    Source::open().await?.fill(&mut bytes).await?;
    Ok(bytes)
}

kernel_test! {
    /// They differ from one another, whoever drives the source; and each byte comes about as often as the others.
    #[machine("virtio devices")]
    async fn numbers_differ() -> Outcome {
        let first = numbers().await.map_err(Failure::from)?;
        let second = Spawn::new().start(numbers())?.await?.map_err(Failure::from)?;
        ensure!(first != second, "twice the same numbers");
        let ones: u32 = first.iter().chain(&second).map(|byte| byte.count_ones()).sum();
        // 16,000 bits: 8,000, and a standard deviation of 63.
        ensure!((7_400..8_600).contains(&ones), "{ones} of 16000 bits are ones");
        Ok(())
    }
}

kernel_test! {
    /// One at a time has it; when that one has gone, or has crashed, the next.
    #[machine("virtio devices")]
    async fn one_at_a_time_has_it() -> Outcome {
        let source = Source::open().await.map_err(Failure::from)?;
        let refused = Spawn::new().start(numbers())?.await?;
        ensure!(matches!(refused, Err(DriverError::NoDevice(_))), "{refused:?}");
        drop(source);
        numbers().await.map_err(Failure::from)?;
        for _ in 0..20 {
            let crashes = Spawn::new().start(async {
                let mut source = Source::open().await?;
                source.fill(&mut [0; 300]).await?;
                if source.fill(&mut [0; 1]).await.is_ok() {
                    panic!("on purpose");
                }
                Ok::<(), DriverError>(())
            })?;
            ensure!(crashes.await.is_err(), "it has not crashed");
        }
        numbers().await.map_err(Failure::from)?;
        Ok(())
    }
}

kernel_test! {
    /// A driver that is killed again and again while it works leaves the device to the next, and no memory behind.
    #[machine("virtio devices")]
    async fn a_killed_driver_leaves_it_to_the_next() -> Outcome {
        for _ in 0..50 {
            let drives = async || -> Result<(), DriverError> {
                let mut source = Source::open().await?;
                loop {
                    source.fill(&mut [0; 200]).await?;
                }
            };
            let driver = Spawn::new().start(drives())?;
            yield_now().await;
            driver.process().kill();
            ensure!(driver.await.is_err(), "it was not killed");
        }
        numbers().await.map_err(Failure::from)?;
        Ok(())
    }
}

kernel_test! {
    /// The machine's numbers go into the pool: generators that are made or renewed afterwards are as good, and the source is free again.
    #[machine("virtio devices")]
    async fn the_pool_is_fed() -> Outcome {
        let mut before = Random::new();
        let source = Source::open().await.map_err(Failure::from)?;
        let refused = Spawn::new().start(feed())?.await?;
        ensure!(matches!(refused, Err(DriverError::NoDevice(_))), "{refused:?}");
        drop(source);
        for _ in 0..3 {
            feed().await.map_err(Failure::from)?;
        }
        ensure!(Random::at_least(Quality::Source).is_ok(), "{:?}", magpie_random::quality());
        let own = before.quality();
        ensure!(own < Quality::Source || own == magpie_random::quality(), "{own:?} before it was fed");
        before.renew();
        ensure!(before.quality() == Quality::Source, "{before:?} after it was renewed");
        Ok(())
    }
}
