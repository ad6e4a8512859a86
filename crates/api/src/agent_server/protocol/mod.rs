//! The thread protocol: a thread as one stream of events over all its runs, and commands that move it.
//!
//! Commands are posted to `/threads/{thread}/commands`; events come from `/threads/{thread}/stream/events`, as
//! server-sent events or over a WebSocket, which takes the commands too. An event's `seq` and `event_id` follow from
//! the thread's log, so they are the same on every process and after every crash. Deliberately absent: any state of a
//! subscription beyond its connection.

mod commands;
mod events;
mod follow;
mod socket;
mod stream;
mod tools;

pub(super) use commands::post;
pub(super) use socket::open;
pub(super) use stream::events;
