//! Chooses the TLS cryptography, once for the whole process.

use std::sync::Once;

/// Installs the process-wide TLS provider; every call after the first does nothing.
///
/// Must have run before the first HTTP client is built: the clients are compiled without a provider.
pub fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // An `Err` means that the embedding program chose a provider already; its choice stands.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}
