//! The nodes of the graph: each can run again, and skips stored work.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{DocumentModel, adding::Parts};
use perihelion_documents::{Input, Prepared, Step};
use perihelion_engine::graph::{
    Context, EffectClass, EffectFailure, EffectRequest, NodeError, NodeOutput, Outcome,
};

perihelion_engine::graph_state! {
    /// A document that is being added: its origin, and its progress.
    pub struct Work, update WorkUpdate, version 1 {
        path: String => overwrite,
        collection: String => overwrite,
        title: Option<String> => overwrite,
        /// Of the file's bytes.
        hash: String => overwrite,
        chunks: u64 => overwrite,
        described: bool => overwrite,
        /// Texts that the embedding model was asked.
        embedded: u64 => overwrite,
        /// Why it is found by words alone.
        by_words_only: Option<String> => overwrite,
        document: Option<Document> => overwrite,
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    pub id: String,
    pub version: u64,
}

type Answer = Result<NodeOutput<Work>, NodeError>;

fn refused(error: &perihelion_documents::Error) -> NodeError {
    NodeError::failed(error.class(), error)
}

/// Returns the document's chunks: from this process, or parsed again.
async fn prepared<'p>(parts: &'p Parts, ctx: &Context<Work>) -> Result<&'p Prepared, NodeError> {
    let prepare = async || {
        let state = ctx.state();
        let bytes = (parts.read)(&state.path).map_err(|error| {
            NodeError::failed("file", format!("cannot read {}: {error}", state.path))
        })?;
        if blake3::hash(&bytes).to_hex().as_str() != state.hash {
            let text =
                format!("the file has changed since it was added; add it again: {}", state.path);
            return Err(NodeError::failed("changed", text));
        }
        let input = Input {
            path: state.path.clone(),
            bytes,
            collection: state.collection.clone(),
            title: state.title.clone(),
            now: ctx.now().await?,
        };
        parts.documents.library.prepare(input).await.map_err(|error| refused(&error))
    };
    parts.prepared.get_or_try_init(prepare).await
}

pub(super) async fn parse(parts: Arc<Parts>, ctx: Context<Work>) -> Answer {
    (parts.listener)(Step::Parse);
    let prepared = prepared(&parts, &ctx).await?;
    let chunks = prepared.chunks.children.len() as u64;
    Ok(NodeOutput::update(WorkUpdate::new().chunks(chunks)))
}

pub(super) async fn describe(parts: Arc<Parts>, ctx: Context<Work>) -> Answer {
    let Some(model) = parts.documents.model.clone() else {
        return Ok(NodeOutput::update(WorkUpdate::new().described(false)));
    };
    (parts.listener)(Step::Describe);
    let prepared = prepared(&parts, &ctx).await?;
    let describer = DocumentModel { model, thread: parts.thread.to_string() };
    // The request names the document and does not hold it: what a thread keeps outlives a deleted document.
    let request = EffectRequest {
        class: EffectClass::Inquiry,
        name: "summarizer".to_owned(),
        request: json!({ "describe": prepared.id, "hash": prepared.hash }),
    };
    let outcome = ctx
        .effect(
            request,
            Box::new(|_| {
                Box::pin(async {
                    let described = parts.documents.library.describe(prepared, &describer).await;
                    match described {
                        Ok(described) => Ok(json!({ "described": described })),
                        Err(error) => Err(EffectFailure::NoEffect(error.to_string())),
                    }
                }) as BoxFuture<'_, Result<Value, EffectFailure>>
            }),
        )
        .await?;
    let described = match outcome {
        Outcome::Value(value) => value["described"].as_bool().unwrap_or(false),
        Outcome::Failed(_) => false,
    };
    Ok(NodeOutput::update(WorkUpdate::new().described(described)))
}

pub(super) async fn embed(parts: Arc<Parts>, ctx: Context<Work>) -> Answer {
    let Some(model) = &parts.documents.embeddings else {
        return Ok(NodeOutput::update(WorkUpdate::new().embedded(0)));
    };
    let failed = |error: perihelion_documents::Error| refused(&error);
    let prepared = prepared(&parts, &ctx).await?;
    parts.documents.library.stage(prepared).await.map_err(failed)?;
    // All of them, so that a re-run makes the same batches and reads its records back.
    let meanings = prepared.meanings();
    let mut embedded = 0;
    for (number, batch) in meanings.chunks(model.batch().max(1)).enumerate() {
        let done = number * model.batch().max(1);
        (parts.listener)(Step::Embed { done, of: meanings.len() });
        let request = EffectRequest {
            class: EffectClass::Inquiry,
            name: "embeddings".to_owned(),
            request: json!({ "model": model.model(), "document": prepared.id, "hash": prepared.hash, "from": done, "texts": batch.len() }),
        };
        let outcome = ctx
            .effect(
                request,
                Box::new(|_| {
                    Box::pin(async {
                        let asked = parts.documents.library.embed_batch(&**model, batch).await;
                        asked
                            .map(|count| json!({ "texts": count }))
                            .map_err(EffectFailure::no_effect)
                    }) as BoxFuture<'_, Result<Value, EffectFailure>>
                }),
            )
            .await?;
        match outcome {
            Outcome::Value(value) => embedded += value["texts"].as_u64().unwrap_or(0),
            // It is found by words: a later addition or `reindex` embeds what is missing.
            Outcome::Failed(why) => {
                let update = WorkUpdate::new().embedded(embedded).by_words_only(Some(why));
                return Ok(NodeOutput::update(update));
            }
        }
    }
    Ok(NodeOutput::update(WorkUpdate::new().embedded(embedded).by_words_only(None)))
}

pub(super) async fn keep(parts: Arc<Parts>, ctx: Context<Work>) -> Answer {
    (parts.listener)(Step::Keep);
    let prepared = prepared(&parts, &ctx).await?;
    let document = parts.documents.library.flip(prepared).await.map_err(|error| refused(&error))?;
    let document = Document { id: document.id, version: document.version };
    Ok(NodeOutput::update(WorkUpdate::new().document(Some(document))))
}
