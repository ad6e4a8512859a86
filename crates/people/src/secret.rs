//! Random secrets, and what recognises them. Passwords: Argon2id with the parameters that OWASP recommends (19 MiB, two passes, one lane).

use std::sync::LazyLock;

use argon2::password_hash::{PasswordHash, PasswordHasher as _, PasswordVerifier as _, SaltString};
use argon2::{Algorithm, Argon2, Params, Version};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom, SystemRandom};
use tokio::sync::Semaphore;

use crate::{Error, Result};

/// Bytes of randomness in every secret.
const SECRET_BYTES: usize = 32;

/// A secret that is shown once; its debug text does not contain it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(***)")
    }
}

impl Secret {
    /// Generates a secret of 256 random bits with a prefix for its purpose.
    pub(crate) fn draw(prefix: &str) -> Result<Self> {
        Ok(Self(format!("{prefix}{}", URL_SAFE_NO_PAD.encode(random::<SECRET_BYTES>()?))))
    }

    pub(crate) fn from_text(text: &str) -> Self {
        Self(text.to_owned())
    }

    pub fn expose(&self) -> &str {
        &self.0
    }
}

fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).map_err(|_| Error::NoRandom)?;
    Ok(bytes)
}

/// Returns the hash that recognizes a secret of 256 random bits.
///
/// Such a secret cannot be guessed, so a plain hash is enough (BLAKE3, keyed by purpose, so that a hash from one table
/// matches no other one); a slow hash would cost every request time.
pub(crate) fn digest(purpose: &str, secret: &str) -> Vec<u8> {
    blake3::derive_key(purpose, secret.as_bytes()).to_vec()
}

/// Characters of a password at least.
const SHORTEST: usize = 10;

/// Bytes of a password at most: hashing takes time with its length.
const LONGEST: usize = 1_024;

/// Concurrent password hashes; further ones wait, so that a flood of logins takes neither all memory nor all time.
static TURNS: Semaphore = Semaphore::const_new(2);

/// Passwords that are hashed or wait for it; further ones are refused, so that waits stay short.
static PLACES: Semaphore = Semaphore::const_new(64);

/// Replaces the hash of an unknown user, so that such a login takes as long as any other.
static NOBODY: LazyLock<String> =
    LazyLock::new(|| hash_now("nobody has this password").unwrap_or_default());

fn hasher() -> Argon2<'static> {
    Argon2::new(Algorithm::Argon2id, Version::V0x13, Params::default())
}

fn hash_now(password: &str) -> Result<String> {
    let failed = |error: argon2::password_hash::Error| Error::Hash(error.to_string().into());
    let salt = SaltString::encode_b64(&random::<16>()?).map_err(failed)?;
    Ok(hasher().hash_password(password.as_bytes(), &salt).map_err(failed)?.to_string())
}

/// Hashes a password off the async threads.
///
/// # Errors
/// [`Error::Unfit`] when it is too short or too long.
pub(crate) async fn hash(password: &str) -> Result<String> {
    if password.chars().count() < SHORTEST {
        return Err(Error::Unfit(format!("a password needs at least {SHORTEST} characters")));
    }
    if password.len() > LONGEST {
        return Err(Error::Unfit(format!("a password can have at most {LONGEST} bytes")));
    }
    let password = password.to_owned();
    in_turn(move || hash_now(&password)).await?
}

/// Returns whether a password matches a stored hash; without one it takes the same time and returns false.
pub(crate) async fn fits(password: &str, stored: Option<String>) -> Result<bool> {
    if password.len() > LONGEST {
        return Ok(false);
    }
    let password = password.to_owned();
    in_turn(move || {
        let is_known = stored.is_some();
        let stored = stored.unwrap_or_else(|| NOBODY.clone());
        let fits = PasswordHash::new(&stored)
            .and_then(|parsed| hasher().verify_password(password.as_bytes(), &parsed))
            .is_ok();
        fits && is_known
    })
    .await
}

/// Runs work when its turn comes; a caller that has gone away keeps its turn until the work is done.
async fn in_turn<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    let place = PLACES.try_acquire().map_err(|_| Error::Busy)?;
    let turn = TURNS.acquire().await.map_err(|error| Error::Hash(error.into()))?;
    let work = move || {
        let done = work();
        drop((turn, place));
        done
    };
    tokio::task::spawn_blocking(work).await.map_err(|error| Error::Hash(error.into()))
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// S3.04
    #[tokio::test]
    async fn in_a_flood_of_passwords_some_wait_and_the_next_is_checked_when_it_is_over() {
        let ask = || Box::pin(fits("correct horse", None));
        let mut flood: Vec<_> = (0..100).map(|_| ask()).collect();
        let mut context = Context::from_waker(Waker::noop());
        let polled = flood.iter_mut().map(|one| one.as_mut().poll(&mut context));
        let ready = polled.filter(Poll::is_ready);
        let refused: Vec<_> = ready.collect();
        assert_eq!(refused.len(), 36, "the others wait");
        assert!(refused.iter().all(|one| matches!(one, Poll::Ready(Err(Error::Busy)))));
        drop(flood);
        // Two are hashed to their ends though nobody waits for them, and keep their turns until then.
        assert_eq!(TURNS.available_permits(), 0);
        assert!(!ask().await.unwrap());
    }
}
