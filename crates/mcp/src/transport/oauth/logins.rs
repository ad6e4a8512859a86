//! Keeps logins on disk: one file per server and address, for its owner's eyes only.
//!
//! A change is made under a lock next to the file and replaces it whole: a crash leaves the old login or the new one,
//! and processes that renew the same token do so once. Tokens are stored in clear text, protected by the file's mode.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use rmcp::transport::auth::{AuthError, CredentialStore, StoredCredentials};
use serde::{Deserialize, Serialize};
use tokio::io::AsyncWriteExt as _;

use super::authority::LoginFailure;
use crate::configuration::Grant;
use perihelion_clock as clock;

/// The version of the files; other versions are ignored, and a login is required.
const FORMAT: u32 = 1;
/// How long to wait for other processes: longer than one renewal takes.
const PATIENCE: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(25);

#[derive(Clone, Debug)]
pub struct Logins {
    directory: PathBuf,
}

impl Logins {
    pub fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    pub(super) fn place(&self, server: &str, url: &str) -> LoginFile {
        let digest = blake3::hash(url.as_bytes()).to_hex();
        let name = format!("{server}-{}.json", digest.get(..16).unwrap_or_default());
        let server = server.to_owned();
        let url = digest.to_string();
        LoginFile { file: self.directory.join(name), server, url }
    }
}

#[derive(Clone, Debug)]
pub(super) struct LoginFile {
    pub file: PathBuf,
    server: String,
    /// A digest, because the address itself can contain a secret of the operator.
    url: String,
}

/// The right to change a file, until it is dropped.
pub(super) struct Turn {
    _lock: File,
}

#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Record {
    format: u32,
    /// The server that it belongs to; a token is used for no other server.
    server: String,
    /// BLAKE3 of the address.
    url: String,
    pub client: Client,
    /// `None`: there was a login, and it is no longer accepted.
    pub credentials: Option<StoredCredentials>,
    /// Scopes that the server requested beyond those of the login.
    #[serde(default)]
    pub wanted: Vec<String>,
}

/// As whom this program got its tokens.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(super) struct Client {
    #[serde(default)]
    pub grant: Grant,
    pub id: String,
    /// The issuer of the tokens. It stays after they are deleted, so that the next login goes to the same issuer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// Scopes of the servers file that client credentials were used with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// The authorization server's answer to this program's registration; an operator's client is never stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    pub redirect_uri: String,
    /// The address that revokes tokens, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revocation_endpoint: Option<String>,
}

impl LoginFile {
    /// Returns the login; `None` without one, or if this program cannot read it.
    pub async fn load(&self) -> Result<Option<Record>, LoginFailure> {
        let bytes = match tokio::fs::read(&self.file).await {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(self.failed(source)),
        };
        let record: Option<Record> = serde_json::from_slice(&bytes).ok();
        let record = record.filter(|record| {
            record.format == FORMAT && record.server == self.server && record.url == self.url
        });
        Ok(record.map(|mut record| {
            let credentials = record.credentials.as_ref();
            let issuer = credentials.and_then(|credentials| credentials.issuer.clone());
            record.client.issuer = issuer.or(record.client.issuer);
            record
        }))
    }

    pub fn written(&self) -> Option<SystemTime> {
        std::fs::metadata(&self.file).and_then(|data| data.modified()).ok()
    }

    /// Waits until no other process changes the file.
    pub async fn turn(&self) -> Result<Turn, LoginFailure> {
        let directory = self.file.parent().unwrap_or(Path::new("."));
        let mut builder = tokio::fs::DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(directory).await.map_err(|source| self.failed(source))?;
        let path = self.file.with_extension("lock");
        let mut options = tokio::fs::OpenOptions::new();
        options.create(true).truncate(false).write(true).mode(0o600);
        let opened = options.open(&path).await.map_err(|source| self.failed(source))?;
        let lock = opened.into_std().await;
        let started = clock::monotonic();
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(Turn { _lock: lock }),
                Err(std::fs::TryLockError::WouldBlock) if started.elapsed() < PATIENCE => {
                    clock::sleep(LOOK).await;
                }
                Err(std::fs::TryLockError::WouldBlock) => return Err(LoginFailure::Busy(path)),
                Err(std::fs::TryLockError::Error(source)) => return Err(self.failed(source)),
            }
        }
    }

    pub async fn store(
        &self,
        _turn: &Turn,
        client: Client,
        credentials: Option<StoredCredentials>,
        wanted: Vec<String>,
    ) -> Result<(), LoginFailure> {
        let server = self.server.clone();
        let url = self.url.clone();
        let record = Record { format: FORMAT, server, url, client, credentials, wanted };
        let written = async {
            let bytes = serde_json::to_vec(&record)?;
            let beside = self.file.with_extension(format!("{}.new", uuid::Uuid::new_v4().simple()));
            let mut options = tokio::fs::OpenOptions::new();
            let mut file = options.write(true).create_new(true).mode(0o600).open(&beside).await?;
            let whole = async {
                file.write_all(&bytes).await?;
                // A refresh token that is lost to a power cut cannot be got again without a person.
                file.sync_all().await?;
                tokio::fs::rename(&beside, &self.file).await?;
                let directory = self.file.parent().unwrap_or(Path::new("."));
                tokio::fs::File::open(directory).await?.sync_all().await
            };
            let whole = whole.await;
            if whole.is_err() {
                let _ = tokio::fs::remove_file(&beside).await;
            }
            whole
        };
        written.await.map_err(|source| self.failed(source))
    }

    /// Deletes the login; a missing one counts as deleted.
    pub async fn remove(&self, _turn: &Turn) -> Result<(), LoginFailure> {
        match tokio::fs::remove_file(&self.file).await {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(self.failed(error)),
            _ => Ok(()),
        }
    }

    fn failed(&self, source: std::io::Error) -> LoginFailure {
        LoginFailure::File { path: self.file.clone(), source }
    }
}

/// The side of a login's file that the library reads and writes, while its owner has the turn.
pub(super) struct Vault {
    pub place: LoginFile,
    pub turn: Arc<Turn>,
    pub client: Client,
}

impl Vault {
    async fn replace(&self, credentials: Option<StoredCredentials>) -> Result<(), AuthError> {
        let kept = |failure: LoginFailure| AuthError::CredentialStoreError(failure.to_string());
        let before = self.place.load().await.map_err(kept)?;
        let granted = credentials.as_ref().map(|it| it.granted_scopes.clone()).unwrap_or_default();
        let mut wanted = before.map(|record| record.wanted).unwrap_or_default();
        wanted.retain(|scope| !granted.contains(scope));
        self.place.store(&self.turn, self.client.clone(), credentials, wanted).await.map_err(kept)
    }
}

#[async_trait]
impl CredentialStore for Vault {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        let record = self.place.load().await;
        let record = record.map_err(|why| AuthError::CredentialStoreError(why.to_string()))?;
        Ok(record.and_then(|record| record.credentials))
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        self.replace(Some(credentials)).await
    }

    async fn clear(&self) -> Result<(), AuthError> {
        self.replace(None).await
    }
}
