//! Which folder is which.

use serde_json::json;

use super::client::JmapClient;
use super::wire::{Changed, Got, MailFolder};
use crate::{Error, Result};

pub struct Folders(Vec<(String, MailFolder)>);

impl Folders {
    pub async fn read(client: &JmapClient) -> Result<Self> {
        let properties = json!({ "ids": null, "properties": ["id", "name", "parentId", "role"] });
        let answers = client.call(vec![("Mailbox/get", properties)]).await?;
        let got: Got<MailFolder> = answers.get(0)?;
        let paths: Vec<String> = got.list.iter().map(|folder| path(&got.list, folder)).collect();
        Ok(Self(paths.into_iter().zip(got.list).collect()))
    }

    pub fn role(&self, role: &str) -> Option<&str> {
        self.with_role(role).map(|(path, _)| path.as_str())
    }

    fn with_role(&self, role: &str) -> Option<&(String, MailFolder)> {
        self.0.iter().find(|(_, folder)| folder.role.as_deref() == Some(role))
    }

    pub fn path<'a>(&'a self, ids: impl Iterator<Item = &'a String>) -> String {
        let mut ids = ids;
        let found = ids.find_map(|id| self.0.iter().find(|(_, folder)| folder.id == *id));
        found.map(|(path, _)| path.clone()).unwrap_or_default()
    }

    /// Finds a folder by what people call it; returns its path and its id.
    pub fn named(&self, name: &str) -> Result<(String, String)> {
        let wanted = name.trim().to_lowercase();
        let special = match wanted.as_str() {
            "" | "inbox" => self.with_role("inbox"),
            "sent" => self.with_role("sent"),
            "drafts" | "draft" => self.with_role("drafts"),
            _ => None,
        };
        let found =
            special.or_else(|| self.0.iter().find(|(path, _)| path.to_lowercase() == wanted));
        let (path, folder) = found.ok_or_else(|| {
            let known: Vec<&str> = self.0.iter().map(|(path, _)| path.as_str()).collect();
            Error::NoFolder { name: name.to_owned(), known: known.join(", ") }
        })?;
        Ok((path.clone(), folder.id.clone()))
    }

    /// Returns path and ID of the folder with a role, and creates a missing one.
    pub async fn ensure(
        &self,
        client: &JmapClient,
        role: &str,
        name: &str,
    ) -> Result<(String, String)> {
        if let Some((path, folder)) = self.with_role(role) {
            return Ok((path.clone(), folder.id.clone()));
        }
        if let Ok(found) = self.named(name) {
            return Ok(found);
        }
        let create = json!({ "create": { "f": { "name": name, "role": role } } });
        let changed: Changed = client.call(vec![("Mailbox/set", create)]).await?.get(0)?;
        let mut created = changed.created.iter().flatten();
        let id = created.find_map(|(_, made)| Some(made.as_ref()?["id"].as_str()?.to_owned()));
        match (id, changed.failure()) {
            (Some(id), _) => Ok((name.to_owned(), id)),
            (None, Some(failure)) => Err(Error::Server(failure.text())),
            (None, None) => {
                Err(Error::Server("the response does not mention the new folder".to_owned()))
            }
        }
    }
}

fn path(all: &[MailFolder], folder: &MailFolder) -> String {
    let mut path = folder.name.clone();
    let mut parent = folder.parent_id.as_ref();
    // A circle ends at the number of folders.
    for _ in all {
        let Some(above) = all.iter().find(|known| Some(&known.id) == parent) else { break };
        path = format!("{}/{path}", above.name);
        parent = above.parent_id.as_ref();
    }
    path
}
