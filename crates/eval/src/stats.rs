//! Quantiles of measured figures, and how far their means can be trusted.

use serde::{Deserialize, Serialize};

/// The standard normal quantile of a two-sided interval of 95 %.
const Z: f64 = 1.959_963_984_540_054;

const RESAMPLES: usize = 2_000;

/// A mean with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    pub mean: f64,
    pub low: f64,
    pub high: f64,
}

/// Estimates a share by the Wilson score interval, where an observation can count in part; without observations,
/// everything from 0 to 1 is possible.
///
/// Source: E. B. Wilson, "Probable inference, the law of succession, and statistical inference", Journal of the
/// American Statistical Association 22 (1927). Brown, Cai and DasGupta recommend it for few observations in "Interval
/// estimation for a binomial proportion", Statistical Science 16 (2001).
pub fn wilson(passed: f64, of: usize) -> Estimate {
    if of == 0 {
        return Estimate { mean: 0.0, low: 0.0, high: 1.0 };
    }
    let n = of as f64;
    let mean = passed / n;
    let scale = 1.0 + Z * Z / n;
    let center = (mean + Z * Z / (2.0 * n)) / scale;
    let half = Z / scale * (mean * (1.0 - mean) / n + Z * Z / (4.0 * n * n)).sqrt();
    Estimate { mean, low: (center - half).max(0.0), high: (center + half).min(1.0) }
}

/// Estimates a mean by the percentile bootstrap; the same seed gives the same interval.
///
/// Source: B. Efron and R. Tibshirani, "An Introduction to the Bootstrap" (1993), chapter 13.
pub fn bootstrap(values: &[f64], seed: u64) -> Estimate {
    if values.is_empty() {
        return Estimate::default();
    }
    let n = values.len();
    let mut random = fastrand::Rng::with_seed(seed);
    let mut resample = || (0..n).map(|_| values[random.usize(..n)]).sum::<f64>() / n as f64;
    let means: Vec<f64> = (0..RESAMPLES).map(|_| resample()).collect();
    Estimate {
        mean: values.iter().sum::<f64>() / n as f64,
        low: quantile(&means, 0.025),
        high: quantile(&means, 0.975),
    }
}

/// Returns the smallest value that at least this share of the values does not exceed; 0 without values.
///
/// It is definition 1 of R. J. Hyndman and Y. Fan, "Sample quantiles in statistical packages", The American
/// Statistician 50 (1996).
pub fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_near(one: f64, other: f64) -> bool {
        (one - other).abs() < 5e-4
    }

    /// The figures are those of Newcombe, "Two-sided confidence intervals for the single proportion" (1998), table I.
    #[test]
    fn shares_have_the_published_intervals() {
        for (passed, of, low, high) in [
            (81.0, 263, 0.2553, 0.3662),
            (15.0, 148, 0.0624, 0.1605),
            (0.0, 20, 0.0, 0.1611),
            (1.0, 29, 0.0061, 0.1718),
        ] {
            let share = wilson(passed, of);
            assert!(
                is_near(share.low, low) && is_near(share.high, high),
                "{passed}/{of}: {share:?}"
            );
        }
        assert_eq!(wilson(0.0, 0), Estimate { mean: 0.0, low: 0.0, high: 1.0 });
    }

    #[test]
    fn a_seed_decides_the_resamples_and_the_interval_covers_the_mean() {
        let values: Vec<f64> = (0..40).map(|n| f64::from(n % 5)).collect();
        let one = bootstrap(&values, 7);
        assert_eq!(one, bootstrap(&values, 7));
        let others = (8..16).map(|seed| bootstrap(&values, seed));
        assert!(others.into_iter().any(|other| other != one), "{one:?}");
        assert!(one.low < 2.0 && one.high > 2.0, "{one:?}");
        // By the central limit theorem, the half width is near 1.96 standard errors.
        let expected = Z * (2.0_f64 / 40.0).sqrt();
        assert!(((one.high - one.low) / 2.0 - expected).abs() < 0.05, "{one:?}");
        assert_eq!(bootstrap(&[3.0; 9], 1), Estimate { mean: 3.0, low: 3.0, high: 3.0 });
        assert_eq!(bootstrap(&[], 1), Estimate::default());
    }

    #[test]
    fn quantiles_are_values_that_were_measured() {
        let values = [30.0, 10.0, 20.0, 40.0];
        let of = |share| quantile(&values, share);
        assert_eq!((of(0.0), of(0.5), of(0.51), of(0.95)), (10.0, 20.0, 30.0, 40.0));
        assert_eq!(quantile(&[], 0.5), 0.0);
    }
}
