//! Statistics of paired differences. The same data always yields the same numbers.

use serde::Serialize;

/// Number of bootstrap resamples.
const RESAMPLES: usize = 10_000;
/// Minimum number of pairs for an interval. With fewer pairs, bootstrap intervals are too narrow.
pub(crate) const MIN_PAIRS: usize = 10;

/// A 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// The lower bound.
    pub low: f64,
    /// The upper bound.
    pub high: f64,
}

/// Returns the confidence interval for the mean of the differences, computed by the percentile
/// bootstrap: the differences are resampled with replacement 10,000 times, and the interval covers
/// the middle 95 % of the means. Returns `None` for fewer than 10 pairs.
pub(crate) fn bootstrap(differences: &[f64]) -> Option<Interval> {
    if differences.len() < MIN_PAIRS {
        return None;
    }
    let mut random = SplitMix64(0x5eed);
    let count = differences.len();
    let mut means: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let draw = |_| differences.get(random.below(count)).copied().unwrap_or_default();
            (0..count).map(draw).sum::<f64>() / count as f64
        })
        .collect();
    means.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let index = (share * (RESAMPLES - 1) as f64).round() as usize;
        means.get(index).copied().unwrap_or_default()
    };
    Some(Interval { low: at(0.025), high: at(0.975) })
}

/// Returns the two-sided p-value of the exact sign test: the probability of a split at least this
/// uneven if a differing pair is equally likely to be better or worse. For the metric `success`
/// with one attempt per task, this is McNemar's exact test.
pub(crate) fn sign_test(better: usize, worse: usize) -> f64 {
    let (n, k) = (better + worse, better.min(worse));
    // The tail is the sum of C(n, i) / 2^n for i from 0 to k. Each term is computed from the
    // previous one, in logarithms, so that a large n causes neither overflow nor underflow.
    let mut log_term = -(n as f64) * std::f64::consts::LN_2;
    let mut tail = log_term.exp();
    for i in 0..k {
        log_term += ((n - i) as f64 / (i + 1) as f64).ln();
        tail += log_term.exp();
    }
    (2.0 * tail).min(1.0)
}

/// A small pseudo-random number generator with a fixed seed.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a random number below `bound`. The bias is less than `bound / 2^64`.
    fn below(&mut self, bound: usize) -> usize {
        let wide = u128::from(self.next()) * bound as u128;
        (wide >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sign_test_has_the_values_of_the_binomial_distribution() {
        for (better, worse, expected) in [
            (0, 0, 1.0),
            (1, 0, 1.0),
            (5, 0, 0.0625),
            (0, 6, 0.03125),
            (5, 1, 0.21875),
            (10, 2, 0.038_574_218_75),
            (4, 4, 1.0),
        ] {
            let p = sign_test(better, worse);
            assert!((p - expected).abs() < 1e-12, "{better}:{worse} is {p}");
        }
        let p = sign_test(3_000, 1_000);
        assert!((0.0..1e-100).contains(&p), "{p}");
    }

    #[test]
    fn the_bootstraps_interval_is_near_the_normal_one() {
        // 100 differences, of which 30 are 1 and 70 are 0: mean 0.3, standard error 0.0458.
        let differences: Vec<f64> = (0..100).map(|i| f64::from(i < 30)).collect();
        let Interval { low, high } = bootstrap(&differences).unwrap();
        assert!((low - 0.21).abs() < 0.015 && (high - 0.39).abs() < 0.015, "{low} to {high}");
        assert_eq!(bootstrap(&differences), bootstrap(&differences));
        assert_eq!(bootstrap(&[0.0; 10]), Some(Interval { low: 0.0, high: 0.0 }));
        assert_eq!(bootstrap(&[1.0; 9]), None);
    }
}
