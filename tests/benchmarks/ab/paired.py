"""Paired yes-or-no results: the interval of the difference, and the power to show that it is small.

Tango's score interval (Statistics in Medicine 17, 1998, 891-908): the set of all differences that a score test with the
constrained likelihood does not reject. It keeps its level where few pairs differ, and does not shrink to nothing
where none does. With several repetitions of one instance the counts are first divided by their design effect, as
Rao and Scott do (Biometrics 48, 1992, 577-585).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist

FAR = 8.0  # standard deviations: what is beyond is less likely than one in 10 ** 14
BISECTIONS = 60  # halve the interval until doubles cannot tell its ends apart


@dataclass(frozen=True, slots=True)
class Pairs:
    """Counts of pairs; fractions after a correction."""

    both: float
    only_arm: float
    only_control: float
    neither: float

    @property
    def count(self) -> float:
        """All pairs."""
        return self.both + self.only_arm + self.only_control + self.neither

    @property
    def difference(self) -> float:
        """The arm's share less the control's."""
        return (self.only_arm - self.only_control) / self.count

    def over(self, effect: float) -> Pairs:
        """All counts divided by a design effect."""
        return Pairs(*(count / effect for count in (self.both, self.only_arm, self.only_control, self.neither)))


def count_pairs(clusters: Sequence[Sequence[tuple[bool, bool]]]) -> Pairs:
    """(control solved, arm solved) of each instance's repetitions, counted."""
    flat = [pair for cluster in clusters for pair in cluster]
    return Pairs(*(flat.count(kind) for kind in ((True, True), (False, True), (True, False), (False, False))))


def design_effect(clusters: Sequence[Sequence[tuple[bool, bool]]]) -> float:
    """How many times the variance of the difference is that of independent pairs: from 1 to the mean number of pairs of
    an instance, and that where nothing tells."""
    pairs = count_pairs(clusters)
    most = pairs.count / len(clusters)
    mean = pairs.difference
    apart = (pairs.only_arm + pairs.only_control) / pairs.count - mean * mean
    if most <= 1 or apart <= 0 or len(clusters) < 2:
        return most
    sums = (sum(arm - control for control, arm in cluster) - mean * len(cluster) for cluster in clusters)
    found = sum(each * each for each in sums) * len(clusters) / (len(clusters) - 1) / pairs.count
    return min(max(found / apart, 1.0), most)


def score(pairs: Pairs, difference: float) -> float:
    """Tango's statistic for a true difference; standard normal where it is the true one."""
    n, more, less = pairs.count, pairs.only_arm, pairs.only_control
    linear = -more - less + (2 * n - more + less) * difference
    constant = -less * difference * (1 - difference)
    only_control = (math.sqrt(max(0.0, linear * linear - 8 * n * constant)) - linear) / (4 * n)
    variance = n * (2 * only_control + difference * (1 - difference))
    away = more - less - n * difference
    # Differences in the last digit only are none: at the estimate itself both are zero but for rounding.
    if variance <= 1e-12 * n:
        return 0.0 if abs(away) <= 1e-9 * n else math.copysign(math.inf, away)
    return away / math.sqrt(variance)


def interval(pairs: Pairs, alpha: float) -> tuple[float, float]:
    """The two-sided interval of the difference (arm less control) with alpha on each side."""
    z = NormalDist().inv_cdf(1 - alpha)
    return _end(pairs, -1.0, z), _end(pairs, 1.0, z)


def _end(pairs: Pairs, outside: float, z: float) -> float:
    inside = pairs.difference
    for _ in range(BISECTIONS):
        middle = (inside + outside) / 2
        if abs(score(pairs, middle)) <= z:
            inside = middle
        else:
            outside = middle
    return inside


def is_not_inferior(pairs: Pairs, margin: float, alpha: float) -> bool:
    """True when the arm's share is surely less than `margin` (a share) below the control's."""
    return score(pairs, -margin) >= NormalDist().inv_cdf(1 - alpha)


def _binomial(n: int, p: float) -> Iterator[tuple[int, float]]:
    """(count, probability) of a binomial distribution, as far as FAR from its mean."""
    if not n:
        yield 0, 1.0
        return
    wide = FAR * (math.sqrt(n * p * (1 - p)) + 1)
    first, last = max(0, int(n * p - wide)), min(n, int(n * p + wide))
    log = math.lgamma(n + 1) - math.lgamma(first + 1) - math.lgamma(n - first + 1)
    likely = math.exp(log + first * math.log(p) + (n - first) * math.log1p(-p))
    for count in range(first, last + 1):
        yield count, likely
        likely *= (n - count) / (count + 1) * p / (1 - p)


def power(count: int, discordance: float, margin: float, alpha: float, difference: float = 0.0) -> float:
    """The probability that `count` pairs show an arm to be not inferior. The share `discordance` of pairs differs, more
    often to the arm's good by `difference` (a share of all). Exact: over all outcomes."""
    for_arm = (1 + difference / discordance) / 2
    found = 0.0
    for apart, likely in _binomial(count, discordance):
        enough = _enough(count, apart, margin, alpha)
        found += likely * sum(share for more, share in _binomial(apart, for_arm) if more >= enough)
    return found


def _enough(count: int, apart: int, margin: float, alpha: float) -> int:
    """Of `apart` pairs that differ, how many must be to the arm's good; one more than there are if all is too few."""
    low, high = 0, apart + 1
    while low < high:
        more = (low + high) // 2
        if is_not_inferior(Pairs(0, more, apart - more, count - apart), margin, alpha):
            high = more
        else:
            low = more + 1
    return low


def needed(discordance: float, margin: float, alpha: float, wanted: float) -> int:
    """How many pairs have that power: the least number, by bisection of a curve that is smooth but for a ripple."""
    z = NormalDist()
    guess = discordance * ((z.inv_cdf(1 - alpha) + z.inv_cdf(wanted)) / margin) ** 2
    low, high = max(1, int(guess / 2)), int(guess * 2) + 50
    while low < high:
        middle = (low + high) // 2
        if power(middle, discordance, margin, alpha) >= wanted:
            high = middle
        else:
            low = middle + 1
    return low
