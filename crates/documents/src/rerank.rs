//! Puts what was found into a better order; whatever goes wrong, the order that was there stays.

use async_trait::async_trait;

/// Something that ranks passages by how well they answer a question, usually a model.
#[async_trait]
pub trait Reranker: Send + Sync {
    /// Returns the numbers of the passages, counted from 1, best first; none where it cannot.
    async fn rank(&self, question: &str, passages: &[String]) -> Option<Vec<usize>>;
}

/// Returns the order that a ranking asks for: places of passages, each once.
///
/// Numbers that name no passage and repetitions are dropped; passages that it leaves out follow in the order in which they
/// were. A ranking that names none is none.
pub fn reordered(ranking: Option<Vec<usize>>, count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = Vec::with_capacity(count);
    for number in ranking.unwrap_or_default() {
        let place = number.wrapping_sub(1);
        if place < count && !order.contains(&place) {
            order.push(place);
        }
    }
    let rest: Vec<usize> = (0..count).filter(|place| !order.contains(place)).collect();
    order.extend(rest);
    order
}

#[cfg(test)]
mod tests {
    use super::reordered;

    #[test]
    fn a_ranking_of_any_kind_leaves_every_passage_there_once() {
        assert_eq!(reordered(Some(vec![3, 1, 2]), 3), [2, 0, 1]);
        assert_eq!(reordered(Some(vec![2, 2, 9, 0]), 3), [1, 0, 2]);
        assert_eq!(reordered(Some(Vec::new()), 3), [0, 1, 2]);
        assert_eq!(reordered(None, 3), [0, 1, 2]);
    }
}
