//! Another issuer of tokens, with the keys that it publishes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};

pub struct Issuer {
    pair: EcdsaKeyPair,
    pub jwks_url: String,
    asked: Arc<AtomicUsize>,
}

impl Issuer {
    /// Makes a key and publishes it as `k1`.
    pub async fn start() -> Self {
        let random = SystemRandom::new();
        let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let pair =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, made.as_ref(), &random)
                .unwrap();
        let document = json!({ "keys": [jwk(&pair)] }).to_string();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let jwks_url = format!("http://{}/jwks.json", listener.local_addr().unwrap());
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&asked);
        let published = axum::routing::get(move || async move {
            counted.fetch_add(1, Ordering::Relaxed);
            document
        });
        let routes = axum::Router::new().route("/jwks.json", published);
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Self { pair, jwks_url, asked }
    }

    /// Returns the settings of a service that accepts its tokens.
    pub fn settings(&self) -> String {
        json!({
            "issuer": "https://login.example", "audience": "perihelion", "jwks_url": self.jwks_url,
            "tenant_claim": "org", "scope_claim": "scope",
        })
        .to_string()
    }

    /// Returns how often its keys were asked for.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    /// Returns the key as it is published.
    pub fn jwk(&self) -> Value {
        jwk(&self.pair)
    }

    /// Signs a token, and writes it as it is sent.
    pub fn token(&self, header: &Value, claims: &Value) -> String {
        signed(header, claims, |text| {
            self.pair.sign(&SystemRandom::new(), text).unwrap().as_ref().to_vec()
        })
    }
}

fn jwk(pair: &EcdsaKeyPair) -> Value {
    let point = pair.public_key().as_ref();
    let part = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    json!({ "kty": "EC", "crv": "P-256", "alg": "ES256", "kid": "k1", "x": part(&point[1..33]), "y": part(&point[33..65]) })
}

/// Writes a token as it is sent, signed by anything.
pub fn signed(header: &Value, claims: &Value, sign: impl Fn(&[u8]) -> Vec<u8>) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let text = format!("{}.{}", part(header), part(claims));
    let signature = URL_SAFE_NO_PAD.encode(sign(text.as_bytes()));
    format!("Bearer {text}.{signature}")
}

pub fn header() -> Value {
    json!({ "alg": "ES256", "typ": "JWT", "kid": "k1" })
}

/// What a token says of Ann, until a second since 1970.
pub fn claims(until: i64) -> Value {
    json!({
        "iss": "https://login.example", "aud": "perihelion", "sub": "ann", "org": "acme",
        "scope": "read run", "exp": until,
    })
}
