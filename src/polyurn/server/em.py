"""Likelihood, gradient, Hessian and EM step from the sums of one round.

A model is τ and A, or a vector x: log α_k1, ..., log α_kC, log τ_k of each component in turn. Many
models of one shape can be stacked: arrays then have another first axis. Nothing is searched here.

The M-step of the alphas: at fixed responsibilities the expected log-likelihood of component k is
Σ_j F_j(α_j) - F_0(α_0), where F(α) = Σ_i ω_i Σ_{m<c_i} log(α + m). The clients send the weight of its
first term (how often the category is present), and F′ and F″ at the parameters of the query. A single
term replaces all others: the surrogate w log α + v log(α + q) has the same first term, F′ and F″.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Self

import numpy as np
from scipy.linalg import null_space

from polyurn.errors import ParameterError, ZeroLikelihoodError
from polyurn.model.mdm import MAX_CONCENTRATION, MDM, at_cap
from polyurn.model.scores import Mixture, scores
from polyurn.model.sizes import SizeBins, Sizes
from polyurn.server.fit_settings import NCategories, NComponents, Prior
from polyurn.server.m_step_kernel import maximised
from polyurn.typed.arrays import symmetric
from polyurn.typed.declared import Above, Bools, Floats, check_declared
from polyurn.wire import DivideStatistics, ExpectStatistics, Parameters
from polyurn.wording import counted

# An empty component keeps this many clients, so that its logarithm exists; it is dropped at the end.
_WEIGHT_PRIOR = 1e-6
# No logarithm of an alpha is below this; the cap on concentrations bounds them from above.
_LOWEST = -25.0
# Information is singular below this ratio of its eigenvalues, which its rounding could bring about.
_SINGULAR = np.finfo(float).eps ** 0.75
# Clients drawn from a mixture, for the information about its sizes; and the fewest of a size bin.
_DRAWN, _DRAWN_EACH = 20_000, 500


@dataclass(frozen=True)
class Problem:
    """What is to be fitted: the shape of the model, its sizes, and its priors.

    With `shared_sizes` all components have the same sizes, which then do not distinguish them.
    `size_prior` counts pseudo-clients per component, with the sizes of all clients together, and
    `category_prior` pseudo-tables per category and component.
    """

    n_components: NComponents
    n_categories: NCategories
    size_bins: SizeBins
    shared_sizes: bool
    size_prior: Prior
    category_prior: Annotated[float, Above(0)]  # so that alphas stay above 0

    def __post_init__(self) -> None:
        check_declared(self)

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_components, self.n_categories

    @property
    def n_parameters(self) -> int:
        """Free parameters besides those of the sizes."""
        return self.n_components * (self.n_categories + 1) - 1

    @property
    def trial_cost(self) -> int:
        """The number of numbers that a client sends for one trial."""
        k, c = self.shape
        return 2 + k * (self.size_bins.n_bins + 3 * c + 2)

    def hessian_cost(self, n_components: int) -> int:
        """The additional numbers that it sends for the Hessian of some components."""
        n = n_components * (self.n_categories + 1)
        return n * (n + 1) // 2

    def check_upload(self, max_upload: int) -> None:
        """Refuse a problem that exceeds a client's upload, before any client is asked."""
        if self.trial_cost > max_upload:
            k, bins = self.n_components, self.size_bins.n_bins
            advice = "raise max_upload or take fewer components"
            if bins > self.n_categories:
                advice += f", or fewer size bins than {bins:,} (sizes='binned')"
            raise ParameterError(
                f"{counted(k, 'component takes', 'components take')} {self.trial_cost:,} numbers from "
                f"a client, and {max_upload:,} are allowed; {advice}"
            )

    def size_masses(self, size_counts: Floats) -> Floats:
        """π_k from Σ ω by bin, drawn towards the sizes of all clients."""
        b = size_counts.shape[-1]
        together = size_counts.sum(axis=-2, keepdims=True) + self.size_prior / b
        together = together / together.sum(axis=-1, keepdims=True)
        if self.shared_sizes:
            return np.broadcast_to(together, size_counts.shape)
        masses = size_counts + self.size_prior * together
        total = masses.sum(axis=-1, keepdims=True)
        return np.asarray(np.where(total > 0, masses / np.where(total > 0, total, 1.0), together))

    def weights(self, size_counts: Floats) -> Floats:
        """τ from Σ ω by bin."""
        weights = size_counts.sum(axis=-1) + _WEIGHT_PRIOR
        return np.asarray(weights / weights.sum(axis=-1, keepdims=True))

    def em_step(self, alphas: Floats, sums: ExpectStatistics) -> tuple[Floats, Floats, Floats]:
        """The EM step from stacked models with alphas (n, K, C): weights, alphas, size masses."""
        prior = self.category_prior / float(np.asarray(sums.n_clients).flat[0])
        after = Surrogate.of(alphas, sums).maximise(alphas, category_prior=prior)
        return self.weights(sums.size_counts), after, self.size_masses(sums.size_counts)


