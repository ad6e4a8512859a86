//! Whole threads leave in the open and come in encrypted.

use async_trait::async_trait;

use super::{
    super::{Error, ThreadDump, Transfer, blobs, chain, family},
    SealedStore,
};
use crate::ids::ThreadId;

#[async_trait]
impl Transfer for SealedStore {
    async fn export(&self, thread: ThreadId) -> Result<ThreadDump, Error> {
        let mut dump = self.inner.export(thread).await?;
        let children = std::mem::take(&mut dump.children);
        let mut dump = self.open_dump(dump).await?;
        for child in children {
            dump.children.push(self.open_dump(child).await?);
        }
        if dump.info.root.is_none() {
            for child in family::places(&dump) {
                match self.inner.info(child).await {
                    Err(Error::UnknownThread(_)) => {}
                    found => return Err(family::stray(&dump, found?.id)),
                }
            }
        }
        // Of what is encrypted the store itself could see the order only.
        blobs::keep_named(&mut dump)?;
        chain::verify(&dump)?;
        Ok(dump)
    }

    async fn import(&self, dump: &ThreadDump) -> Result<(), Error> {
        chain::verify(dump)?;
        self.inner.import(&self.seal_dump(dump)?).await
    }
}
