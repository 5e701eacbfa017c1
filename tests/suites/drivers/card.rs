//! A network card, whose other end is QEMU's own network: what each test of it needs, and that frames come and go.

use core::convert::Infallible;
use core::net::{Ipv4Addr, SocketAddrV4};
use core::time::Duration;

use magpie::sched::{JoinHandle, Spawn, yield_now};
use magpie::time;
use magpie_drivers::{DriverError, card};
use magpie_net::{Config, Error, Network};
use magpie_tests::{Failure, HeapExhauster, ensure, ensure_eq, kernel_test};

/// QEMU's own address there, and a port of the host's at which nobody listens.
const NOBODY: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 2, 2), 9);
/// What the card is driven as.
const NAME: &str = "tests/card";
/// For what takes milliseconds: it decides nothing but that a test ends.
const PATIENCE: Duration = Duration::from_secs(60);

/// A network, and the card that carries its frames.
pub struct Carried {
    pub network: Network,
    driver: JoinHandle<Result<Infallible, DriverError>>,
}

impl Carried {
    /// Starts both. The address comes from QEMU, over the card.
    pub async fn start() -> Result<Self, Failure> {
        let network = Network::start(Config::dhcp())?;
        let driver = Spawn::new().start(card::drive(NAME, network.clone()))?;
        let carried = Self { network, driver };
        let (address, _) = time::timeout(PATIENCE, carried.network.address()).await??;
        ensure_eq!(address, Ipv4Addr::new(10, 0, 2, 15), "the address");
        Ok(carried)
    }

    /// Asks for a connection that is refused: a frame goes, and another comes.
    pub async fn goes_and_comes(&self) -> Result<(), Failure> {
        let refused = time::timeout(PATIENCE, self.network.connect(NOBODY)).await?;
        ensure_eq!(refused.map(drop), Err(Error::Refused), "the connection");
        ensure!(!self.driver.process().is_done(), "the driver has ended");
        Ok(())
    }

    /// Ends the driver, so that the next test finds the card free.
    pub async fn end(self) {
        self.driver.process().kill();
        let _ = self.driver.await;
    }
}

kernel_test! {
    /// Frames come and go, also by a driver that another one had before.
    #[machine("virtio devices")]
    async fn frames_come_and_go() -> Outcome {
        for _ in 0..2 {
            let carried = Carried::start().await?;
            for _ in 0..10 {
                carried.goes_and_comes().await?;
            }
            carried.end().await;
        }
        Ok(())
    }
}

kernel_test! {
    /// Without memory no driver is started, and one that runs goes on: frames that there is no memory for to hand them over are kept.
    #[machine("virtio devices")]
    async fn memory_is_used_up() -> Outcome {
        let carried = Carried::start().await?;
        carried.goes_and_comes().await?;
        let other = Network::start(Config::dhcp())?;
        for _ in 0..2 {
            let mut told = 0;
            {
                let mut exhauster = HeapExhauster::everything(16);
                for _ in 0..40 {
                    // Nothing that is awaited here needs memory but what is asked for.
                    told += u32::from(carried.network.connect(NOBODY).await.map(drop) == Err(Error::OutOfMemory));
                    exhauster.take_more(16);
                    yield_now().await;
                }
            }
            ensure!(told > 0, "there was memory");
            for _ in 0..5 {
                carried.goes_and_comes().await?;
            }
        }
        carried.end().await;
        let refused = {
            let _exhauster = HeapExhauster::everything(16);
            // In this process: another one is not to be had.
            card::drive("tests/none", other.clone()).await
        };
        ensure_eq!(refused.map(drop), Err(DriverError::OutOfMemory), "a driver without memory");
        let carried = Carried::start().await?;
        carried.goes_and_comes().await?;
        carried.end().await;
        Ok(())
    }
}
