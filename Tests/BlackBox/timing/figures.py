"""What two samples of times say about each other. `x` and `y` hold the paired times of two classes, in any unit."""

import bisect
import math
from dataclasses import dataclass

#: 95 % of a normal distribution.
Z95 = 1.959964


@dataclass(frozen=True)
class Area:
    """The area under the ROC curve: the chance that a request of class Y takes longer than one of class X (ties count half)."""

    value: float
    low: float
    high: float

    def within(self, band):
        """Whether the whole 95 % interval lies in 0.5 ± band."""
        return self.low >= 0.5 - band and self.high <= 0.5 + band

    def beyond(self, band):
        """Whether the whole 95 % interval lies outside 0.5 ± band: a difference that certainly matters."""
        return self.low > 0.5 + band or self.high < 0.5 - band


def area(x, y):
    """AUC with the interval of DeLong's placements, the pairing accounted for: pairs are independent, the two times of one pair are not."""
    assert len(x) == len(y) > 1, "pairs wanted"
    count = len(x)
    sorted_x, sorted_y = sorted(x), sorted(y)
    longer = [_share_above(sorted_y, value) for value in x]
    shorter = [1.0 - _share_above(sorted_x, value) for value in y]
    value = sum(longer) / count
    spread = sum((a + b - 2.0 * value) ** 2 for a, b in zip(longer, shorter)) / (count - 1)
    half = Z95 * math.sqrt(spread / count)
    return Area(value, value - half, value + half)


def _share_above(ordered, value):
    left, right = bisect.bisect_left(ordered, value), bisect.bisect_right(ordered, value)
    return (len(ordered) - right + 0.5 * (right - left)) / len(ordered)


def wilcoxon(x, y):
    """The two-sided p of Wilcoxon's signed-rank test on the paired differences (normal approximation, ties averaged)."""
    differences = sorted((b - a for a, b in zip(x, y) if a != b), key=abs)
    count = len(differences)
    if count < 10:
        return 1.0
    positive, ties, start = 0.0, 0.0, 0
    while start < count:
        end = start
        while end < count and abs(differences[end]) == abs(differences[start]):
            end += 1
        rank = (start + 1 + end) / 2
        positive += rank * sum(1 for d in differences[start:end] if d > 0)
        ties += (end - start) ** 3 - (end - start)
        start = end
    mean = count * (count + 1) / 4
    variance = count * (count + 1) * (2 * count + 1) / 24 - ties / 48
    return math.erfc(abs(positive - mean) / math.sqrt(2 * variance)) if variance > 0 else 1.0


def quantile(ordered, share):
    """The quantile of an ordered sample, interpolated."""
    position = share * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def decile_differences(x, y):
    """Y less X at the deciles 1 to 9."""
    sorted_x, sorted_y = sorted(x), sorted(y)
    return [quantile(sorted_y, tenth / 10) - quantile(sorted_x, tenth / 10) for tenth in range(1, 10)]


def attacker(x, y, statistic, size=100):
    """How well somebody tells accounts apart who asks `size` times for each and keeps one figure of them (`min` or `mean`).

    Returns the AUC over the accounts (0.5 is guessing), whichever way it points, and how many accounts of each class there were.
    """
    accounts_x, accounts_y = _grouped(x, statistic, size), _grouped(y, statistic, size)
    if len(accounts_x) < 2:
        return 0.5, len(accounts_x)
    value = sum(_share_above(sorted(accounts_y), figure) for figure in accounts_x) / len(accounts_x)
    return max(value, 1.0 - value), len(accounts_x)


def _grouped(times, statistic, size):
    figure = {"min": min, "mean": lambda group: sum(group) / len(group)}[statistic]
    return [figure(times[start:start + size]) for start in range(0, len(times) - size + 1, size)]
