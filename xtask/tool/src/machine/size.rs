//! Memory sizes as people write them: `512M`, `2G`.

use std::fmt;
use std::str::FromStr;

/// A size in bytes, always whole mebibytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size {
    mebibytes: u64,
}

impl Size {
    /// So many mebibytes.
    pub const fn from_mebibytes(mebibytes: u64) -> Self {
        Self { mebibytes }
    }

    /// In bytes.
    pub const fn bytes(self) -> u64 {
        self.mebibytes << 20
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.mebibytes.is_multiple_of(1024) && self.mebibytes > 0 {
            write!(f, "{}G", self.mebibytes / 1024)
        } else {
            write!(f, "{}M", self.mebibytes)
        }
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is no memory size; write it like 512M or 2G");
        let upper = text.to_ascii_uppercase();
        let upper = upper.strip_suffix("IB").or_else(|| upper.strip_suffix('B')).unwrap_or(&upper);
        let (digits, unit) = match upper.strip_suffix('G') {
            Some(digits) => (digits, 1024),
            None => (upper.strip_suffix('M').unwrap_or(upper), 1),
        };
        let count: u64 = digits.parse().map_err(|_| wrong())?;
        let mebibytes = count.checked_mul(unit).filter(|&mebibytes| mebibytes < 1 << 40).ok_or_else(wrong)?;
        Ok(Self { mebibytes })
    }
}

#[cfg(test)]
mod tests {
    use super::Size;

    #[test]
    fn reads_and_writes_sizes() {
        for (text, shown) in
            [("512M", "512M"), ("2G", "2G"), ("2048", "2G"), ("1536m", "1536M"), ("1GiB", "1G")]
        {
            assert_eq!(text.parse::<Size>().map(|size| size.to_string()), Ok(shown.to_owned()));
        }
        assert_eq!("1G".parse::<Size>().map(Size::bytes), Ok(1 << 30));
    }

    #[test]
    fn refuses_what_is_no_size() {
        for text in ["", "M", "lots", "-1M", "99999999999999999G", "1.5G"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
    }
}