@dataclass(frozen=True)
class Surrogate:
    """w, v and q of w log α + v log(α + q), each of shape (..., K, C + 1); the last entry is of α_0."""

    present: Floats
    weight: Floats
    shift: Floats

    @classmethod
    def of(cls, alphas: Floats, sums: ExpectStatistics) -> Self:
        """The surrogate of a round's sums, per client, at the alphas (..., K, C) that were sent."""
        n = np.asarray(sums.n_clients)[..., None, None]
        joined = sums.size_counts.sum(axis=-1)  # every client holds at least one point
        return cls.matching(
            with_total(alphas),
            _joined(sums.present, joined) / n,
            _joined(sums.tables, sums.total_tables) / n,
            _joined(sums.spread, sums.total_spread) / n,
        )

    def blend(self, new: Self, alphas: Floats, step: float) -> Self:
        """(1 - step) of this and `step` of the new one, exact to second order at `alphas`."""
        a = with_total(alphas)
        pairs = zip(self._sums(a), new._sums(a), strict=True)
        return self.matching(a, *((1 - step) * old + step * more for old, more in pairs))

    def maximise(self, alphas: Floats, *, category_prior: float) -> Floats:
        """The alphas that maximise Σ_j F_j(α_j) - F_0(α_0) + category_prior Σ_j log α_j, beginning here.

        Newton's method on a diagonal plus a rank-one matrix (Minka, 2000); if a step brings no gain, the
        paper's fixed point, which always does. A component without clients does not move.
        """
        c = alphas.shape[-1]
        present = self.present.copy()
        present[..., :c] += category_prior
        functions = (f.reshape(-1, c + 1) for f in (present, self.weight, self.shift))
        return np.asarray(maximised(*functions, alphas.reshape(-1, c))).reshape(alphas.shape)

    def _sums(self, a: Floats) -> tuple[Floats, ...]:
        """w, α F′ and -α² F″ at any alphas."""
        ratio = a / (a + self.shift)
        first = self.present + self.weight * ratio
        return self.present, first, self.present + self.weight * ratio**2

    @classmethod
    def matching(cls, a: Floats, present: Floats, tables: Floats, spread: Floats) -> Self:
        """The v and q with w + v α/(α + q) = tables and w + v α²/(α + q)² = spread."""
        more, less = tables - present, spread - present
        # With counts of at most one, only the first term exists, and the remainder is rounding.
        rounding = np.finfo(float).eps ** 0.75 * tables
        some = (more > rounding) & (less > rounding)
        ratio = np.where(some, more / np.where(some, less, 1.0), 2.0)  # (α + q)/α
        ratio = np.maximum(ratio, 1.0)
        return cls(present, np.where(some, more * ratio, 0.0), a * (ratio - 1.0))


def with_total(alphas: Floats) -> Floats:
    """The alphas of each component and their sum, along the last axis."""
    return _joined(alphas, alphas.sum(axis=-1))


def _joined(categories: Floats, total: Floats) -> Floats:
    return np.concatenate([categories, total[..., None]], axis=-1)


