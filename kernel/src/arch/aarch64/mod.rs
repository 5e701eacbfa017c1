//! The AArch64 back end.
