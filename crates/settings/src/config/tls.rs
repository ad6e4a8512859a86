//! Chooses the process's TLS provider, once.

use std::sync::Once;

/// Installs ring as the TLS provider of the process; later calls have no effect.
///
/// HTTP clients panic without one, also for plain `http://`, so anyone who builds a client calls this first.
pub fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // An embedding program may have installed its own provider, which stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}
