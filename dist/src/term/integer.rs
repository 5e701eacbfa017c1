//! Whole numbers of any size: as they lie in a frame, and to keep. Arithmetic is not their matter.

use alloc::vec::Vec;

use super::error::OutOfMemory;

/// A whole number as it lies in a frame.
///
/// ```
/// use magpie_dist::term::Reader;
/// let number = Reader::new(&[110, 2, 1, 0, 1]).integer()?;
/// assert_eq!(number.to_i128(), Some(-256));
/// assert!(number.is_negative());
/// assert_eq!(number.to_u128(), None);
/// assert_eq!(number.magnitude().collect::<Vec<u8>>(), [0, 1]);
/// # Ok::<(), magpie_dist::term::DecodeError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Integer<'a>(Form<'a>);

#[derive(Clone, Copy, Debug)]
enum Form<'a> {
    Small(i64),
    /// Of sign and magnitude, least byte first; without zeros at the far end.
    Big(bool, &'a [u8]),
}

impl<'a> Integer<'a> {
    pub(super) const fn small(value: i64) -> Self {
        Self(Form::Small(value))
    }

    /// Of sign and magnitude, least byte first.
    pub fn big(is_negative: bool, magnitude: &'a [u8]) -> Self {
        Self(Form::Big(is_negative, trimmed(magnitude)))
    }

    /// Whether it is below zero.
    pub const fn is_negative(&self) -> bool {
        match self.0 {
            Form::Small(value) => value < 0,
            Form::Big(is_negative, magnitude) => is_negative && !magnitude.is_empty(),
        }
    }

    /// The bytes of its magnitude, the least first, without zeros at the far end.
    pub fn magnitude(&self) -> impl Iterator<Item = u8> + use<'a> {
        let (small, big) = match self.0 {
            Form::Small(value) => (value.unsigned_abs(), &[][..]),
            Form::Big(_, magnitude) => (0, magnitude),
        };
        let count = (u64::BITS - small.leading_zeros()).div_ceil(8) as usize;
        small.to_le_bytes().into_iter().take(count).chain(big.iter().copied())
    }

    /// Its value, if that type has room for it.
    pub fn to_i128(&self) -> Option<i128> {
        match self.0 {
            Form::Small(value) => Some(value.into()),
            Form::Big(false, magnitude) => unsigned(magnitude)?.try_into().ok(),
            Form::Big(true, magnitude) => 0i128.checked_sub_unsigned(unsigned(magnitude)?),
        }
    }

    /// Its value, if that type has room for it.
    pub fn to_u128(&self) -> Option<u128> {
        match self.0 {
            Form::Small(value) => value.try_into().ok(),
            Form::Big(true, magnitude) => magnitude.is_empty().then_some(0),
            Form::Big(false, magnitude) => unsigned(magnitude),
        }
    }

    /// One to keep.
    ///
    /// # Errors
    /// Without memory.
    pub fn to_big(&self) -> Result<BigInt, OutOfMemory> {
        let mut magnitude = Vec::new();
        let most = match self.0 {
            Form::Small(_) => 8,
            Form::Big(_, bytes) => bytes.len(),
        };
        magnitude.try_reserve_exact(most)?;
        magnitude.extend(self.magnitude());
        Ok(BigInt { is_negative: self.is_negative(), magnitude })
    }
}

impl PartialEq for Integer<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.is_negative() == other.is_negative() && self.magnitude().eq(other.magnitude())
    }
}

impl Eq for Integer<'_> {}

/// Without zeros at the far end.
fn trimmed(magnitude: &[u8]) -> &[u8] {
    let count = magnitude.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    &magnitude[..count]
}

fn unsigned(magnitude: &[u8]) -> Option<u128> {
    let mut bytes = [0; 16];
    bytes.get_mut(..magnitude.len())?.copy_from_slice(magnitude);
    Some(u128::from_le_bytes(bytes))
}

/// A whole number of any size, to keep and to send. It is sign and magnitude; who calculates with it takes a crate for that.
///
/// ```
/// use magpie_dist::term::{BigInt, TermBuf};
/// let number = BigInt::new(false, &[0xff; 40])?;
/// let back: BigInt = TermBuf::of(&number, 100)?.as_term().decode()?;
/// assert_eq!(back, number);
/// assert_eq!((back.is_negative(), back.magnitude()), (false, &[0xff; 40][..]));
/// assert_eq!(BigInt::new(true, &[5, 0, 0])?.as_integer().to_i128(), Some(-5));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct BigInt {
    is_negative: bool,
    magnitude: Vec<u8>,
}

impl BigInt {
    /// Of its sign and its magnitude, least byte first.
    ///
    /// # Errors
    /// Without memory.
    pub fn new(is_negative: bool, magnitude: &[u8]) -> Result<Self, OutOfMemory> {
        Integer::big(is_negative, magnitude).to_big()
    }

    /// Whether it is below zero.
    pub const fn is_negative(&self) -> bool {
        self.is_negative
    }

    /// Its magnitude, least byte first, without zeros at the far end.
    pub fn magnitude(&self) -> &[u8] {
        &self.magnitude
    }

    /// The same, borrowed.
    pub fn as_integer(&self) -> Integer<'_> {
        Integer::big(self.is_negative, &self.magnitude)
    }
}
