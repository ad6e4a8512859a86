//! An open session with the tools that it listed: what a call is made on.

use std::sync::Arc;

use super::listing::Listing;
use crate::transport::session::Session;
use crate::types::Via;

/// A session that listed its tools.
#[derive(Clone)]
pub(crate) struct Opened {
    pub session: Arc<Session>,
    pub listing: Arc<Listing>,
}

impl Opened {
    /// Says what a request that was just answered ran over.
    pub fn via(&self, request_id: String) -> Via {
        self.session.via(self.listing.info.protocol_version.clone(), request_id)
    }
}
