//! Logs in where mail is kept and where it is sent, and sees which folders there are.

use super::{Error, Options};
use crate::Finding;

/// Opens the account, finds its folders, and logs in where mail is sent.
pub async fn check(options: &Options) -> Result<Vec<Finding>, Error> {
    let mailbox = options.open().await?;
    let mut findings = vec![Finding::Good(format!("{} takes the login", mailbox.server()))];
    match mailbox.special_folders().await {
        Ok((Some(sent), Some(drafts))) => {
            findings.push(Finding::Good(format!("sent mail is in {sent}, drafts are in {drafts}")));
        }
        Ok((sent, drafts)) => {
            let missing: Vec<&str> = [("Sent", sent), ("Drafts", drafts)]
                .into_iter()
                .filter_map(|(name, found)| found.is_none().then_some(name))
                .collect();
            findings.push(Finding::Odd(format!(
                "there is no folder for {}; it is made when it is needed",
                missing.join(" and ")
            )));
        }
        Err(error) => findings.push(Finding::bad(&error)),
    }
    findings.push(match mailbox.check_outgoing().await {
        Ok(server) => Finding::Good(format!("{server} takes the login")),
        Err(error) => Finding::bad(&error),
    });
    Ok(findings)
}
