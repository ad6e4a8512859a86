//! Sends a draft, once.
//!
//! | ended | what the next call finds |
//! |---|---|
//! | before the mark | a plain draft: it sends |
//! | after the mark, before the server files it | a marked draft that is not in Sent: the outcome is unknown; a person decides |
//! | after the server filed it | it is in Sent: it says so |
//!
//! The server files the sent message in the same request. The mark is set only if the draft is unchanged since it was
//! read, so that of two senders one finds the other's mark.

use serde_json::{Value, json};

use super::folders::Folders;
use super::mailbox::{Found, JmapMailbox};
use super::wire::Changed;
use crate::compose::{plain_address, recipients};
use crate::sent::{SENDING, Sent};
use crate::{Error, Result, Shown};

/// How often a draft is read again because other mail arrived.
const LOOKS: usize = 20;

struct Places {
    drafts: String,
    sent: String,
}

impl JmapMailbox {
    pub async fn send(&self, id: &str, shown: Option<&Shown>, resend: bool) -> Result<Sent> {
        let folders = Folders::read(&self.client).await?;
        let (_, drafts) = folders.ensure(&self.client, "drafts", "Drafts").await?;
        let (_, sent) = folders.ensure(&self.client, "sent", "Sent").await?;
        let places = Places { drafts, sent };
        let identity = self.identity().await?;
        for _ in 0..LOOKS {
            let draft = self.find(Some(&places.drafts), id).await?;
            if self.find(Some(&places.sent), id).await?.is_some() {
                if let Some(draft) = draft {
                    self.remove(&draft, &places).await?;
                }
                return Ok(Sent::before(id));
            }
            let draft = draft.ok_or_else(|| Error::NoDraft(id.to_owned()))?;
            if draft.email.is_marked() && !resend {
                return Err(Error::outcome_unknown(id, None));
            }
            let (read, _) = self.read(&draft.email, &folders).await?;
            if let Some(shown) = shown {
                shown.check(&read)?;
            }
            let recipients = recipients(&read);
            let envelope = self.envelope(&recipients)?;
            if !self.mark(&draft).await? {
                continue;
            }
            let filed = self.submit(&draft, &places, &identity, envelope).await?;
            return Ok(Sent::now(id, recipients, filed));
        }
        Err(Error::Server("the mailbox changed at every attempt".to_owned()))
    }

    fn envelope(&self, recipients: &[String]) -> Result<Value> {
        if recipients.is_empty() {
            return Err(Error::NoRecipient);
        }
        let to = recipients.iter().map(|text| Ok(json!({ "email": plain_address(text)? })));
        let to = to.collect::<Result<Vec<Value>>>()?;
        let from = plain_address(&self.account.from)?;
        Ok(json!({ "mailFrom": { "email": from }, "rcptTo": to }))
    }

    /// Marks a draft, and returns whether it was as it had been read.
    async fn mark(&self, draft: &Found) -> Result<bool> {
        let update = json!({ "ifInState": draft.state, "update": {
            draft.email.id.clone(): { (format!("keywords/{SENDING}")): true },
        } });
        let answers = self.client.call(vec![("Email/set", update)]).await?;
        match answers.read::<Changed>(0, None)? {
            Ok(changed) => changed.succeeded().map(|()| true),
            Err(failure) if failure.kind == "stateMismatch" => Ok(false),
            Err(failure) => Err(Error::Server(failure.text())),
        }
    }

    /// Makes the server send it, and returns whether it was filed too; removes the mark if it was certainly not sent.
    async fn submit(
        &self,
        draft: &Found,
        places: &Places,
        identity: &str,
        envelope: Value,
    ) -> Result<Result<()>> {
        let unknown = |error| Error::outcome_unknown(&draft.email.name(), Some(error));
        let submission = json!({
            "create": { "s": { "identityId": identity, "emailId": draft.email.id, "envelope": envelope } },
            "onSuccessUpdateEmail": { "#s": places.filed() },
        });
        let answers = match self.client.call(vec![("EmailSubmission/set", submission)]).await {
            Ok(answers) => answers,
            Err(error @ (Error::Login | Error::Rejected(_))) => {
                self.unmark(draft).await;
                return Err(error);
            }
            Err(error) => return Err(unknown(error)),
        };
        let submitted = answers.read::<Changed>(0, Some("EmailSubmission/set"));
        let failure = match submitted.map_err(unknown)? {
            Ok(changed) => changed.failure(),
            Err(failure) => Some(failure),
        };
        if let Some(failure) = failure {
            if failure.is_unclear() {
                return Err(unknown(Error::Server(failure.text())));
            }
            self.unmark(draft).await;
            return Err(Error::Refused(failure.text()));
        }
        let filed =
            answers.read::<Changed>(0, Some("Email/set")).map(|read| read.map(Changed::failure));
        if matches!(filed, Ok(Ok(None))) {
            return Ok(Ok(()));
        }
        Ok(self.update(draft, places.filed()).await)
    }

    /// Removes a draft that is also in Sent.
    async fn remove(&self, draft: &Found, places: &Places) -> Result<()> {
        if draft.email.mailbox_ids.contains_key(&places.sent) {
            return self.update(draft, places.filed()).await;
        }
        self.set(json!({ "destroy": [draft.email.id] })).await
    }

    /// Removes the mark; if it stays, the next call asks a person.
    async fn unmark(&self, draft: &Found) {
        let _ = self.update(draft, json!({ (format!("keywords/{SENDING}")): null })).await;
    }

    async fn update(&self, draft: &Found, patch: Value) -> Result<()> {
        self.set(json!({ "update": { draft.email.id.clone(): patch } })).await
    }

    async fn set(&self, changes: Value) -> Result<()> {
        let changed: Changed = self.client.call(vec![("Email/set", changes)]).await?.get(0)?;
        changed.succeeded()
    }
}

impl Places {
    /// The properties that make a draft a sent message.
    fn filed(&self) -> Value {
        json!({
            (format!("mailboxIds/{}", self.drafts)): null,
            (format!("mailboxIds/{}", self.sent)): true,
            "keywords/$draft": null,
            (format!("keywords/{SENDING}")): null,
        })
    }
}
