//! Effects and questions with the caller's own types. Functions as nodes.

use std::error::Error as StdError;
use std::future::Future;
use std::iter::successors;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;

use super::node::{Context, Node, NodeError, NodeOutput, TaskContext};
use super::port::{from_json, to_json};
use super::{EffectClass, EffectFailure, EffectRequest, Outcome, Perform, State};

/// Kind of the failures of nodes whose effect failed.
const FAILED: &str = "effect";

/// Why an effect failed; `?` makes it of any error, and then the effect may have happened.
#[derive(Debug)]
pub struct EffectError(EffectFailure);

impl EffectError {
    /// Makes a failure that certainly had no effect, so that it may be tried again.
    pub fn no_effect(message: impl ToString) -> Self {
        Self(EffectFailure::no_effect(message))
    }
}

impl<E: StdError + 'static> From<E> for EffectError {
    fn from(error: E) -> Self {
        let known = (&error as &dyn StdError).downcast_ref::<EffectFailure>().cloned();
        Self(known.unwrap_or_else(|| EffectFailure::Unknown(with_sources(&error))))
    }
}

/// Makes the methods that perform effects of each class.
macro_rules! effects {
    ($($(#[$doc:meta])+ $name:ident: $class:expr;)+) => {$(
        $(#[$doc])+
        pub async fn $name<'a, T, Fut>(
            &self,
            name: &str,
            request: &(impl Serialize + Sync + ?Sized),
            perform: impl FnMut(String) -> Fut + Send + 'a,
        ) -> Result<T, NodeError>
        where
            T: Serialize + DeserializeOwned + Send + 'a,
            Fut: Future<Output = Result<T, EffectError>> + Send + 'a,
        {
            self.typed($class, name, request, perform).await
        }
    )+};
}

impl TaskContext {
    effects! {
        /// Performs an effect that must not happen twice, or reads its recorded outcome back.
        ///
        /// Its intent is committed before `perform` is called with a key that is stable over all attempts. If a crash
        /// or an error leaves the outcome unknown, a person is asked; [`EffectError::no_effect`] states that the effect
        /// did not happen.
        ///
        /// # Errors
        /// [`NodeError`] when it failed, a person must decide, the run is cancelled, or its outcome does not fit `T`.
        once: EffectClass::Action { repeatable: false };

        /// Performs an effect that may be sent again under the same key, or reads its recorded outcome back.
        ///
        /// If a crash leaves the outcome unknown, the effect is sent again, with the same key.
        idempotent: EffectClass::Action { repeatable: true };

        /// Performs a request that changes nothing, or returns its recorded answer.
        ///
        /// # Errors
        /// As [`TaskContext::once`], but without a question to a person.
        read_only: EffectClass::Inquiry;
    }

    /// Asks a person and returns the answer when it fits `A`.
    ///
    /// If an answer does not fit, the same question is asked again, with a `problem`.
    ///
    /// # Errors
    /// [`NodeError::Interrupted`] until it is answered: pass it on with `?`.
    pub async fn ask<A: DeserializeOwned>(
        &self,
        kind: &str,
        question: &(impl Serialize + Sync + ?Sized),
    ) -> Result<A, NodeError> {
        let question = to_json(FAILED, format_args!("the request {kind}"), question)?;
        let mut payload = question.clone();
        loop {
            let answer = self.port().interrupt(kind, question.clone(), payload).await?;
            match serde_json::from_value(answer) {
                Ok(answer) => return Ok(answer),
                Err(error) => {
                    let problem = format!("the last answer does not fit: {error}");
                    payload = json!({ "question": question, "problem": problem });
                }
            }
        }
    }

    async fn typed<'a, T, Fut>(
        &self,
        class: EffectClass,
        name: &str,
        request: &(impl Serialize + Sync + ?Sized),
        mut perform: impl FnMut(String) -> Fut + Send + 'a,
    ) -> Result<T, NodeError>
    where
        T: Serialize + DeserializeOwned + Send + 'a,
        Fut: Future<Output = Result<T, EffectError>> + Send + 'a,
    {
        let request = to_json(FAILED, format_args!("the request {name}"), request)?;
        let request = EffectRequest { class, name: name.to_owned(), request };
        let perform: Perform<'a> = Box::new(move |key| {
            let performed = perform(key);
            Box::pin(async move {
                let value = performed.await.map_err(|error| error.0)?;
                serde_json::to_value(value).map_err(|error| {
                    EffectFailure::Unknown(format!("its outcome is not JSON: {error}"))
                })
            })
        });
        match self.port().effect(request, perform).await? {
            Outcome::Value(value) => {
                from_json(FAILED, format_args!("the outcome of {name}"), value)
            }
            Outcome::Failed(message) => {
                Err(NodeError::retryable(FAILED, format!("{name} failed: {message}")))
            }
        }
    }
}

fn with_sources(error: &(dyn StdError + 'static)) -> String {
    let all = successors(Some(error), |error| (**error).source());
    all.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// Makes a node of an async function or closure.
pub fn node_fn<S, F, Fut>(function: F) -> Arc<dyn Node<S>>
where
    S: State,
    F: Fn(Context<S>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<NodeOutput<S>, NodeError>> + Send + 'static,
{
    struct FnNode<F>(F);

    #[async_trait]
    impl<S, F, Fut> Node<S> for FnNode<F>
    where
        S: State,
        F: Fn(Context<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<NodeOutput<S>, NodeError>> + Send + 'static,
    {
        async fn run(&self, ctx: Context<S>) -> Result<NodeOutput<S>, NodeError> {
            (self.0)(ctx).await
        }
    }

    Arc::new(FnNode(function))
}

/// Makes a node of an async function that takes a client, or any other value, and the context.
pub fn node_with<S, C, F, Fut>(client: C, function: F) -> Arc<dyn Node<S>>
where
    S: State,
    C: Clone + Send + Sync + 'static,
    F: Fn(C, Context<S>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<NodeOutput<S>, NodeError>> + Send + 'static,
{
    node_fn(move |ctx| function(client.clone(), ctx))
}

/// Makes a node of an async function with its own error type, which returns an update or an output.
///
/// A [`NodeError`] stays unchanged; any other error is a final failure of kind `error`.
pub fn try_node_fn<S, F, Fut, O, E>(function: F) -> Arc<dyn Node<S>>
where
    S: State,
    F: Fn(Context<S>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<O, E>> + Send + 'static,
    O: Into<NodeOutput<S>>,
    E: Into<Box<dyn StdError + Send + Sync>>,
{
    node_fn(move |ctx| {
        let running = function(ctx);
        async move {
            match running.await {
                Ok(output) => Ok(output.into()),
                Err(error) => Err(match error.into().downcast::<NodeError>() {
                    Ok(error) => *error,
                    Err(error) => NodeError::failed("error", with_sources(error.as_ref())),
                }),
            }
        }
    })
}
