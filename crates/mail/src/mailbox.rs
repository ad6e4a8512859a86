//! One account's mail, by whichever protocol it was opened.

use tokio::sync::Mutex;

use crate::account::{JmapServer, Servers};
use crate::imap::ImapMailbox;
use crate::jmap::JmapMailbox;
use crate::message::bracketed;
use crate::written::Draft;
use crate::{Account, Compose, Error, Message, Messages, Sent, Shown, Summary, compose};

pub struct Mailbox {
    way: Way,
    /// One draft at a time, so that two calls for the same one do not both find it unsent.
    sending: Mutex<()>,
}

enum Way {
    Imap(ImapMailbox),
    Jmap(Box<JmapMailbox>),
}

impl Mailbox {
    /// Opens an account by IMAP and SMTP, and logs in once to see that it works.
    ///
    /// # Errors
    /// [`Error::Unreachable`], [`Error::Login`], [`Error::Unprotected`], [`Error::BadAddress`] for the sender.
    pub async fn open(account: Account, servers: Servers) -> Result<Self, Error> {
        compose::plain_address(&account.from)?;
        Ok(Self::by(Way::Imap(ImapMailbox::open(account, servers).await?)))
    }

    /// Opens an account by JMAP: asks the server for its capabilities.
    ///
    /// # Errors
    /// As [`Mailbox::open`], and [`Error::NoJmap`] if it is not offered.
    pub async fn open_jmap(account: Account, server: &JmapServer) -> Result<Self, Error> {
        compose::plain_address(&account.from)?;
        Ok(Self::by(Way::Jmap(Box::new(JmapMailbox::open(account, server).await?))))
    }

    fn by(way: Way) -> Self {
        Self { way, sending: Mutex::default() }
    }

    pub fn server(&self) -> String {
        match &self.way {
            Way::Imap(imap) => imap.servers.imap.to_string(),
            Way::Jmap(jmap) => format!("{} (JMAP)", jmap.client.host()),
        }
    }

    /// Returns the folders of sent mail and of drafts, if there are any.
    pub async fn special_folders(&self) -> Result<(Option<String>, Option<String>), Error> {
        match &self.way {
            Way::Imap(imap) => imap.special_folders().await,
            Way::Jmap(jmap) => jmap.special_folders().await,
        }
    }

    /// Checks that mail can be sent, and returns the outgoing server; sends none.
    ///
    /// # Errors
    /// [`Error::Unreachable`], [`Error::Login`], [`Error::Unprotected`].
    pub async fn check_outgoing(&self) -> Result<String, Error> {
        match &self.way {
            Way::Imap(imap) => {
                imap.check_outgoing().await?;
                Ok(imap.servers.smtp.to_string())
            }
            Way::Jmap(jmap) => {
                jmap.identity().await?;
                Ok(self.server())
            }
        }
    }

    /// Finds messages in a folder, newest first.
    ///
    /// # Errors
    /// [`Error::BadQuery`], [`Error::NoFolder`], or the server's error.
    pub async fn search(
        &self,
        query: &str,
        folder: &str,
        limit: usize,
    ) -> Result<Messages<Summary>, Error> {
        match &self.way {
            Way::Imap(imap) => imap.search(query, folder, limit).await,
            Way::Jmap(jmap) => jmap.search(query, folder, limit).await,
        }
    }

    /// Reads the newest messages of a thread and the named one, oldest first, from all folders.
    ///
    /// # Errors
    /// [`Error::BadId`], [`Error::NoMessage`], or the server's error.
    pub async fn thread(&self, id: &str) -> Result<Messages<Message>, Error> {
        let mut thread = match &self.way {
            Way::Imap(imap) => imap.thread(id).await,
            Way::Jmap(jmap) => jmap.thread(id).await,
        }?;
        thread.messages.iter_mut().for_each(Message::clip);
        Ok(thread)
    }

    /// Keeps a new message as a draft and returns it.
    ///
    /// # Errors
    /// [`Error::NoRecipient`], [`Error::BadAddress`], [`Error::Control`], [`Error::TooLong`], or the server's error.
    pub async fn draft(&self, compose: &Compose, id: &str) -> Result<Message, Error> {
        self.keep(Draft::New(compose), id).await
    }

    /// Keeps an answer to a message as a draft and returns it.
    ///
    /// # Errors
    /// As [`Mailbox::draft`], and [`Error::NoMessage`].
    pub async fn reply(&self, message: &str, text: &str, id: &str) -> Result<Message, Error> {
        self.keep(Draft::Answer { message, text }, id).await
    }

    /// Stores a message that forwards another one, with its attachments, as a draft and returns it.
    pub async fn forward(
        &self,
        message: &str,
        to: &[String],
        text: &str,
        id: &str,
    ) -> Result<Message, Error> {
        self.keep(Draft::Forward { message, to, text }, id).await
    }

    async fn keep(&self, draft: Draft<'_>, id: &str) -> Result<Message, Error> {
        match &self.way {
            Way::Imap(imap) => imap.draft(draft, id).await,
            Way::Jmap(jmap) => jmap.draft(draft, id).await,
        }
    }

    /// Sends a draft by its ID, if it is unchanged since it was shown; what fails after it left does not fail this.
    /// `resend` is a person's statement that one with an unknown outcome did not arrive.
    ///
    /// # Errors
    /// [`Error::NoDraft`], [`Error::Changed`], [`Error::TooLong`], [`Error::OutcomeUnknown`], [`Error::NoMark`],
    /// [`Error::Refused`] with the unchanged draft, or the servers' error before it could leave.
    pub async fn send(&self, id: &str, shown: Option<&Shown>, resend: bool) -> Result<Sent, Error> {
        let id = bracketed(id);
        let _one = self.sending.lock().await;
        match &self.way {
            Way::Imap(imap) => imap.send(&id, shown, resend).await,
            Way::Jmap(jmap) => jmap.send(&id, shown, resend).await,
        }
    }
}
