//! An open session with the tools that it listed: what a call is made on.

use std::sync::Arc;

use super::listing::Listing;
use crate::mcp::transport::session::Session;
use crate::mcp::types::Via;

/// A session that listed its tools.
#[derive(Clone)]
pub(in crate::mcp) struct Opened {
    pub session: Arc<Session>,
    pub listing: Arc<Listing>,
}

impl Opened {
    /// Says what a request that was just answered ran over.
    pub fn via(&self, request_id: String) -> Via {
        self.session.via(self.listing.info.protocol_version.clone(), request_id)
    }
}
