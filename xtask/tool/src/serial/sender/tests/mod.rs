//! The host's half of the protocol against the loader's own half, over a line that loses, damages and doubles bytes, with a
//! board that is reset. Time is the rig's, so nothing here waits.

mod boards;
mod hand_over;
mod lines;
mod rig;
