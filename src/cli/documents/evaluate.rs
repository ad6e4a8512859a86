//! `documents evaluate`.

use std::path::PathBuf;

use crate::cli::{Error, Exit, output};
use perihelion_runtime::{Documents, SearchWeights, read_judgements};

#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct Args {
    /// File of judgements: lines of JSON with `question`, and `quote`, `document` or both
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Fail below this share of answers among the first ten hits
    #[arg(long, value_name = "0-1")]
    least_recall: Option<f64>,
    /// How much words count, instead of documents.weight_of_words of the settings
    #[arg(long, value_name = "N", value_parser = weight, requires = "meaning")]
    words: Option<f64>,
    /// How much meaning counts, instead of documents.weight_of_meaning of the settings
    #[arg(long, value_name = "N", value_parser = weight, requires = "words")]
    meaning: Option<f64>,
    /// Have the model rank what was found, as the documents agent does, and look into the whole passages
    #[arg(long)]
    rerank: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn weight(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(weight) if weight.is_finite() && weight >= 0.0 => Ok(weight),
        _ => Err("a weight is a number, 0 or more".to_owned()),
    }
}

pub(super) async fn run(documents: &Documents, args: &Args) -> Result<Exit, Error> {
    let text = std::fs::read_to_string(&args.file)
        .map_err(|source| Error::Read { path: args.file.clone(), source })?;
    let judgements = read_judgements(&text).map_err(perihelion_runtime::Error::from)?;
    let weights = args.words.zip(args.meaning);
    let weights = weights.map(|(words, meaning)| SearchWeights { words, meaning });
    let measures = documents.evaluate(&judgements, weights, args.rerank).await?;
    if args.json {
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
