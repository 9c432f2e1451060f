"""The zoo's models by name, and laid over somebody's labels."""

import warnings
from collections.abc import Sequence

import numpy as np

from polyurn.errors import ParameterError
from polyurn.model.mdm import MDM, Relabelled
from polyurn.model.names import Labels, missing_remark
from polyurn.model.relabelling import Rule
from polyurn.storage.documents import read_document
from polyurn.storage.models import ZOO, ZOO_FOLDER, load_saved
from polyurn.typed.arguments import checked
from polyurn.typed.arrays import ids_of
from polyurn.typed.declared import Ints, Seed
from polyurn.zoo.cards import Card

# Numbers beyond are ids, not labels.
_MOST_LABELS = 1_000_000


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
    """Return the card of a federation: what it is, where it comes from, how good its model is.

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
    rng: Seed = None,
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
    if remark := missing_remark(categories):
        warnings.warn(remark, stacklevel=3)  # `checked` stands between
    found = mdm.relabelled(categories, match, shares=shares, rng=rng)
    return found if mean_size is None else found.resized(mean_size)


def labels_of(labels: object) -> tuple[int | Sequence[str], Ints]:
    """The labels of a dataset, by number or name, and how many points each has."""
    if isinstance(labels, Labels):
        return labels.categories, np.bincount(labels.labels, minlength=len(labels.categories))
    given = ids_of(labels, "labels")
    if len(given) == 0:
        raise ParameterError("expected a label for each point, got none")
    if given.dtype.kind in "US":
        found, first, counts = np.unique(given, return_index=True, return_counts=True)
        if not found[0]:
            raise ParameterError(f"expected labels, got an empty text at position {first[0]}")
        return tuple(found.tolist()), counts
    if given.dtype.kind not in "iu" or given.min() < 0 or given.max() >= _MOST_LABELS:
        raise ParameterError(
            f"expected labels as texts or as whole numbers from 0 to {_MOST_LABELS - 1}, got "
            f"{given.min()} to {given.max()}"
        )
    return int(given.max()) + 1, np.bincount(given)
