//! What the jobs of earlier runs took, kept in a file of the target folder. It is a help, no more: what cannot be
//! read or written is as if it were not there.

use super::estimate::Known;
use crate::build::write_whole;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Reads the file.
pub fn load(path: &Path) -> Known {
    fs::read(path).map(|bytes| parse(&bytes)).unwrap_or_default()
}

/// Adds what this run has shown. Jobs that were not run this time stay as they were.
pub fn save(path: &Path, done: &BTreeMap<String, f64>, pace: Option<f64>) {
    let mut known = load(path);
    known.seconds.extend(done.iter().map(|(job, seconds)| (job.clone(), *seconds)));
    known.pace = pace.or(known.pace);
    // See above.
    let _ = write_whole(path, write(&known).as_bytes());
}

fn parse(bytes: &[u8]) -> Known {
    let file: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let jobs = file["seconds"].as_object().into_iter().flatten();
    let is_sane = |seconds: &f64| seconds.is_finite() && *seconds >= 0.0;
    Known {
        seconds: jobs
            .filter_map(|(job, seconds)| Some((job.clone(), seconds.as_f64().filter(is_sane)?)))
            .collect(),
        pace: file["pace"].as_f64().filter(is_sane),
    }
}

fn write(known: &Known) -> String {
    let tenths = |seconds: f64| (seconds * 10.0).round() / 10.0;
    let jobs = known.seconds.iter().map(|(job, seconds)| (job.clone(), json!(tenths(*seconds))));
    let mut file = Map::from_iter([("seconds".to_owned(), Value::Object(jobs.collect()))]);
    if let Some(pace) = known.pace {
        file.insert("pace".into(), json!(pace));
    }
    Value::Object(file).to_string()
}

#[cfg(test)]
mod tests {
    use super::{Known, parse, write};

    #[test]
    fn what_is_written_is_read() {
        let seconds = [("kernel sched, 4 cores".to_owned(), 1.5), ("e2e \"odd\"".to_owned(), 0.2)];
        let known = Known { seconds: seconds.into(), pace: Some(0.75) };
        assert_eq!(parse(write(&known).as_bytes()), known);
    }

    #[test]
    fn nonsense_is_nothing() {
        assert_eq!(parse(b"{"), Known::default());
        assert_eq!(parse(b"[1]"), Known::default());
        assert_eq!(parse(br#"{"seconds": {"a": -1, "b": "x"}, "pace": null}"#), Known::default());
    }
}
