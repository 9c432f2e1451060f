"""How a client stands to a mixture: its responsibilities, and how likely it is for its size.

A log-likelihood is compared with that of the mixture's own clients of like size: it is divided by their
spread, after their mean is subtracted, and cut. Server and clients compute the same: the server of
clients that it draws itself, a client of its own histogram.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from polyurn.model.mdm import MDM
from polyurn.model.sizes import SizeBins
from polyurn.typed.arrays import FrozenArrays
from polyurn.typed.declared import Above, Floats, Ints, Shape, check_declared

# Log-likelihoods are cut at so many spreads from what the mixture expects.
CUT = 5.0


@dataclass(frozen=True, eq=False)
class Yardstick(FrozenArrays):
    """What a mixture expects of clients, by the bin of their size.

    `centres` are means of log q(c | n), and `spread` is its standard deviation around them. A client
    below the `floors` is one that no component explains.
    """

    centres: Annotated[Floats, Shape("B")]
    floors: Annotated[Floats, Shape("B")]
    spread: Annotated[float, Above(0)]

    def __post_init__(self) -> None:
        check_declared(self)


def log_likelihoods(mdm: MDM, counts: Ints) -> tuple[Floats, Floats]:
    """Log q(c | n) of each client, shape (n_clients,), and ω, shape (n_clients, K).

    Both are computed row by row. A client of probability zero has -inf, and ω of 0.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        sizes = np.log(mdm.weights) + mdm.sizes.logpmf(counts.sum(axis=1))
        joint = sizes + mdm.log_shares(counts)
    most, most_sized = joint.max(axis=1, keepdims=True), sizes.max(axis=1, keepdims=True)
    possible = np.isfinite(most[:, 0])
    omega = np.where(possible[:, None], np.exp(joint - np.where(possible[:, None], most, 0.0)), 0.0)
    total = omega.sum(axis=1)
    safe = np.where(possible, total, 1.0)
    with np.errstate(invalid="ignore"):  # of sizes that no component can have
        of_size = most_sized[:, 0] + np.log(np.exp(sizes - most_sized).sum(axis=1))
    logs = np.where(possible, most[:, 0] + np.log(safe) - of_size, -np.inf)
    return logs, omega / safe[:, None]


def standings(mdm: MDM, bins: SizeBins, yardstick: Yardstick, counts: Ints) -> Floats:
    """1, ω, 1 at the bin of the size, p, the cut log-likelihood, its square and whether it is too low.

    A row for each client, (n, 1 + K + B + C + 3); the log-likelihood is in CUT spreads, at most 1.
    """
    logs, omega = log_likelihoods(mdm, counts)
    sizes = counts.sum(axis=1)
    where = bins.locate(sizes)
    sized = np.zeros((len(counts), bins.n_bins))
    sized[np.arange(len(counts)), where] = 1.0
    fit = np.clip((logs - yardstick.centres[where]) / (CUT * yardstick.spread), -1.0, 1.0)
    beside = np.column_stack([fit, fit**2, logs < yardstick.floors[where]])
    return np.hstack([np.ones((len(counts), 1)), omega, sized, counts / sizes[:, None], beside])
