//! Which folder is which.

use imap_proto::{MailboxDatum, NameAttribute, Response};

use super::session::Imap;
use super::utf7::{decoded, encoded};
use crate::{Error, Result};

#[derive(Clone, Debug, Default)]
pub struct Folders {
    pub all: Vec<String>,
    pub sent: Option<String>,
    pub drafts: Option<String>,
}

impl Folders {
    /// Asks the server; missing roles are guessed from the usual names.
    pub async fn read(imap: &mut Imap) -> Result<Self> {
        let mut folders = Self::default();
        let responses = imap.run("LIST \"\" \"*\"").await?;
        for response in responses {
            let Response::MailboxData(MailboxDatum::List(found)) = response else { continue };
            if found.name_attributes.contains(&NameAttribute::NoSelect) {
                continue;
            }
            let text = decoded(&found.name);
            if encoded(&text) != *found.name {
                imap.unencoded.insert(text.clone(), found.name.to_string());
            }
            for attribute in found.name_attributes {
                match attribute {
                    NameAttribute::Sent => folders.sent = Some(text.clone()),
                    NameAttribute::Drafts => folders.drafts = Some(text.clone()),
                    _ => {}
                }
            }
            folders.all.push(text);
        }
        let named = |all: &[String], wanted: &[&str]| {
            all.iter()
                .find(|name| wanted.iter().any(|wanted| name.eq_ignore_ascii_case(wanted)))
                .cloned()
        };
        let sent = ["Sent", "Sent Items", "Sent Messages", "INBOX.Sent", "INBOX/Sent"];
        let drafts = ["Drafts", "Draft", "INBOX.Drafts", "INBOX/Drafts"];
        folders.sent = folders.sent.or_else(|| named(&folders.all, &sent));
        folders.drafts = folders.drafts.or_else(|| named(&folders.all, &drafts));
        // What is looked for in all folders is most often in the account's own ones.
        let own = [Some("INBOX"), folders.sent.as_deref(), folders.drafts.as_deref()];
        folders.all.sort_by_key(|name| !own.contains(&Some(name)));
        Ok(folders)
    }

    pub fn named(&self, name: &str) -> Result<String> {
        let wanted = decoded(name.trim()).to_lowercase();
        let special = match wanted.as_str() {
            "" | "inbox" => Some("INBOX".to_owned()),
            "sent" => self.sent.clone(),
            "drafts" | "draft" => self.drafts.clone(),
            _ => None,
        };
        let found = special
            .or_else(|| self.all.iter().find(|known| known.to_lowercase() == wanted).cloned());
        found.ok_or_else(|| Error::NoFolder { name: name.to_owned(), known: self.all.join(", ") })
    }
}

/// Creates the folder for drafts or sent mail if it is missing.
pub async fn ensure(imap: &mut Imap, found: Option<String>, name: &str) -> Result<String> {
    match found {
        Some(found) => Ok(found),
        None => {
            imap.create(name).await?;
            Ok(name.to_owned())
        }
    }
}
