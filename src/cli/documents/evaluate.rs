//! `documents evaluate`.

use std::path::PathBuf;

use crate::cli::{Error, Exit, files, output};
use perihelion_runtime::{Documents, SearchWeights, read_judgements};

#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct Args {
    /// Judgements as JSON Lines, each with a `question` and a `quote`, a `document` or both
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Fail if recall among the first ten hits is lower
    #[arg(long, value_name = "0-1")]
    least_recall: Option<f64>,
    /// Weight of keyword search. Defaults to the settings
    #[arg(long, alias = "words", value_name = "N", value_parser = weight, requires = "vector_weight")]
    keyword_weight: Option<f64>,
    /// Weight of vector search. Defaults to the settings
    #[arg(long, alias = "meaning", value_name = "N", value_parser = weight, requires = "keyword_weight")]
    vector_weight: Option<f64>,
    /// Rank the hits with the model, as the documents agent does, and check whole passages
    #[arg(long)]
    rerank: bool,
}

fn weight(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(weight) if weight.is_finite() && weight >= 0.0 => Ok(weight),
        _ => Err("expected a number of at least 0".to_owned()),
    }
}

pub(super) async fn run(documents: &Documents, args: &Args, json: bool) -> Result<Exit, Error> {
    let judgements =
        read_judgements(&files::read(&args.file)?).map_err(perihelion_runtime::Error::from)?;
    let weights = args.keyword_weight.zip(args.vector_weight);
    let weights = weights.map(|(words, meaning)| SearchWeights { words, meaning });
    let measures = documents.evaluate(&judgements, weights, args.rerank).await?;
    if json {
        output::json(&measures)?;
    } else {
        output::text(&format!(
            "questions  {}\nrecall@10  {:.3}\nMRR        {:.3}\nnDCG@10    {:.3}",
            measures.questions,
            measures.recall_at_10,
            measures.mean_reciprocal_rank,
            measures.ndcg_at_10
        ))?;
        for missed in &measures.missed {
            output::note(&format!("not found: {missed}"));
        }
    }
    let enough = args.least_recall.is_none_or(|least| measures.recall_at_10 >= least);
    Ok(if enough { Exit::Done } else { Exit::Failed })
}