def capped(alphas: Floats) -> Floats:
    """The same proportions, with no concentration beyond the cap."""
    return np.asarray(
        alphas / np.maximum(alphas.sum(axis=-1, keepdims=True) / MAX_CONCENTRATION, 1)
    )


def to_x(weights: Floats, alphas: Floats) -> Floats:
    """The vector x of weights (..., K) and alphas (..., K, C)."""
    logs = _joined(np.log(alphas), np.log(weights))
    return logs.reshape(*logs.shape[:-2], -1)


def from_x(x: Floats, shape: tuple[int, int]) -> tuple[Floats, Floats]:
    """The weights (..., K) and alphas (..., K, C) that a vector stands for."""
    k, c = shape
    logs = x.reshape(*x.shape[:-1], k, c + 1)
    alphas = capped(np.exp(np.clip(logs[..., :c], _LOWEST, -_LOWEST)))
    weights = np.exp(logs[..., c] - logs[..., c].max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True), alphas


def hessian(sums: ExpectStatistics) -> Floats | None:
    """The Hessian of the mean log-likelihood in x, if the clients sent it."""
    return symmetric(sums.curvature / sums.n_clients) if sums.curvature.size else None


def covariance(
    hessian: Floats, point: "Point", n_clients: float, *, size_prior: float | None
) -> tuple[Floats, float] | None:
    """The covariance of x at a point, and how far from its optimum the point is.

    It is the inverse of the observed information within the constraints: τ sums to one, and a
    concentration at its cap stays there. Entries that less than one client informs about are held, with
    variance 0. Sizes that are learned for each component add to it; with a `size_prior` of None they do
    not. The distance is the Newton step of x, in standard errors of the entry that moves most. None
    where the information about the others is singular, or no maximum is there.
    """
    at = point.parameters()
    information, (k, c) = -n_clients * hessian, at.alphas.shape
    free = np.diag(information) >= 1.0
    ends = np.flatnonzero(at_cap(at.alphas))
    normals = np.zeros((1 + len(ends), k, c + 1))
    normals[0, :, c] = 1.0
    normals[np.arange(len(ends)) + 1, ends, :c] = _normals(at.alphas[ends])
    found = _inverse(information, free, normals)
    if found is None:
        return None
    step = n_clients * found @ point.gradient
    kinds = free.reshape(k, -1)[:, c].sum()  # components that sizes may tell apart
    if size_prior is not None and min(kinds, at.sizes.bins.n_bins) > 1:
        learned = _with_sizes(point, free.reshape(k, -1), normals[1:], n_clients, size_prior)
        if learned is None:
            return None
        found, step = found + learned[0], learned[1]
    errors = np.sqrt(np.diag(found))
    away = np.abs(step[errors > 0]) / errors[errors > 0]
    return found, float(away.max())


def _inverse(information: Floats, free: Bools, normals: Floats) -> Floats | None:
    """The inverse among free entries and across no normal, 0 elsewhere; None where it is singular."""
    at = np.flatnonzero(free)
    within = (
        null_space(normals.reshape(len(normals), -1)[:, at]) if len(normals) else np.eye(len(at))
    )
    values, axes = np.linalg.eigh(within.T @ information[np.ix_(at, at)] @ within)
    if not (len(values) and values[0] > _SINGULAR * values[-1]):
        return None
    found, axes = np.zeros(information.shape), within @ axes
    found[np.ix_(at, at)] = (axes / values) @ axes.T
    return found


