//! The console, whose other end is nobody: the end-to-end case `console` has somebody there.

use alloc::vec;
use core::time::Duration;

use magpie::{sched, time};
use magpie_drivers::DriverError;
use magpie_drivers::console::Console;
use magpie_tests::{HANGS_AFTER, amount, ensure, ensure_eq, kernel_test};

kernel_test! {
    /// All of it goes, and nothing comes.
    #[machine("virtio devices")]
    async fn what_is_said_goes() -> Outcome {
        let mut console = Console::open().await?;
        let bytes = vec![b'x'; 100_000];
        time::background_timeout(HANGS_AFTER, console.write_all(&bytes)).await.map_err(|_| "it does not take it")??;
        console.write_all(&[]).await?;
        let mut none = [0; 8];
        ensure_eq!(console.read(&mut none[..0]).await, Ok(0), "without room");
        let come = time::timeout(Duration::from_millis(5), console.read(&mut none)).await;
        ensure!(come.is_err(), "something came: {come:?}");
        Ok(())
    }
}

kernel_test! {
    /// Whoever drives it is killed in the middle of it, again and again; the next one has it.
    #[machine("virtio devices")]
    async fn it_outlives_its_drivers() -> Outcome {
        for round in 0..amount("rounds", 30) {
            let driver = sched::spawn(async move {
                let mut console = Console::open().await?;
                loop {
                    console.write_all(&[b'y'; 3000]).await?;
                }
                #[expect(unreachable_code, reason = "it says what the process returns")]
                Ok::<(), DriverError>(())
            })?;
            time::sleep(Duration::from_micros(200 * (round % 10))).await;
            driver.process().kill();
            ensure!(driver.await.is_err(), "it ended by itself");
        }
        let mut console = Console::open().await?;
        ensure_eq!(console.write_all(b"still there").await, Ok(()), "the next one");
        Ok(())
    }
}

kernel_test! {
    /// There is one, and somebody has it.
    #[machine("virtio devices")]
    async fn it_is_one_processs() -> Outcome {
        let _console = Console::open().await?;
        let other = Console::open().await.map(drop);
        ensure!(matches!(other, Err(DriverError::NoDevice(_))), "{other:?}");
        Ok(())
    }
}
