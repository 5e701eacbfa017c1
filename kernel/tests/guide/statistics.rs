//! What the system counts.

use super::Result;

use magpie::stats;

pub async fn chapter() -> Result {
    let handled = stats::worker_total(|worker| worker.messages_handled.get());
    let gulps = stats::worker_total(|worker| worker.gulps.get());
    let missed = stats::worker_total(|worker| worker.missed_gulps.get());
    println!("{handled} messages in {gulps} gulps, {missed} missed");
    assert!(handled >= gulps && gulps > 0);
    Ok(())
}