def _with_sizes(
    point: "Point", free: Bools, normals: Floats, n_clients: float, size_prior: float
) -> tuple[Floats, Floats] | None:
    """What learned sizes add to the covariance of x, and the Newton step of x with them.

    With log(τ_k π_kb) for each size bin b in the place of log τ_k nothing has to sum to one. Clients
    have not sent the information about these: it is the mean product of the scores of clients that are
    drawn from the mixture, as many again for each bin.
    """
    at, rng = point.parameters(), np.random.default_rng(0)
    (k, c), bins = at.alphas.shape, at.sizes.bins
    before = at.weights[:, None] * at.sizes.masses
    mass, index = before.sum(axis=0), np.arange(k * (c + bins.n_bins)).reshape(k, -1)
    information = np.zeros((index.size, index.size))
    for b in np.flatnonzero(n_clients * mass >= 1.0):
        some = np.flatnonzero(before[:, b])
        weights, n_drawn = before[some, b] / mass[b], max(_DRAWN_EACH, round(_DRAWN * mass[b]))
        sizes = Sizes.unchecked(bins, np.eye(bins.n_bins)[np.full(len(some), b)])
        drawn = MDM(weights, at.alphas[some], sizes, as_given=True).sample(n_drawn, rng=rng)
        of_clients = scores(Mixture(weights, at.alphas[some]), drawn)
        of_clients.reshape(n_drawn, -1, c + 1)[..., c] += weights  # responsibilities
        where = index[some][:, [*range(c), c + b]].ravel()
        products = of_clients.T @ of_clients * (mass[b] / n_drawn)
        information[np.ix_(where, where)] += products
    of_sizes = index[:, c:]
    information[of_sizes, of_sizes] += size_prior * mass / n_clients
    informed = n_clients * np.diag(information)[index] >= 1.0
    informed[:, :c], informed[:, c:] = free[:, :c], informed[:, c:] & free[:, c:]
    shares = at.sizes.masses * informed[:, c:]
    total = shares.sum(axis=1, keepdims=True)
    to_x = np.zeros((k, c + 1, k, c + bins.n_bins))  # of steps; log τ follows the mean over bins
    each = np.arange(k)
    to_x[each, :c, each, :c] = np.eye(c)
    to_x[each, c, each, c:] = shares / np.where(total > 0, total, 1.0)
    to_x = to_x.reshape(free.size, -1)
    to_sizes = (to_x > 0).T.astype(float)
    ends = np.zeros((len(normals), *index.shape))
    ends[..., :c] = normals[..., :c]
    known = _inverse(to_sizes.T @ information @ to_sizes, free, normals)
    learned = _inverse(information, informed, ends)
    if known is None or learned is None:
        return None
    image = point.image_parameters()
    uphill = np.zeros(index.shape)
    uphill[:, :c] = point.gradient.reshape(k, -1)[:, :c]
    uphill[:, c:] = image.weights[:, None] * image.sizes.masses - before
    centred = np.eye(free.size)  # what all log τ have in common changes nothing
    logs = np.flatnonzero(free.reshape(-1) & (np.arange(free.size) % (c + 1) == c))
    centred[np.ix_(logs, logs)] -= 1.0 / len(logs)
    added = centred @ (to_x @ learned @ to_x.T - known) @ centred / n_clients
    return added, centred @ to_x @ learned @ uphill.ravel()


def gradients(weights: Floats, alphas: Floats, sums: ExpectStatistics) -> Floats:
    """The gradients of the mean log-likelihood in x of many models, from their stacked sums."""
    n = np.asarray(sums.n_clients)[:, None]
    of_alphas = sums.tables - alphas * (sums.total_tables / alphas.sum(axis=2))[..., None]
    of_weights = sums.size_counts.sum(axis=2) - n * weights
    both = np.concatenate([of_alphas, of_weights[..., None]], axis=2)
    return np.asarray(both.reshape(len(both), -1) / n)


def within_cap(gradient: Floats, alphas: Floats) -> Floats:
    """The gradients of many models without the part that points beyond the cap on concentrations."""
    beyond = at_cap(alphas)
    if not beyond.any():
        return gradient
    k, c = alphas.shape[1:]
    normals = _normals(alphas)
    inside = gradient.reshape(-1, k, c + 1).copy()
    outwards = np.maximum((inside[..., :c] * normals).sum(axis=2), 0.0) * beyond
    inside[..., :c] -= outwards[..., None] * normals
    return inside.reshape(gradient.shape)


