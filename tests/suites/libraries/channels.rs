//! `embassy-sync`: channels, signals and a mutex, over the kernel's critical section.

use alloc::vec::Vec;
use core::time::Duration;

use embassy_sync::blocking_mutex::raw::CriticalSectionRawMutex;
use embassy_sync::channel::Channel;
use embassy_sync::mutex::Mutex;
use embassy_sync::signal::Signal;
use magpie::arch::CoreId;
use magpie::sched::{self, Spawn};
use magpie::{machine, time};
use magpie_tests::{amount, ensure_eq, kernel_test};

static READINGS: Channel<CriticalSectionRawMutex, u64, 4> = Channel::new();

kernel_test! {
    async fn a_channel_connects_processes() -> Outcome {
        let sensor = sched::spawn(async {
            for reading in 0..1_000 {
                // Waits while four are under way.
                READINGS.send(reading).await;
            }
        })?;
        for expected in 0..1_000 {
            ensure_eq!(READINGS.receive().await, expected, "a reading");
        }
        sensor.await?;
        Ok(())
    }
}

kernel_test! {
    /// From all cores to all cores, with four places.
    async fn nothing_is_lost_between_many() -> Outcome {
        static CHANNEL: Channel<CriticalSectionRawMutex, u64, 4> = Channel::new();
        let each = amount("work", 2_000);
        let cores: Vec<CoreId> = (0..machine::cores()).filter_map(CoreId::new).collect();
        let (mut senders, mut receivers) = (Vec::new(), Vec::new());
        for &core in &cores {
            senders.push(Spawn::new().pinned(core).start(async move {
                for number in 1..=each {
                    CHANNEL.send(number).await;
                }
            })?);
            receivers.push(Spawn::new().pinned(core).start(async move {
                let mut sum = 0;
                for _ in 0..each {
                    sum += CHANNEL.receive().await;
                }
                sum
            })?);
        }
        let mut sum = 0;
        for sender in senders {
            sender.await?;
        }
        for receiver in receivers {
            sum += receiver.await?;
        }
        ensure_eq!(sum, cores.len() as u64 * each * (each + 1) / 2, "the sum of what was received");
        ensure_eq!(CHANNEL.len(), 0, "what is left");
        Ok(())
    }
}

kernel_test! {
    async fn a_signal_wakes_who_waits() -> Outcome {
        static SIGNAL: Signal<CriticalSectionRawMutex, u32> = Signal::new();
        let waits = sched::spawn(SIGNAL.wait())?;
        time::sleep(Duration::from_millis(1)).await;
        SIGNAL.signal(7);
        ensure_eq!(waits.await?, 7, "the signal");
        Ok(())
    }
}

kernel_test! {
    async fn a_mutex_is_held_across_waits() -> Outcome {
        static SHARED: Mutex<CriticalSectionRawMutex, u64> = Mutex::new(0);
        let begin = *SHARED.lock().await;
        let mut processes = Vec::new();
        for _ in 0..8 {
            processes.push(sched::spawn(async {
                for _ in 0..100 {
                    let mut shared = SHARED.lock().await;
                    let before = *shared;
                    sched::yield_now().await;
                    *shared = before + 1;
                }
            })?);
        }
        for process in processes {
            process.await?;
        }
        ensure_eq!(*SHARED.lock().await, begin + 800, "changes");
        Ok(())
    }
}
