//! The date of a card's files: when the image is made, or what `SOURCE_DATE_EPOCH` says, so that two images can be the
//! same. See <https://reproducible-builds.org/specs/source-date-epoch/>.

use crate::failure::usage;
use anyhow::Result;
use chrono::{DateTime, Datelike, Timelike, Utc};
use fatfs::{Date, Time, TimeProvider};
use std::ffi::OsStr;

/// The years that FAT can have.
const YEARS: std::ops::RangeInclusive<i32> = 1980..=2107;

/// A moment, in UTC: FAT knows no zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment(fatfs::DateTime);

impl Moment {
    /// The date for what is made now.
    pub fn now() -> Result<Self> {
        match std::env::var_os("SOURCE_DATE_EPOCH") {
            Some(given) => Self::given(&given),
            None => Ok(Self::of(Utc::now())),
        }
    }

    fn given(seconds: &OsStr) -> Result<Self> {
        let moment = seconds.to_str().and_then(|text| text.parse().ok());
        let moment = moment.and_then(|seconds| DateTime::from_timestamp(seconds, 0)).ok_or_else(|| {
            usage(format!(
                "SOURCE_DATE_EPOCH={} is no date: give seconds since 1970, or none",
                seconds.to_string_lossy()
            ))
        })?;
        Ok(Self::of(moment))
    }

    fn of(moment: DateTime<Utc>) -> Self {
        let year = moment.year().clamp(*YEARS.start(), *YEARS.end()) as u16;
        let date = Date { year, month: moment.month() as u16, day: moment.day() as u16 };
        let (hour, minute, second) = (moment.hour(), moment.minute(), moment.second());
        let time = Time { hour: hour as u16, min: minute as u16, sec: second as u16, millis: 0 };
        Self(fatfs::DateTime { date, time })
    }

    /// For the file system, which wants one for good.
    pub fn provider(self) -> &'static dyn TimeProvider {
        Box::leak(Box::new(self))
    }
}

impl TimeProvider for Moment {
    fn get_current_date(&self) -> Date {
        self.0.date
    }

    fn get_current_date_time(&self) -> fatfs::DateTime {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::Moment;
    use crate::failure::{USAGE, status_of};
    use std::ffi::OsStr;

    fn date(seconds: &str) -> (u16, u16, u16, u16) {
        let moment = Moment::given(OsStr::new(seconds)).unwrap().0;
        (moment.date.year, moment.date.month, moment.date.day, moment.time.hour)
    }

    #[test]
    fn a_date_may_be_given() {
        assert_eq!(date("1795305600"), (2026, 11, 22, 0));
        // What FAT cannot have is as near to it as can be.
        assert_eq!(date("0").0, 1980);
        assert_eq!(date("9999999999").0, 2107);
    }

    #[test]
    fn what_is_no_date_is_refused() {
        for given in ["", "today", "-", "99999999999999999999"] {
            assert_eq!(status_of(&Moment::given(OsStr::new(given)).unwrap_err()), USAGE, "{given}");
        }
    }
}
