//! The exchange with a JMAP server.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use perihelion_http::reach::bounded;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, StatusCode};
use secrecy::ExposeSecret;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use url::Url;

use super::wire::{CORE, Failure, MAIL, Response, SUBMISSION, Session, Uploaded};
use crate::account::{JmapServer, LIMIT, is_protected};
use crate::{Account, Error, Result};

/// Largest answer that is read, in bytes.
const LARGEST: usize = 64 << 20;
/// Most redirections on the way to the session.
const HOPS: usize = 5;

pub struct JmapClient {
    http: Client,
    api: Url,
    download: String,
    upload: String,
    base: Url,
    account: String,
}

impl JmapClient {
    pub async fn open(account: &Account, server: &JmapServer) -> Result<Self> {
        if !is_protected(&server.session) {
            return Err(Error::Unprotected(server.session.to_string()));
        }
        let policy = Policy::custom(|attempt| {
            if attempt.previous().len() > HOPS || !is_protected(attempt.url()) {
                attempt.stop()
            } else {
                attempt.follow()
            }
        });
        let headers = HeaderMap::from_iter([(AUTHORIZATION, authorization(account, server)?)]);
        let http = Client::builder().timeout(LIMIT).redirect(policy).default_headers(headers);
        // A proxy does not know this machine.
        let http = if server.session.scheme() == "http" { http.no_proxy() } else { http };
        let http = http.build()?;
        let answer = http.get(server.session.clone()).send().await?;
        let status = answer.status();
        let base = answer.url().clone();
        let lacking = |what: &str| Error::NoJmap(format!("{} {what}", server.session));
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => return Err(Error::Login),
            status if !status.is_success() => return Err(lacking(&format!("answers {status}"))),
            _ => {}
        }
        let session: Session = serde_json::from_slice(&body(answer).await?)
            .map_err(|_| lacking("describes no session"))?;
        let missing = [MAIL, SUBMISSION]
            .into_iter()
            .find(|needed| !session.capabilities.contains_key(*needed));
        if let Some(missing) = missing {
            return Err(lacking(&format!("lacks {missing}")));
        }
        let own = session.primary_accounts.get(MAIL).ok_or_else(|| lacking("names no account"))?;
        let api = base.join(&session.api_url).map_err(|_| lacking("names no address for calls"))?;
        protected(&api)?;
        let account = own.clone();
        Ok(Self {
            http,
            api,
            download: session.download_url,
            upload: session.upload_url,
            base,
            account,
        })
    }

    pub fn host(&self) -> String {
        let host = self.api.host_str().unwrap_or_default();
        self.api.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// Makes calls in one request; each is about the account.
    pub async fn call(&self, calls: Vec<(&str, Value)>) -> Result<Answers> {
        let calls: Vec<Value> = calls
            .into_iter()
            .enumerate()
            .map(|(number, (name, mut arguments))| {
                if let Some(arguments) = arguments.as_object_mut() {
                    arguments.insert("accountId".to_owned(), json!(self.account));
                }
                json!([name, arguments, number.to_string()])
            })
            .collect();
        let request = json!({ "using": [CORE, MAIL, SUBMISSION], "methodCalls": calls });
        let answer = self.http.post(self.api.clone()).json(&request).send().await?;
        let bytes = taken(answer).await?;
        let response: Response = serde_json::from_slice(&bytes)?;
        Ok(Answers(response.method_responses))
    }

    /// Keeps a message's bytes at the server and returns their name.
    pub async fn upload(&self, bytes: Vec<u8>) -> Result<String> {
        let url = self.url(&self.upload, &[])?;
        let request = self.http.post(url).header("content-type", "message/rfc822").body(bytes);
        let bytes = taken(request.send().await?).await?;
        let uploaded: Uploaded = serde_json::from_slice(&bytes)?;
        Ok(uploaded.blob_id)
    }

    pub async fn download(&self, blob: &str) -> Result<Vec<u8>> {
        let fields = [("blobId", blob), ("name", "message.eml"), ("type", "message/rfc822")];
        let url = self.url(&self.download, &fields)?;
        taken(self.http.get(url).send().await?).await
    }

    fn url(&self, template: &str, fields: &[(&str, &str)]) -> Result<Url> {
        let mut text = template.to_owned();
        for (name, value) in [("accountId", self.account.as_str())].iter().chain(fields) {
            let value: String = url::form_urlencoded::byte_serialize(value.as_bytes()).collect();
            text = text.replace(&format!("{{{name}}}"), &value.replace('+', "%20"));
        }
        let url = self.base.join(&text).map_err(|_| Error::BadAddress(text))?;
        protected(&url)?;
        Ok(url)
    }
}

fn authorization(account: &Account, server: &JmapServer) -> Result<HeaderValue> {
    let secret = account.password.expose_secret();
    let text = if server.is_token {
        format!("Bearer {secret}")
    } else {
        format!("Basic {}", BASE64_STANDARD.encode(format!("{}:{secret}", account.username)))
    };
    let mut value = HeaderValue::try_from(text).map_err(|_| Error::Login)?;
    value.set_sensitive(true);
    Ok(value)
}

fn protected(url: &Url) -> Result<()> {
    if is_protected(url) { Ok(()) } else { Err(Error::Unprotected(url.to_string())) }
}

/// Reads the body of an answer that took the request.
async fn taken(answer: reqwest::Response) -> Result<Vec<u8>> {
    let status = answer.status();
    match status {
        StatusCode::UNAUTHORIZED => Err(Error::Login),
        status if status.is_success() => body(answer).await,
        // A whole request that is refused was not begun.
        status if status.is_client_error() => Err(Error::Rejected(status.to_string())),
        status => Err(Error::Server(status.to_string())),
    }
}

async fn body(mut answer: reqwest::Response) -> Result<Vec<u8>> {
    let (bytes, is_cut) = bounded(&mut answer, LARGEST).await?;
    if is_cut {
        return Err(Error::Server(format!("more than {LARGEST} bytes")));
    }
    Ok(bytes)
}

pub struct Answers(Vec<(String, Value, String)>);

impl Answers {
    pub fn get<T: DeserializeOwned>(&self, call: usize) -> Result<T> {
        self.read(call, None)?.map_err(|failure: Failure| Error::Server(failure.text()))
    }

    /// Reads the answer to a call, or why it failed; `name` distinguishes the answers to one call.
    pub fn read<T: DeserializeOwned>(
        &self,
        call: usize,
        name: Option<&str>,
    ) -> Result<Result<T, Failure>> {
        let id = call.to_string();
        let (method, value, _) = self
            .0
            .iter()
            .find(|(method, _, of)| {
                *of == id && name.is_none_or(|name| name == method || method == "error")
            })
            .ok_or_else(|| Error::Server("a call has no response".to_owned()))?;
        if method == "error" {
            return Ok(Err(serde_json::from_value(value.clone())?));
        }
        Ok(Ok(serde_json::from_value(value.clone())?))
    }
}
