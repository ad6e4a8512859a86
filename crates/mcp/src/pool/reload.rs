//! Applies a changed servers file: unchanged servers keep running, removed ones drain.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{server::Server, servers::Pool};
use crate::configuration::ServersFile;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reloaded {
    /// Those whose tables are the same: they keep their connections.
    pub kept: Vec<String>,
    pub added: Vec<String>,
    /// Those whose tables changed: new calls go to a new connection.
    pub replaced: Vec<String>,
    pub removed: Vec<String>,
}

impl Reloaded {
    pub fn is_change(&self) -> bool {
        !(self.added.is_empty() && self.replaced.is_empty() && self.removed.is_empty())
    }
}

impl Pool {
    /// Takes over a changed file and returns at once.
    ///
    /// Servers whose tables are the same keep running. The rest is closed, and the processes are ended and reaped after
    /// their calls in flight; until then they run in parallel with their successors.
    pub fn reload(&self, file: ServersFile) -> Reloaded {
        let mut reloaded = Reloaded::default();
        *self.unusable.write() = file.unusable.clone();
        let gone: Vec<Arc<Server>> = {
            let mut servers = self.servers.write();
            let after = self.prepare(file, &servers);
            let before = std::mem::replace(&mut *servers, after);
            for new in servers.iter() {
                let name = new.config.name.clone();
                match before.iter().find(|old| old.config.name == name) {
                    None => reloaded.added.push(name),
                    Some(old) if Arc::ptr_eq(old, new) => reloaded.kept.push(name),
                    Some(_) => reloaded.replaced.push(name),
                }
            }
            let stays = |old: &Arc<Server>| servers.iter().any(|new| Arc::ptr_eq(old, new));
            before.into_iter().filter(|old| !stays(old)).collect()
        };
        for old in gone {
            if !reloaded.replaced.contains(&old.config.name) {
                reloaded.removed.push(old.config.name.clone());
            }
            self.drain(old);
        }
        self.context.changed();
        reloaded
    }

    /// Lets a server that left the file finish its calls, watched so that the end of the pool ends it too.
    fn drain(&self, server: Arc<Server>) {
        let draining = Arc::clone(&self.draining);
        draining.lock().push(server.clone());
        let ended = self.ended.clone();
        tokio::spawn(async move {
            tokio::select! {
                biased;
                // Anyone who closes the pool closes what drains as well; anyone who drops it wants it gone now.
                () = ended.cancelled() => {}
                () = server.drain() => {}
            }
            draining.lock().retain(|one| !Arc::ptr_eq(one, &server));
        });
    }
}
