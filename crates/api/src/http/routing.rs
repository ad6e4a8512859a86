//! Routes whose handlers are boxed when they are registered, and described by what they read.
//!
//! Axum wraps a handler in about twenty generic types. Otherwise the compiler would prove for each of them that the
//! handler's future is `Send`, including everything that it awaits: two thirds of this crate's build time.

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::handler::Handler;
use axum::response::Response;
use axum::routing::MethodRouter;
use futures::future::BoxFuture;

use super::forms::{Forms, Inputs};

struct Boxed<S>(Arc<dyn Fn(Request, S) -> BoxFuture<'static, Response> + Send + Sync>);

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

fn boxed<H: Handler<T, S>, T, S: 'static>(handler: H) -> Boxed<S> {
    Boxed(Arc::new(move |request, state| Box::pin(handler.clone().call(request, state))))
}

/// Describes what one handler reads.
type Describe = fn(&mut Forms, &str);

/// Routes over a state, each with the forms of what its handlers read.
pub(crate) struct Routes<S> {
    router: Router<S>,
    inputs: Vec<(&'static str, &'static str, Describe)>,
}

impl<S: Clone + Send + Sync + 'static> Routes<S> {
    pub(crate) fn new() -> Self {
        Self { router: Router::new(), inputs: Vec::new() }
    }

    pub(crate) fn route(mut self, path: &'static str, methods: Methods<S>) -> Self {
        self.router = self.router.route(path, methods.router);
        self.inputs.extend(methods.inputs.into_iter().map(|(method, read)| (method, path, read)));
        self
    }

    pub(crate) fn with_state(self, state: S) -> Router {
        self.router.with_state(state)
    }

    pub(crate) fn describe(&self, forms: &mut Forms) {
        for (method, path, describe) in &self.inputs {
            describe(forms, &format!("{method} {path}"));
        }
    }
}

/// The handlers of one route by their methods.
pub(crate) struct Methods<S> {
    router: MethodRouter<S>,
    inputs: Vec<(&'static str, Describe)>,
}

impl<S: Clone + Send + Sync + 'static> Methods<S> {
    /// Accepts bodies of this many bytes, in place of the limit of the settings.
    pub(crate) fn up_to(self, bytes: usize) -> Self {
        Self { router: self.router.layer(DefaultBodyLimit::max(bytes)), ..self }
    }
}

macro_rules! methods {
    ($($method:ident)*) => {
        $(pub(crate) fn $method<H, T, S>(handler: H) -> Methods<S>
        where
            H: Handler<T, S>,
            T: Inputs,
            S: Clone + Send + Sync + 'static,
        {
            Methods { router: MethodRouter::new(), inputs: Vec::new() }.$method(handler)
        })*

        impl<S: Clone + Send + Sync + 'static> Methods<S> {
            $(pub(crate) fn $method<H: Handler<T, S>, T: Inputs>(mut self, handler: H) -> Self {
                self.router = self.router.$method(boxed(handler));
                self.inputs.push((stringify!($method), T::describe));
                self
            })*
        }
    };
}

methods! { get post put patch delete options }