def along_cap(curvature: Floats, x: Floats, gradient: Floats, shape: tuple[int, int]) -> Floats:
    """The Hessian of a model within the caps that the likelihood pushes it against.

    `gradient` is within the caps already: it has no part across such a cap.
    """
    k, c = shape
    alphas = np.exp(x.reshape(k, c + 1)[:, :c])
    for component in np.flatnonzero(at_cap(alphas)):
        normal = np.zeros((k, c + 1))
        normal[component, :c] = _normals(alphas[component])
        across = normal.reshape(-1)
        if across @ gradient >= -(np.finfo(float).eps ** 0.75):
            product = curvature @ across
            curvature = curvature - np.outer(across, product) - np.outer(product, across)
            curvature += (across @ product) * np.outer(across, across)
    return curvature


def _normals(alphas: Floats) -> Floats:
    """The directions in which log α_0 grows, of length one."""
    return np.asarray(alphas / np.sqrt((alphas**2).sum(axis=-1, keepdims=True)))


@dataclass(frozen=True, eq=False)
class Point:
    """A judged point; `value` is a mean per client, `masses` are the probabilities of sizes after EM."""

    x: Floats
    value: float
    gradient: Floats
    sizes: Sizes
    image: Floats
    masses: Floats

    @property
    def step(self) -> Floats:
        """The EM step from here."""
        return np.asarray(self.image - self.x)

    @property
    def promise(self) -> Floats:
        """The gain of each component's EM step, to first order, shape (n_components,)."""
        return np.asarray((self.gradient * self.step).reshape(len(self.masses), -1).sum(axis=1))

    def parameters(self) -> Parameters:
        return Parameters(*from_x(self.x, self._shape), self.sizes)

    def image_parameters(self) -> Parameters:
        """The parameters after the EM step."""
        after = Sizes.unchecked(self.sizes.bins, self.masses)
        return Parameters(*from_x(self.image, self._shape), after)

    @property
    def _shape(self) -> tuple[int, int]:
        return len(self.masses), len(self.x) // len(self.masses) - 1


def evaluate(
    problem: Problem, trials: Sequence[tuple[Floats, Sizes]], sums: Sequence[ExpectStatistics]
) -> list[Point]:
    """Every trial with its value, gradient and EM image; all M-steps are solved at once."""
    together = _stacked(sums)
    weights, alphas = from_x(np.array([x for x, _ in trials]), problem.shape)
    values = np.asarray(together.log_likelihood) / together.n_clients
    uphill = within_cap(gradients(weights, alphas, together), alphas)
    *images, masses = problem.em_step(alphas, together)
    found = zip(trials, values, uphill, to_x(*images), masses, strict=True)
    return [Point(x, float(v), g, sizes, y, m) for (x, sizes), v, g, y, m in found]


def _stacked(sums: Sequence[ExpectStatistics]) -> ExpectStatistics:
    """The sums about many models, without their Hessians."""
    names = [field.name for field in fields(ExpectStatistics) if field.name != "curvature"]
    blocks = {name: np.array([getattr(s, name) for s in sums]) for name in names}
    return ExpectStatistics(**blocks, curvature=np.empty(0))  # type: ignore[arg-type]


def check_possible(sums: Sequence[ExpectStatistics | DivideStatistics]) -> None:
    """Refuse to go on if no client judged, or if no parameters are possible."""
    if sums[0].n_clients == 0:
        raise ParameterError(
            "no client answered a question about parameters; ask when some are there"
        )
    if not np.isfinite([s.log_likelihood for s in sums]).any():
        raise ZeroLikelihoodError(
            "some client has probability zero under every start; check max_size and n_categories"
        )


def fingerprint(sums: Sequence[ExpectStatistics]) -> tuple[int, ...]:
    """The numbers of clients in each size bin, and with each category, whatever was asked.

    A client's responsibilities add up to one, so that the sum over components counts clients. Rounds
    with different counts had different clients; equal counts do not prove that clients were the same.
    """
    one = next(s for s in sums if np.isfinite(s.log_likelihood))  # the others count no client
    counts = np.concatenate([one.size_counts.sum(axis=0), one.present.sum(axis=0)])
    return tuple(np.rint(counts).astype(int).tolist())
