"""The zoo's models by name, and laid over somebody's labels."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from polyurn.errors import ParameterError
from polyurn.model.mdm import MDM, Relabelled
from polyurn.model.relabelling import Rule
from polyurn.storage.documents import read_document
from polyurn.storage.models import ZOO, ZOO_FOLDER, load_saved
from polyurn.typed.arguments import checked
from polyurn.zoo.cards import Card


def names() -> tuple[str, ...]:
    """The names of all federations.

    Examples
    --------
    >>> "celeba_hair" in names()
    True
    """
    return tuple(sorted(path.stem for path in (ZOO_FOLDER / "models").glob("*.json")))


@checked
def load(name: str) -> MDM:
    """The model of a federation, with its own categories.

    Examples
    --------
    >>> load("celeba_hair").categories[:2]
    ('Black_Hair', 'Blond_Hair')
    """
    return load_saved(ZOO + name).model


@checked
def card(name: str) -> Card:
    """What a federation is, where it comes from, and how good its model is.

    Examples
    --------
    >>> card("celeba_hair").client
    'a celebrity'
    """
    if name not in names():
        load(name)  # which says so
    return read_document(Card, ZOO_FOLDER / "cards" / f"{name}.json", kind="zoo-card")


@checked
def like(
    federation: str | MDM,
    labels: object,
    *,
    match: Rule = "rank",
    mean_size: float | None = None,
    rng: int | np.random.Generator | None = None,
) -> MDM | Relabelled:
    """Clients like those of a federation, with the labels of a dataset.

    Parameters
    ----------
    federation : str or MDM
        A name of the zoo, or a mixture.
    labels : array of shape (n_points,)
        The label of each point of the dataset: whole numbers, of which label c is category c, or texts,
        which become the categories in sorted order. Or what `dataset_labels` found in a dataset.
    match : {"rank", "random", "marginal"}
        Which category becomes which label: `MDM.relabelled`.
    mean_size : float, optional
        Points that a client holds in the mean; the federation's own sizes by default.
    rng : int or numpy.random.Generator
        For "random".

    Examples
    --------
    >>> mdm = like("flights", ["cat", "dog", "cat"], mean_size=100)
    >>> mdm.categories, f"{mdm.mean().sum():.0f}"
    (('cat', 'dog'), '100')
    """
    mdm = load(federation) if isinstance(federation, str) else federation
    categories, shares = labels_of(labels)
    found = mdm.relabelled(categories, match, shares=shares, rng=rng)
    return found if mean_size is None else found.resized(mean_size)


def labels_of(labels: object) -> tuple[int | Sequence[str], ArrayLike]:
    """The labels of a dataset, by number or name, and how many points each has."""
    names = getattr(labels, "categories", None)
    if names is not None:  # `integrations.huggingface.Labels`
        return names, np.bincount(getattr(labels, "labels", []), minlength=len(names))
    given = np.asarray(labels)
    if given.ndim != 1 or len(given) == 0:
        raise ParameterError(f"expected a label for each point, got shape {given.shape}")
    if given.dtype.kind in "iu":
        if given.min() < 0:
            raise ParameterError(f"expected labels from 0 on, got {given.min()}")
        counts = np.bincount(given)
        return len(counts), counts
    found, counts = np.unique(given.astype(str), return_counts=True)
    return tuple(found.tolist()), counts
