//! Threads from files.
//!
//! A file is not proof of whose it is: anyone can write one. Invariant: a caller imports no thread that would continue
//! with the memories of a user for whom the caller cannot act.

use serde_json::{Map, Value};

use super::{Error, Result, Service};
use perihelion_engine::checkpoint::{self, ThreadDump, ThreadInfo};
use perihelion_people::Scope;

impl Service {
    /// Imports a thread from a file; it is this tenant's then, and the caller's if the caller is a user.
    ///
    /// # Errors
    /// As [`Service::create_thread`], and [`Error::Runtime`] if the file is not an export.
    /// [`Error::Forbidden`] for a caller who cannot decide requests for approval, because a file
    /// can contain decisions; [`Error::People`] if it names a user for whom the caller cannot act.
    pub async fn import_thread(&self, dump: ThreadDump) -> Result<ThreadInfo> {
        self.permit(Scope::Approve)?;
        // The states of a program's own graphs have fields of their own, and no memories.
        if self.runtime().own_graph(&dump.info.graph).is_none() {
            for user in users_in(&dump)? {
                self.who().acting_as(Some(&user))?;
            }
        }
        self.to_its_end(move |service| async move { service.import_with_owner(dump).await }).await
    }

    async fn import_with_owner(&self, dump: ThreadDump) -> Result<ThreadInfo> {
        let thread = dump.info.id;
        let imported = self.runtime().threads().import(dump, Some(self.tenant())).await;
        let info = self.unless_hidden(thread, imported).await?;
        if let Some(user) = self.who().person()
            && let Err(error) = self.give(thread, user).await
        {
            // A thread that another user got first stays.
            if !matches!(error, Error::OthersThread) {
                self.remove_thread(&info).await?;
            }
            return Err(error);
        }
        Ok(info)
    }
}

/// Returns the users whom the states of a file name, with those of earlier steps and of subgraphs.
fn users_in(dump: &ThreadDump) -> Result<Vec<String>, checkpoint::Error> {
    let mut users = Vec::new();
    let mut note = |state: &Value| match state {
        Value::Null => Ok(()),
        Value::Object(fields) => {
            users.extend(fields.get("user").and_then(Value::as_str).map(str::to_owned));
            Ok(())
        }
        // A list of the fields' values would be read as a state, too.
        _ => Err(checkpoint::Error::Import("a state in the file is not an object".to_owned())),
    };
    for snapshot in dump.snapshot.iter().chain(&dump.returned) {
        note(&snapshot.state.decode()?)?;
    }
    for step in &dump.steps {
        step.written()?.iter().try_for_each(|written| note(&written.update))?;
    }
    for pending in &dump.pending {
        let (_, written): (u32, Map<String, Value>) = pending.body.decode()?;
        note(written.get("u").unwrap_or(&Value::Null))?;
    }
    for child in &dump.children {
        users.extend(users_in(child)?);
    }
    Ok(users)
}
