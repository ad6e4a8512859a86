//! Functions as nodes.

use std::error::Error as StdError;
use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;

use super::node::{Context, Node, NodeError, NodeOutput};
use super::{State, typed::with_sources};

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

/// Makes a node of an async function that gets a client, or whatever else it needs, beside the context.
pub fn node_with<S, C, F, Fut>(client: C, function: F) -> Arc<dyn Node<S>>
where
    S: State,
    C: Clone + Send + Sync + 'static,
    F: Fn(C, Context<S>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<NodeOutput<S>, NodeError>> + Send + 'static,
{
    node_fn(move |ctx| function(client.clone(), ctx))
}

/// Makes a node of an async function with an error of its own, which hands back an update or an output.
///
/// A [`NodeError`] among its errors stays what it is; any other one is a final failure of kind `error`.
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
