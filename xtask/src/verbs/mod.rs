//! The verbs that only this tree has, one file each; the others are in the library.

pub mod bench;
pub mod book;
pub mod check;
pub mod new;
pub mod test;
pub mod verify;
#[cfg(test)]
mod words;
