//! The network over a serial line, at whose other end the host tool is: that frames come and go, and who is refused. The suite `pi` has this file, too: there the port is the mini UART.

use core::convert::Infallible;
use core::net::{Ipv4Addr, SocketAddrV4};
use core::time::Duration;

use magpie::sched::{JoinHandle, Spawn, yield_now};
use magpie::time;
use magpie_drivers::uplink::Uplink;
use magpie_drivers::{DriverError, serial};
use magpie_net::{Error, Network};
use magpie_tests::{Failure, HeapExhauster, ensure, ensure_eq, kernel_test};

/// The other end's address, and a port of the host's at which nobody listens.
const NOBODY: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 2, 2), 9);
const NAME: &str = "tests/line";
/// For what takes milliseconds: it decides nothing but that a test ends.
const PATIENCE: Duration = Duration::from_secs(60);

/// A network, and the line that carries its packets.
struct Carried {
    network: Network,
    driver: JoinHandle<Result<Infallible, DriverError>>,
}

fn network() -> Result<Network, Failure> {
    Ok(Network::start(Uplink::Line { baud: serial::BAUD }.config())?)
}

impl Carried {
    fn start() -> Result<Self, Failure> {
        let network = network()?;
        let driver = Spawn::new().start(serial::drive(NAME, network.clone()))?;
        Ok(Self { network, driver })
    }

    /// Asks for a connection that is refused: a packet goes, and another comes.
    async fn goes_and_comes(&self) -> Result<(), Failure> {
        let refused = time::timeout(PATIENCE, self.network.connect(NOBODY)).await?;
        ensure_eq!(refused.map(drop), Err(Error::Refused), "the connection");
        ensure!(!self.driver.process().is_done(), "the driver has ended");
        Ok(())
    }

    /// Ends the driver, so that the next test finds the port free.
    async fn end(self) {
        self.driver.process().kill();
        let _ = self.driver.await;
    }
}

kernel_test! {
    /// Packets come and go, also by a driver that another one had before, and the network that lost one goes on with the next.
    #[machine("a serial line with a network")]
    async fn packets_come_and_go() -> Outcome {
        for _ in 0..3 {
            let carried = Carried::start()?;
            for _ in 0..10 {
                carried.goes_and_comes().await?;
            }
            let Carried { network, driver } = carried;
            driver.process().kill();
            let _ = driver.await;
            let driver = Spawn::new().start(serial::drive(NAME, network.clone()))?;
            let carried = Carried { network, driver };
            carried.goes_and_comes().await?;
            carried.end().await;
        }
        Ok(())
    }
}

kernel_test! {
    /// The console is nobody's, a port that is driven is its driver's, and no port sends at every speed.
    #[machine("a serial line with a network")]
    async fn who_cannot_drive_is_told_so() -> Outcome {
        for baud in [0, u32::MAX] {
            let refused = serial::drive_at("tests/none", network()?, baud).await;
            ensure_eq!(refused.map(drop), Err(DriverError::NoSpeed(baud)), "a speed that cannot be");
        }
        let carried = Carried::start()?;
        carried.goes_and_comes().await?;
        let other = serial::drive("tests/none", network()?).await;
        let none = DriverError::NoDevice("serial port beside the console's");
        ensure_eq!(other.map(drop), Err(none), "a second driver");
        carried.goes_and_comes().await?;
        carried.end().await;
        Ok(())
    }
}

kernel_test! {
    /// Without memory no driver is started, and one that runs goes on.
    #[machine("a serial line with a network")]
    async fn memory_is_used_up_beside_a_line() -> Outcome {
        let carried = Carried::start()?;
        carried.goes_and_comes().await?;
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
        carried.end().await;
        let other = network()?;
        let refused = {
            let _exhauster = HeapExhauster::everything(16);
            // In this process: another one is not to be had.
            serial::drive("tests/none", other).await
        };
        ensure!(refused.is_err(), "a driver without memory");
        let carried = Carried::start()?;
        carried.goes_and_comes().await?;
        carried.end().await;
        Ok(())
    }
}
