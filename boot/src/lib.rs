//! Boots a Magpie image. Boards live here and nowhere else.
#![no_std]
