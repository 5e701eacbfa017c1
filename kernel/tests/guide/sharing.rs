//! Data that several processes change in place.

use super::Result;

use magpie::mutex::{Mutex, Poisoned};
use magpie::sched;

static TOTAL: Mutex<u64> = Mutex::new(0);

async fn add(number: u64) -> std::result::Result<(), Poisoned> {
    let mut total = TOTAL.lock().await?;
    *total += number;
    Ok(())
}

pub async fn chapter() -> Result {
    let adding: Vec<_> = (1..=4).map(|number| sched::spawn(add(number))).collect();
    for adding in adding {
        adding?.await??;
    }
    assert_eq!(*TOTAL.lock().await?, 10);
    Ok(())
}
