"""The verdict of a sweep in words: what populations promise, which is nearer, and what cannot be told.

Numbers in, sentences out. What is compared with what is `verdict.py`'s.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from polyurn.comparison.estimates import Estimate
from polyurn.sweeps.run_scores import LOSS
from polyurn.wording import counted

_SMALL = 0.005  # points below it are 0 for a reader
_ROUNDING = 1e-9  # a difference of 0 comes out as something like 1e-17
# How much of the absolute difference the signed one must be for all of it, or most, to have a direction:
# what is missing are errors that cancelled. Nobody plans by a twentieth of a difference.
_ALL, _MOST = 0.95, 0.5


@dataclass(frozen=True)
class Wording:
    """How the numbers of one verdict are said; `in_points`: a fraction's differences in hundredths."""

    metric: str
    in_points: bool
    confidence: float

    def number(self, value: float) -> str:
        """A difference in the metric, without its unit.

        Examples
        --------
        >>> Wording("accuracy", True, 0.95).number(0.0318), Wording("loss", False, 0.95).number(0.5)
        ('3.2', '0.5')
        """
        if math.isnan(value):
            return "–"
        if not self.in_points:
            return "0" if abs(value) < _ROUNDING else f"{value:.3g}"
        points = 100 * value
        if abs(points) < _SMALL:
            return "0.0"
        return f"{points:.1f}" if abs(points) >= 0.1 else f"{points:.2f}"

    def amount(self, value: float) -> str:
        """A difference in the metric with its unit."""
        return f"{self.number(value)} points" if self.in_points else self.number(value)

    def estimate(self, found: Estimate) -> str:
        """A difference with its unit, and the interval behind it if there is one."""
        if not has_interval(found):
            return self.amount(found.value)
        return f"{self.amount(found.value)} ({self.number(found.low)} to {self.number(found.high)})"

    def promises(self, found: Mapping[str, tuple[Estimate, Estimate]]) -> str:
        """What the clients of each population promise too much or too little of the metric.

        The number is the absolute difference, as the noise floor's is. Where the signed one is smaller,
        because errors cancel over settings or seeds, nothing is promised: they "are off by" it.

        Parameters
        ----------
        found : mapping of a population's name to two differences
            The signed one, simulated less true, and the absolute one.

        Examples
        --------
        >>> iid, mdm = Estimate(0.032, 0.029, 0.035), Estimate(-0.004, -0.006, -0.002)
        >>> say, size = Wording("accuracy", True, 0.95), Estimate(0.004, 0.002, 0.006)
        >>> say.promises({"iid": (iid, iid), "mdm": (mdm, size)})
        'IID clients promise 3.2 points too much, mdm clients 0.4 points too little'
        >>> say.promises({"a": (Estimate(-0.013, -0.05, 0.024), Estimate(0.07, 0.06, 0.08))})
        'a clients are off by 7.0 points (in both directions)'
        """
        loss, parts, before = self.metric == LOSS, [], ""
        for name, (signed, absolute) in found.items():
            if abs(signed.value) >= _ALL * absolute.value:
                verb, again = ("promise a loss that is " if loss else "promise "), ""
            else:
                verb, again = (
                    ("promise a loss off by ", "off by ") if loss else ("are off by ", "by ")
                )
            amount, way = self.amount(absolute.value), self._way(signed, absolute)
            parts.append(f"{clients(name)} {again if verb == before else verb}{amount} {way}")
            before = verb
        return ", ".join(parts)

    def floor(self, difference: Estimate) -> str:
        """How much the true clients themselves differ when they are trained again."""
        return f"the true clients trained again differ by {self.amount(difference.value)}"

    def nearer(self, first: str, second: str, paired: Estimate) -> str:
        """Which of two populations is nearer to the true clients, by their difference.

        Examples
        --------
        >>> say = Wording("accuracy", True, 0.95)
        >>> say.nearer("b", "a", Estimate(0.024, 0.019, 0.029))
        'a clients are nearer to the true ones than b clients by 2.4 points (95 % interval 1.9 to 2.9)'
        >>> say.nearer("iid", "mdm", Estimate(0.003, -0.004, 0.01))
        'it cannot be told which of mdm and IID clients are nearer: 0.3 points (-0.4 to 1.0)'
        """
        # In the passive: the headline joins it to what clients are, and it is not they who cannot tell.
        which = f"it cannot be told which of {called(second)} and {clients(first)} are nearer"
        if math.isnan(paired.value):
            return f"{which}: they share no run"
        if not excludes_zero(paired):
            return f"{which}: {self._open(paired)}"
        if paired.value < 0:
            return self.nearer(second, first, negative(paired))
        return (
            f"{clients(second)} are nearer to the true ones than {clients(first)} by "
            f"{self.amount(paired.value)} ({self._interval(paired)})"
        )

    def loses(self, name: str, regret: Estimate, *, n_seeds: int) -> str:
        """What is lost by the settings that win on these clients, if that can be told from nothing.

        Where it was nothing in each of several seeds, that is all that is said: other seeds may differ.
        """
        what = f"tuning on {clients(name)}"
        if has_interval(regret) and max(abs(regret.low), abs(regret.high)) < _ROUNDING:
            return f"{what} lost nothing in these {counted(n_seeds, 'seed')}"
        if not excludes_zero(regret):
            return f"cannot tell whether {what} loses anything: {self._open(regret)}"
        return f"{what} loses {self.amount(regret.value)} ({self._interval(regret)})"

    def loses_more(self, first: str, second: str, paired: Estimate) -> str:
        """Whose settings lose more on the true clients, if that can be told."""
        if math.isnan(paired.value):
            return (
                f"cannot tell whether tuning on {first} or {second} loses more: they share no run"
            )
        if not excludes_zero(paired):
            what = f"cannot tell whether tuning on {first} or {second} loses more"
            return f"{what}: {self._open(paired)}"
        if paired.value < 0:
            return self.loses_more(second, first, negative(paired))
        return (
            f"tuning on {clients(first)} loses {self.amount(paired.value)} more than on "
            f"{clients(second)} ({self._interval(paired)})"
        )

    def _way(self, signed: Estimate, absolute: Estimate) -> str:
        """In which direction clients mislead, if that can be told."""
        more, less = ("too high", "too low") if self.metric == LOSS else ("too much", "too little")
        way = more if signed.value > 0 else less
        if abs(signed.value) >= _ALL * absolute.value:
            return way if excludes_zero(signed) else f"{way} (cannot be told from 0)"
        mostly = abs(signed.value) >= _MOST * absolute.value and excludes_zero(signed)
        return f"(mostly {way})" if mostly else "(in both directions)"

    def _open(self, found: Estimate) -> str:
        """A difference that may be 0, or that nobody knows the interval of."""
        if has_interval(found):
            return self.estimate(found)
        return f"{self.amount(found.value)}, and one seed has no interval"

    def _interval(self, found: Estimate) -> str:
        shown = f"{self.number(found.low)} to {self.number(found.high)}"
        return f"{100 * self.confidence:g} % interval {shown}"


def clients(name: str) -> str:
    """What the clients of a population are called in a sentence."""
    return f"{called(name)} clients"


def called(name: str) -> str:
    """What a population is called in a sentence."""
    return "IID" if name == "iid" else name


def has_interval(found: Estimate) -> bool:
    """Whether there were enough seeds for one."""
    return not math.isnan(found.low)


def excludes_zero(found: Estimate) -> bool:
    """Whether the number can be told from 0; never without an interval."""
    return has_interval(found) and (found.low > 0 or found.high < 0)


def negative(found: Estimate) -> Estimate:
    """The same difference, seen from the other side."""
    return Estimate(-found.value, -found.high, -found.low)
