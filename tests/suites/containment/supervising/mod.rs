//! Supervisors: whom they start anew, when they give up, and how they end. What is decided is judged by what children tell and by
//! counts. No window and no healthy time in here can be missed by a slow host: they are an hour, or nothing.

mod actors;
mod failures;
mod large;
mod processes;
mod scene;
