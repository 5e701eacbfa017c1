//! Says what it hears, over TCP, at port 7, to everybody who comes. The card's driver and the network are processes of their own: a supervisor starts the driver anew
//! if it crashes, and connections go on. The boot argument `connections=N` ends it after so many.
#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

use magpie::prelude::*;
use magpie_drivers::uplink::Uplink;
use magpie_net::{Config, Error, Network, TcpStream};

magpie::entry!(echo);

const PORT: u16 = 7;
/// How many sockets there may be; how many connections may wait until they are accepted.
const SOCKETS: usize = 512;
const BACKLOG: usize = 64;

/// Connections that have ended, and what was said in them.
static ENDED: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

/// One connection: it ends when the other side has said all that it has to say.
async fn answer(mut stream: TcpStream) -> Result<(), Error> {
    let mut bytes = alloc::vec![0; 4096];
    loop {
        let count = stream.read(&mut bytes).await?;
        if count == 0 {
            return stream.close().await;
        }
        stream.write_all(&bytes[..count]).await?;
        BYTES.fetch_add(count as u64, Ordering::Relaxed);
    }
}

async fn echo() -> magpie::Result {
    let uplink = Uplink::chosen();
    let network = Network::start(Config { sockets: SOCKETS, ..uplink.config() })?;
    let carried = network.clone();
    let card = Child::process("card", move |_| {
        let network = carried.clone();
        async move { uplink.drive("card", network).await.inspect_err(|error| text!("the card: {error}")) }
    });
    let driver = Supervisor::one_for_one().child(card.within(Duration::ZERO)).start()?;

    let address = async { network.address().await };
    let (address, _) = match time::timeout(Duration::from_secs(10), address).await {
        Ok(address) => address?,
        Err(_) if driver.process().is_done() => {
            return Err(uplink.missing().into());
        }
        Err(_) => return Err("nobody gives this machine an address".into()),
    };
    let mut listener = network.listen(PORT, BACKLOG).await?;
    text!("listening at {address}:{PORT}");
    let most = machine::argument("connections").and_then(|text| text.parse().ok()).unwrap_or(u64::MAX);
    for _ in 0..most {
        let stream = listener.accept_or_wait().await?;
        let answering = sched::spawn(async move {
            let from = stream.remote();
            if let Err(error) = answer(stream).await {
                text!("{from}: {error}");
            }
            ENDED.fetch_add(1, Ordering::Relaxed);
        });
        if answering.is_err() {
            // Without memory for its process the connection was dropped, and so reset.
            ENDED.fetch_add(1, Ordering::Relaxed);
        }
    }
    while ENDED.load(Ordering::Relaxed) < most {
        time::sleep(Duration::from_millis(1)).await;
    }
    text!("{most} connections, {} bytes", BYTES.load(Ordering::Relaxed));
    Ok(())
}
