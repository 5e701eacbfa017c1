//! The speed of a serial port: what a PL011 must divide its clock by.

/// Bits in a second, on every board.
pub const BAUD: u32 = 115_200;

/// A PL011's divisor: the clock is divided by `whole + fraction / 64`, and 16 of the results make one bit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Divisor {
    /// For the register `IBRD`, 1 to 65,535.
    pub whole: u32,
    /// For the register `FBRD`, 0 to 63.
    pub fraction: u32,
}

/// The divisor for a clock in hertz, rounded to the nearest; `None` if the clock is too slow or too fast for the
/// speed.
pub fn divisor(clock_hertz: u32, baud: u32) -> Option<Divisor> {
    let (clock, baud) = (u64::from(clock_hertz), u64::from(baud));
    let sixty_fourths = (clock * 64 + baud * 8).checked_div(baud * 16)?;
    let (whole, fraction) = (sixty_fourths / 64, sixty_fourths % 64);
    (1..=0xffff).contains(&whole).then_some(Divisor { whole: whole as u32, fraction: fraction as u32 })
}

#[cfg(test)]
mod tests {
    use super::{BAUD, Divisor, divisor};

    #[test]
    fn known_clocks() {
        // The manual's own example (Arm DDI 0183, 3.3.6): 4 MHz at 230,400 is 1 and 5/64.
        assert_eq!(divisor(4_000_000, 230_400), Some(Divisor { whole: 1, fraction: 5 }));
        assert_eq!(divisor(48_000_000, BAUD), Some(Divisor { whole: 26, fraction: 3 }));
        assert_eq!(divisor(24_000_000, BAUD), Some(Divisor { whole: 13, fraction: 1 }));
    }

    #[test]
    fn a_fraction_that_rounds_up_to_one_carries() {
        // 31.999 sixteenths of a bit, as 32 and 0/64.
        assert_eq!(divisor(58_982_000, BAUD), Some(Divisor { whole: 32, fraction: 0 }));
    }

    #[test]
    fn impossible_speeds_are_refused() {
        assert_eq!(divisor(1_000_000, BAUD), None);
        assert_eq!(divisor(u32::MAX, 300), None);
        assert_eq!(divisor(48_000_000, 0), None);
    }

    #[test]
    fn the_speed_is_met_within_one_per_cent() {
        for clock in (2_000_000..100_000_000).step_by(77_777) {
            let found = divisor(clock, BAUD).expect("fast enough");
            let divided = f64::from(found.whole) + f64::from(found.fraction) / 64.0;
            let speed = f64::from(clock) / 16.0 / divided;
            assert!((speed / f64::from(BAUD) - 1.0).abs() < 0.01, "{clock} Hz gives {speed}");
        }
    }
}
