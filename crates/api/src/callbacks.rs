//! The addresses that can be called: those of the public network, and those that the operator names.

use crate::http::Refusal;
use perihelion_servers::web::Addresses;
use perihelion_service::Service;

pub(crate) fn allowed(service: &Service) -> Addresses {
    Addresses::allowing(&service.runtime().settings().serve.callback_hosts.0)
}

/// Checks an address that a client wants to be called at, and returns it as it is called.
///
/// A name that resolves to an internal address is detected at the call, because it can change until then.
pub(crate) fn check(service: &Service, url: &str) -> Result<String, Refusal> {
    let checked = allowed(service).check(url);
    checked.map(String::from).map_err(|error| {
        Refusal::invalid(format!(
            "cannot call this address: {error}; the operator can allow internal hosts in serve.callback_hosts"
        ))
    })
}
