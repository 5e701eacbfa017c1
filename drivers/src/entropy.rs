//! Random numbers of the machine, by a virtio source.
//!
//! What comes is as good as the machine's own: QEMU takes it from its host. It is slow, so it is stirred into the pool of `magpie_random`, whose generators are quick.

use magpie_random::{Quality, stir};

use crate::virtio::{Device, Kind};
use crate::{DriverError, pi};

/// The standard says nothing about how many descriptors there are; QEMU has eight.
const DESCRIPTORS: usize = 8;
/// How many bytes are asked for at a time.
const MOST_BYTES: usize = 256;

/// What is fed at a time: two keys of the pool's.
const FEED_BYTES: usize = 64;

/// Stirs random bytes of the machine's, of a virtio source or the Raspberry Pi 4's [own](crate::pi::random), into the pool of `magpie_random`, whose quality is
/// [`Quality::Source`] afterwards, and leaves the source to the next. Who wants what somebody may have read of the pool's memory to become worthless does so from time to time.
///
/// ```
/// use magpie_drivers::{DriverError, entropy};
/// use magpie_random::Random;
///
/// /// Of the machine's source if it has one, else as good as there is.
/// async fn key() -> [u8; 32] {
///     let _ = entropy::feed().await;
///     let mut key = [0; 32];
///     Random::new().fill(&mut key);
///     key
/// }
/// # let _ = key();
/// ```
///
/// # Errors
/// As [`Source::open`] and [`Source::fill`]: then the pool is as it was.
pub async fn feed() -> Result<(), DriverError> {
    let mut bytes = [0; FEED_BYTES];
    match Source::open().await {
        Ok(mut source) => source.fill(&mut bytes).await?,
        Err(none @ DriverError::NoDevice(_)) => {
            let mut other = pi::random::Source::open().map_err(|error| match error {
                DriverError::NoDevice(_) => none,
                error => error,
            })?;
            other.fill(&mut bytes).await?;
        }
        Err(error) => return Err(error),
    }
    stir(&bytes, Quality::Source);
    Ok(())
}

/// A source of random numbers that this process drives.
///
/// ```
/// use magpie_drivers::DriverError;
/// use magpie_drivers::entropy::Source;
///
/// /// A seed that nobody can guess.
/// async fn seed() -> Result<[u8; 32], DriverError> {
///     let mut seed = [0; 32];
///     Source::open().await?.fill(&mut seed).await?;
///     Ok(seed)
/// }
/// # let _ = seed();
/// ```
pub struct Source {
    device: Device<DESCRIPTORS>,
}

impl Source {
    /// Takes the first source that nobody drives. It is this process's, and ends with it.
    ///
    /// # Errors
    /// There is none, or it cannot be driven.
    pub async fn open() -> Result<Self, DriverError> {
        let mut device = Device::open(Kind::Entropy, 0).await?;
        device.add_ring(1, MOST_BYTES)?;
        device.start();
        Ok(Self { device })
    }

    /// Fills this with random bytes, and waits for them.
    ///
    /// # Errors
    /// The device says that it has given what it has not, or gives nothing; or it is not this process's any more.
    pub async fn fill(&mut self, bytes: &mut [u8]) -> Result<(), DriverError> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let wanted = rest.len().min(MOST_BYTES);
            if !self.device.submit(0, 0, [0..0, 0..0], [0..wanted, 0..0]) {
                return Err(DriverError::Faulty("its queue is full of nothing"));
            }
            let given = loop {
                if let Some((_, given)) = self.device.completed(0)? {
                    break given;
                }
                self.device.interrupted().await?;
            };
            if given == 0 {
                return Err(DriverError::Faulty("it gives no random numbers"));
            }
            let (filled, left) = rest.split_at_mut(given);
            self.device.ring(0).read(0, 0, filled);
            rest = left;
        }
        Ok(())
    }
}
