//! Routes whose handlers are boxed when they are registered.
//!
//! Axum wraps a handler in about twenty generic types. Otherwise the compiler would prove for each of them that the
//! handler's future is `Send`, including everything that it awaits: two thirds of this crate's build time.

use std::sync::Arc;

use axum::extract::Request;
use axum::handler::Handler;
use axum::response::Response;
use axum::routing::{self, MethodRouter};
use futures::future::BoxFuture;

pub(crate) struct Boxed<S>(Arc<dyn Fn(Request, S) -> BoxFuture<'static, Response> + Send + Sync>);

impl<S> Clone for Boxed<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S: Send + Sync + 'static> Handler<(), S> for Boxed<S> {
    type Future = BoxFuture<'static, Response>;

    fn call(self, request: Request, state: S) -> Self::Future {
        (self.0)(request, state)
    }
}

/// Boxes a handler, for a further method of a route.
pub(crate) fn boxed<H, T, S>(handler: H) -> Boxed<S>
where
    H: Handler<T, S>,
    S: 'static,
{
    Boxed(Arc::new(move |request, state| Box::pin(handler.clone().call(request, state))))
}

macro_rules! methods {
    ($($method:ident)*) => {$(
        pub(crate) fn $method<H, T, S>(handler: H) -> MethodRouter<S>
        where
            H: Handler<T, S>,
            S: Clone + Send + Sync + 'static,
        {
            routing::$method(boxed(handler))
        }
    )*};
}

methods! { get post put patch delete }
