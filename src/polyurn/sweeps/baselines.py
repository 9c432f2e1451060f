"""Baselines that a TOML file names: fully IID clients and clients of one Dirichlet, like others or not.

What the file says in, a population out. Points are given to its clients by `inputs.py`.
"""

import numpy as np
from numpy.typing import NDArray

from polyurn.model.populations import IID, Dirichlet, Population, SizesLike
from polyurn.partitioning.result import Partition
from polyurn.sweeps.config import ClientsConfig


def baseline(
    entry: ClientsConfig,
    codes: NDArray[np.int64],
    *,
    n_categories: int,
    like: Partition | None,
) -> Population:
    """The population of an entry with `iid`, `iid_proxy` or `dirichlet`.

    Parameters
    ----------
    entry : ClientsConfig
    codes : int array of shape (n_points,)
        The category of each point of the data.
    n_categories : int
    like : Partition or None
        The clients that the entry names; None if it says how many points each holds.

    Examples
    --------
    >>> true = Partition.from_lists([[0, 1], [2]])
    >>> codes = np.array([0, 0, 1, 1, 1, 1, 1, 1])
    >>> fair, paper = (
    ...     baseline(ClientsConfig(**{kind: "true"}), codes, n_categories=2, like=true)
    ...     for kind in ("iid", "iid_proxy")
    ... )
    >>> fair.marginal.round(2).tolist(), paper.marginal.tolist()
    ([0.67, 0.33], [0.25, 0.75])
    """
    sizes: SizesLike = [int(entry.like or 0)] if like is None else like.sizes
    if entry.kind == "dirichlet":
        return _dirichlet(entry, codes, n_categories=n_categories, like=like, sizes=sizes)
    if entry.kind == "iid" and like is not None:
        return IID.like(like.histograms(codes, n_categories))
    return IID.proxy(codes, n_categories=n_categories, sizes=sizes)


def _dirichlet(
    entry: ClientsConfig,
    codes: NDArray[np.int64],
    *,
    n_categories: int,
    like: Partition | None,
    sizes: SizesLike,
) -> Dirichlet:
    """alpha_j = alpha C p_j, where the C categories are those that the data have points of."""
    assert entry.dirichlet is not None
    proxy = np.bincount(codes, minlength=n_categories)
    frequent = (proxy > 0).astype(np.int64)
    if entry.marginal == "proxy":
        frequent = proxy
    elif entry.marginal == "clients":
        assert like is not None
        frequent = like.histograms(codes, n_categories).sum(axis=0)
    alpha = entry.dirichlet * np.count_nonzero(proxy) * frequent / frequent.sum()
    return Dirichlet(alpha, sizes)
