//! Tokens of another issuer, genuine and forged.
#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use perihelion_people::{JwtRules, JwtVerifier, Scope};
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};

const NOW: i64 = 1_795_000_000;

struct Issuer {
    pair: EcdsaKeyPair,
}

impl Issuer {
    fn new() -> Self {
        let random = SystemRandom::new();
        let document =
            EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let pair =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random)
                .unwrap();
        Self { pair }
    }

    fn jwk(&self) -> Value {
        let point = self.pair.public_key().as_ref();
        let part = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        json!({ "kty": "EC", "crv": "P-256", "alg": "ES256", "kid": "k1", "x": part(&point[1..33]), "y": part(&point[33..65]) })
    }

    fn jwks(&self) -> String {
        json!({ "keys": [self.jwk()] }).to_string()
    }

    fn token(&self, header: Value, claims: &Value) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&header), part(claims));
        let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref()))
    }
}

/// Signs with a secret that everybody can read.
fn symmetric(algorithm: hmac::Algorithm, name: &str, secret: &str) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", part(&with(header(), "alg", json!(name))), part(&claims()));
    let key = hmac::Key::new(algorithm, secret.as_bytes());
    let signature = hmac::sign(&key, signed.as_bytes());
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref()))
}

fn rules() -> JwtRules {
    JwtRules {
        issuer: "https://login.example".to_owned(),
        audience: "perihelion".to_owned(),
        algorithms: vec!["ES256".to_owned()],
        tenant_claim: Some("org".to_owned()),
        tenant: "default".to_owned(),
        scope_claim: Some("scope".to_owned()),
    }
}

fn header() -> Value {
    json!({ "alg": "ES256", "typ": "JWT", "kid": "k1" })
}

fn claims() -> Value {
    json!({
        "iss": "https://login.example", "aud": "perihelion", "sub": "ann", "org": "acme",
        "scope": "read run nonsense", "exp": NOW + 60,
    })
}

fn with(mut base: Value, key: &str, value: Value) -> Value {
    base[key] = value;
    base
}

#[test]
fn a_genuine_token_gives_the_caller_and_the_permitted_scopes() {
    let issuer = Issuer::new();
    let verifier = JwtVerifier::new(rules(), &issuer.jwks()).unwrap();
    let who = verifier.verify(&issuer.token(header(), &claims()), NOW).unwrap();
    assert_eq!((who.tenant.as_str(), who.user.as_str()), ("acme", "ann"));
    assert_eq!(who.scopes, [Scope::Read, Scope::Run]);
}

#[test]
fn forged_and_foreign_tokens_are_refused() {
    let issuer = Issuer::new();
    let other = Issuer::new();
    let verifier = JwtVerifier::new(rules(), &issuer.jwks()).unwrap();
    let good = issuer.token(header(), &claims());
    let (body, _) = good.rsplit_once('.').unwrap();
    let none = format!(
        "{}.{}.",
        URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#),
        body.split_once('.').unwrap().1
    );
    let cases = [
        ("another issuer's key", other.token(header(), &claims())),
        ("no signature", format!("{body}.")),
        ("algorithm none", none),
        ("a symmetric algorithm", issuer.token(json!({ "alg": "HS256", "kid": "k1" }), &claims())),
        ("the published key as a secret", symmetric(hmac::HMAC_SHA256, "HS256", &issuer.jwks())),
        ("the same, longer", symmetric(hmac::HMAC_SHA512, "HS512", &issuer.jwks())),
        ("a key of its own", other.token(with(header(), "jwk", other.jwk()), &claims())),
        (
            "an address of keys",
            other.token(with(header(), "jku", json!("https://evil.example/keys")), &claims()),
        ),
        ("an unknown key", issuer.token(with(header(), "kid", json!("k2")), &claims())),
        (
            "a key id without end",
            issuer.token(with(header(), "kid", json!("k".repeat(10_000))), &claims()),
        ),
        ("another audience", issuer.token(header(), &with(claims(), "aud", json!("else")))),
        (
            "another issuer's name",
            issuer.token(header(), &with(claims(), "iss", json!("https://evil.example"))),
        ),
        ("the past", issuer.token(header(), &with(claims(), "exp", json!(NOW)))),
        ("the future", issuer.token(header(), &with(claims(), "nbf", json!(NOW + 3_600)))),
        ("a beginning in words", issuer.token(header(), &with(claims(), "nbf", json!("later")))),
        ("an extension", issuer.token(with(header(), "crit", json!(["exp"])), &claims())),
        ("an unknown extension", issuer.token(with(header(), "crit", json!(["x"])), &claims())),
        ("no extension by name", issuer.token(with(header(), "crit", json!([])), &claims())),
        ("an extension that is none", issuer.token(with(header(), "crit", json!("x")), &claims())),
        (
            "a body that is not encoded",
            issuer.token(with(header(), "b64", json!(false)), &claims()),
        ),
        (
            "a proof of another kind",
            issuer.token(with(header(), "typ", json!("dpop+jwt")), &claims()),
        ),
        ("a logout", issuer.token(with(header(), "typ", json!("logout+jwt")), &claims())),
        (
            "one that is bound to a key",
            issuer.token(header(), &with(claims(), "cnf", json!({ "jkt": "x" }))),
        ),
        ("no tenant", issuer.token(header(), &with(claims(), "org", Value::Null))),
        ("nobody", issuer.token(header(), &with(claims(), "sub", json!("")))),
        ("no end", issuer.token(header(), &with(claims(), "exp", Value::Null))),
        ("nonsense", "a.b.c".to_owned()),
        ("something long", "a".repeat(1_000_000)),
    ];
    for (what, token) in cases {
        assert!(verifier.verify(&token, NOW).is_err(), "{what} was accepted");
    }
    assert!(verifier.verify(&good, NOW).is_ok(), "the control");
    for (what, name, value) in [
        ("a key that only encrypts", "use", json!("enc")),
        ("a key that only signs", "key_ops", json!(["sign"])),
        ("a key of another algorithm", "alg", json!("ES384")),
    ] {
        let keys = json!({ "keys": [with(issuer.jwk(), name, value)] }).to_string();
        let verifier = JwtVerifier::new(rules(), &keys).unwrap();
        assert!(verifier.verify(&good, NOW).is_err(), "{what} was accepted");
    }
    // A key that nobody knows costs no other one.
    let unknown = json!({ "kty": "AKP", "alg": "ML-DSA-44", "kid": "k0", "pub": "AA" });
    let keys = json!({ "keys": [unknown, issuer.jwk()] }).to_string();
    assert!(JwtVerifier::new(rules(), &keys).unwrap().verify(&good, NOW).is_ok());
    let access = issuer.token(with(header(), "typ", json!("application/at+JWT")), &claims());
    assert!(verifier.verify(&access, NOW).is_ok());
    assert!(
        verifier.names_unknown_key(&issuer.token(with(header(), "kid", json!("k2")), &claims()))
    );
    assert!(!verifier.names_unknown_key(&good));
}

#[test]
fn symmetric_algorithms_cannot_be_configured() {
    let issuer = Issuer::new();
    for wrong in ["HS256", "none", "RS1"] {
        let rules = JwtRules { algorithms: vec![wrong.to_owned()], ..rules() };
        assert!(JwtVerifier::new(rules, &issuer.jwks()).is_err(), "{wrong}");
    }
}
