//! Shares of time, and what the cores are loaded with.

use super::Result;

use magpie::sched::{self, CpuShare, Spawn};
use magpie::{text, time};
use std::time::Duration;

pub async fn chapter() -> Result {
    let share = CpuShare::percent(20)?;
    let scan = share.start(Spawn::new(), async { (1..=1000_u64).sum::<u64>() })?;
    assert_eq!(scan.await?, 500_500);
    assert!(share.usage().total > Duration::ZERO);

    let mut monitor = sched::LoadMonitor::new()?;
    time::sleep(Duration::from_millis(100)).await;
    text!("{}", monitor.sample()?);
    Ok(())
}
