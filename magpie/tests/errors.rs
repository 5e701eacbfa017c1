//! What the compiler and the linker say to natural mistakes, compared with what is kept beside each sample in `errors/`. The toolchain is
//! pinned, so it stays the same until somebody changes that, or the kernel.
//!
//!     cargo test -p magpie --test errors                  # compares
//!     MAGPIE_RENEW=1 cargo test -p magpie --test errors   # writes what is said now; read the difference
//!
//! A sample is compiled for the kernel's target by rustc alone, against the libraries that cargo has built. Lines that begin with
//! `//@` ask for more: `link` links it as an image, `flags` are handed to rustc.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "aarch64-unknown-none";

/// What cargo has built.
struct Built {
    /// The library `magpie`.
    library: PathBuf,
    /// Where those are that it uses, and macros.
    libraries: [PathBuf; 2],
    /// Where `defmt`'s linker script is.
    scripts: PathBuf,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the workspace exists")
}

/// The value of a key, of text, in a line of cargo's report.
fn value<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    line.split_once(&format!("\"{key}\":\""))?.1.split('"').next()
}

fn build() -> Built {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--package", "magpie", "--lib", "--target", TARGET, "--message-format", "json"]);
    let built = command.current_dir(root()).output().expect("cargo starts");
    let report = String::from_utf8_lossy(&built.stdout);
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let is_facade = |line: &&str| {
        value(line, "reason") == Some("compiler-artifact")
            && value(line, "manifest_path").is_some_and(|path| path.ends_with("/magpie/Cargo.toml"))
    };
    let library = report.lines().find(is_facade).and_then(|line| {
        let files = line.split_once("\"filenames\":[")?.1.split(']').next()?;
        files.split(',').map(|file| file.trim_matches('"')).find(|file| file.ends_with(".rlib"))
    });
    let library = PathBuf::from(library.expect("cargo names the library"));
    let is_defmt = |line: &&str| {
        value(line, "reason") == Some("build-script-executed")
            && value(line, "out_dir").is_some_and(|path| Path::new(path).join("defmt.x").exists())
    };
    let scripts = report.lines().find(is_defmt).and_then(|line| value(line, "out_dir"));
    // cargo puts a link there; what is used is beside it, and macros are where what runs on the host is.
    let profile = library.parent().expect("it is in a folder");
    let (target, host) = (profile.join("deps"), profile.join("../../debug/deps"));
    let scripts = scripts.expect("defmt has a linker script").into();
    Built { libraries: [target, host], library, scripts }
}

/// What is said to a sample: the same on every machine.
fn said(built: &Built, sample: &Path, scratch: &Path) -> String {
    let source = fs::read_to_string(sample).expect("the sample can be read");
    let asked = || source.lines().filter_map(|line| line.strip_prefix("//@ "));
    let mut command = Command::new("rustc");
    command.current_dir(root()).args(["--edition", "2024", "--target", TARGET, "--color", "never"]);
    command
        .args(["-Cpanic=abort", "--diagnostic-width", "120"])
        .env_remove("RUSTFLAGS")
        .env_remove("RUST_BACKTRACE")
        .env("CARGO_CRATE_NAME", "sample");
    command.arg("--extern").arg(format!("magpie={}", built.library.display()));
    for folder in &built.libraries {
        command.arg("-L").arg(format!("dependency={}", folder.display()));
    }
    if asked().any(|word| word == "link") {
        command.args([
            "-Copt-level=1",
            "-Clink-arg=-Tlinker.ld",
            "-Clink-arg=-Tdefmt.x",
            "-Clink-arg=-znostart-stop-gc",
        ]);
        command.arg("-L").arg(&built.scripts).arg("-o").arg(scratch.join("image"));
    } else {
        command.arg("--emit=metadata").arg("-o").arg(scratch.join("metadata"));
    }
    for flags in asked().filter_map(|words| words.strip_prefix("flags ")) {
        command.args(flags.split(' '));
    }
    let name = sample.strip_prefix(root()).expect("it is in the workspace");
    let output = command.arg(name).output().expect("rustc starts");
    assert!(!output.status.success(), "{} compiles", name.display());
    normalised(&String::from_utf8_lossy(&output.stderr))
}

/// Without what differs between machines, and where in the kernel's sources it is: paths, the linker's command line, numbers of lines that
/// are not the sample's, and the width that these need.
fn normalised(text: &str) -> String {
    let root = root();
    let (mut said, mut is_samples) = (String::new(), true);
    for line in text.lines() {
        let words = line.trim_start();
        if words.starts_with("= note:  \"") || words.starts_with("= note: some arguments are omitted") {
            continue;
        }
        let gutter = words.trim_start_matches(|character: char| character.is_ascii_digit());
        let number = &words[..words.len() - gutter.len()];
        let line = if let Some(place) = words.strip_prefix("--> ").or_else(|| words.strip_prefix("::: ")) {
            is_samples = place.starts_with("magpie/tests/errors/") && !place.contains("..");
            let place = if is_samples { place } else { place.split(':').next().unwrap_or(place) };
            format!("   --> {place}")
        } else if let Some(code) = gutter.trim_start().strip_prefix('|') {
            format!("{:>4} |{code}", if is_samples { number } else { "" })
        } else if line != words && words.starts_with("= ") {
            format!("     {words}")
        } else {
            line.to_owned()
        };
        said.push_str(line.replace(&*root.to_string_lossy(), "$ROOT").trim_end());
        said.push('\n');
    }
    said
}

#[test]
fn natural_mistakes_are_explained() {
    let built = build();
    let folder = root().join("magpie/tests/errors");
    let renew = std::env::var_os("MAGPIE_RENEW").is_some();
    let scratch = std::env::temp_dir().join(format!("magpie-errors-{}", std::process::id()));
    fs::create_dir_all(&scratch).expect("there is room for what is compiled");
    let mut samples: Vec<PathBuf> = fs::read_dir(&folder)
        .expect("the samples exist")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    samples.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
    samples.sort();
    assert!(samples.len() >= 10, "only {} samples were found", samples.len());
    let mut different = Vec::new();
    for sample in samples {
        let said = said(&built, &sample, &scratch);
        let kept = sample.with_extension("stderr");
        if renew {
            fs::write(&kept, &said).expect("what is said can be written");
        } else if fs::read_to_string(&kept).unwrap_or_default() != said {
            different.push(format!("{}: now it is\n{said}", kept.display()));
        }
    }
    let _ = fs::remove_dir_all(&scratch);
    assert!(different.is_empty(), "{}\nMAGPIE_RENEW=1 writes what is said now", different.join("\n"));
}
