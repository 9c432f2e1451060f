"""The clients of each population and seed of a sweep: given, or drawn and made from the data.

Populations are given as values, or are the entries of a TOML file. Nothing is trained here.
"""

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias
from warnings import catch_warnings, simplefilter, warn

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polyurn.comparison.summaries import fitted_dirichlet
from polyurn.errors import CountsError, ParameterError, PartitionError, StyleWarning
from polyurn.model.mdm import MDM
from polyurn.model.names import Match, Side, in_words, side_of
from polyurn.model.opponents import Pathological, QuantitySkew, Shards
from polyurn.model.populations import IID, Dirichlet, Oracle, Population, SizesLike, Styled
from polyurn.model.style import Style
from polyurn.partitioning.assign import has_points, held_categories, partition
from polyurn.partitioning.result import Partition, check_labels
from polyurn.sources.clients import Reading, read_clients
from polyurn.storage.models import Saved, load_saved
from polyurn.storage.partitions import load_partition
from polyurn.sweeps.config import ClientsConfig, SweepConfig
from polyurn.sweeps.run_scores import AGAIN, base_of
from polyurn.training.examples import check_clients
from polyurn.typed.declared import Bools, Floats, Ints

# The clients that a seed has.
ClientsOfSeed: TypeAlias = Callable[[int], Partition]
# Clients with their points, a function of the seed that gives them theirs anew, or a population.
Clients: TypeAlias = Partition | ClientsOfSeed | Population
# If the MDM knows less than this share of the data, or the data have less than this share of what
# clients ask for, they do not belong together.
LEAST_KNOWN = 0.5
_TABLES = (".csv", ".tsv", ".gz", ".parquet")

_DRAWS, _ORDER = 6, 7  # these random streams are not those of training/schedule.py


def clients_by_seed(
    populations: Mapping[str, Clients],
    labels: NDArray[Any],
    features: NDArray[Any] | None,
    *,
    seeds: Sequence[int],
    n_clients: int | None,
    true: str,
    noise_floor: bool = False,
    client_test: float | None = None,
    match: Match | None = None,
) -> dict[tuple[str, int], Partition]:
    """The clients of each population under each seed, checked, by (name, seed).

    A population is drawn anew for each seed, by default as many clients as `true` has. They are given
    points by their labels, those of a `Styled` population also by features. `noise_floor` adds the true
    clients in another order as "again", unless there is such a population. `client_test` is the share
    of each client's points that it is tested on.
    """
    if n_clients is None and isinstance(of_true := populations.get(true), Partition):
        n_clients = len(of_true)
    found: dict[tuple[str, int], Partition] = {}
    for name, clients in populations.items():
        for seed in seeds:
            drawing, cutting, testing = streams(name, seed)
            if isinstance(clients, Population):
                if n_clients is None:
                    raise ParameterError(f"{name}: expected n_clients, how many clients to draw")
                counts = clients.sample(n_clients, rng=drawing)
                held = _given_points(name, clients, counts, labels, features, match, rng=cutting)
            else:
                held = clients(seed) if callable(clients) else clients
                check_clients(held, n_points=len(labels), name=name)
            if client_test is not None:
                # docs/training.md: they share rows
                with catch_warnings(action="ignore", category=UserWarning):
                    held = held.with_test(client_test, labels, rng=testing)
            found[name, seed] = held
    if noise_floor and true in populations and AGAIN not in populations:
        found |= {(AGAIN, seed): in_another_order(found[true, seed], seed) for seed in seeds}
    return found


def in_another_order(clients: Partition, seed: int) -> Partition:
    """The same clients in another order, so that the cohorts of the same seed differ.

    >>> again = in_another_order(Partition.from_lists([[0, 2], [1], [3, 4, 5]]), seed=0)
    >>> sorted(held.tolist() for held in again)
    [[0, 2], [1], [3, 4, 5]]
    """
    order = np.random.default_rng((_ORDER, seed)).permutation(len(clients))
    offsets = np.concatenate([[0], np.cumsum(clients.sizes[order])])
    indices = np.concatenate([clients[i] for i in order.tolist()])
    ids = None if clients.ids is None else clients.ids[order]
    return Partition(offsets, indices, ids=ids, test=clients.test)


def _given_points(
    name: str, population: Population, counts: Any, labels: NDArray[Any],
    features: NDArray[Any] | None, match: Match | None, *, rng: np.random.Generator,
) -> Partition:  # fmt: skip
    """Clients of a population with points of its categories, by the features if they have a style."""
    try:
        codes = check_labels(labels, side_of(population, population.n_categories), match)
    except (CountsError, PartitionError) as error:
        raise type(error)(f"{name}: {error}") from None
    if not isinstance(population, Styled):
        return partition(codes, counts, rng=rng)
    measured = features if population.features is None else population.features
    return partition(codes, counts, style=population.style, features=measured, rng=rng)


def streams(name: str, seed: int) -> list[np.random.Generator]:
    """Three random streams: for drawing a population's clients, giving them points, and testing them.

    Populations have streams of their own, or they would have the same sizes in the same order. Mixtures
    that are as plausible as another have its streams: what differs between them is not chance.
    """
    word = zlib.crc32(base_of(name).encode())
    return np.random.default_rng((_DRAWS, seed, word)).spawn(3)


# ------------------------------------------------------------------------ entries of a TOML file


@dataclass(frozen=True)
class Models:
    """The MDM and style files that the entries of a sweep name, by entry, and their categories."""

    mdms: Mapping[str, Saved[MDM]]
    styles: Mapping[str, Saved[Style]]
    categories: Side | None


def read_models(config: SweepConfig) -> Models:
    """Read the files, whose categories have to have the same names in one order."""
    mdms: dict[str, Saved[MDM]] = {}
    styles: dict[str, Saved[Style]] = {}
    found: list[tuple[str, str, Side]] = []
    for name, entry in config.populations.items():
        if entry.mdm is not None:
            mdms[name] = mdms.get(base_of(name)) or load_saved(config.folder / entry.mdm)
            found.append((name, entry.mdm, mdms[name].side))
        if entry.style is not None:
            styles[name] = load_saved(config.folder / entry.style, Style)
            found.append((name, entry.style, styles[name].side))
    for name, entry in config.clients.items():
        if entry.plausible:
            drawn = enumerate(_plausible(mdms[name].model, name, entry.plausible), start=1)
            mdms |= {f"{name}~{i}": replace(mdms[name], model=one) for i, one in drawn}
    _, first, known = found[0] if found else ("", "", None)
    for name, file, side in found:
        if side != known and not (isinstance(side, int) and isinstance(known, int)):
            raise ParameterError(
                f"[clients.{name}] expected {file} with the categories of {first}, in their order: "
                f"{in_words(known or 0)}, got {in_words(side)}"
            )
    return Models(mdms, styles, known)


def _plausible(mdm: MDM, name: str, n: int) -> tuple[MDM, ...]:
    try:
        return mdm.draws(n, rng=zlib.crc32(name.encode()))
    except ParameterError as error:
        raise ParameterError(f"[clients.{name}] plausible: {error}") from error


@dataclass(frozen=True, eq=False)
class CodedPoints:
    """The points that clients are given: the category of each, and whether none was held out.

    `names` are those of the categories, if they have some.
    """

    codes: Ints
    names: Side | None
    models: Models
    folder: Path
    is_whole: bool

    def clients(
        self,
        name: str,
        entry: ClientsConfig,
        owners: NDArray[Any] | None,
        features: NDArray[Any] | None,
        earlier: Mapping[str, ClientsOfSeed],
    ) -> ClientsOfSeed:
        """The clients of one entry, which the data or a file may have for every seed."""
        if owners is not None:
            owned = Partition.by_owner(owners)
            return lambda _: owned
        if entry.partition is not None:
            if not self.is_whole:
                raise ParameterError("a partition needs data with test points of their own")
            kept = load_partition(self.folder / entry.partition)
            check_clients(kept, n_points=len(self.codes), name=entry.partition)
            return lambda _: kept
        style = self.models.styles[name].model if name in self.models.styles else None
        fixed = self._fixed(name, entry)
        other = earlier.get(str(entry.like)) if fixed is None else None
        if other is None and fixed is None:
            others = f"one of {', '.join(earlier)}" if earlier else "one that stands above it"
            raise ParameterError(
                f"no population {entry.like!r} stands before it in the file; expected {others}"
            )

        def drawn(seed: int) -> Partition:
            drawing, cutting, _ = streams(name, seed)
            like = None if other is None else other(seed)
            population = fixed
            if population is None:
                population = _baseline(entry, self.codes, self.n_categories, like)
            if entry.n_clients is None and isinstance(population, Oracle):
                counts = population.counts  # all, in their order
            else:
                n_like = 1 if like is None else len(like)
                counts = population.sample(entry.n_clients or n_like, rng=drawing)
            asked = sparse.csr_array(held_categories(counts, self.codes))
            shape = asked.shape[0], max(asked.shape[1], int(self.codes.max()) + 1)
            wide = sparse.csr_array((asked.data, asked.indices, asked.indptr), shape)
            with catch_warnings():
                simplefilter("ignore", StyleWarning)  # it does not know whose clients they are
                done = partition(self.codes, wide, style=style, features=features, rng=cutting)
            report = None if done.report is None else done.report.style
            if report is not None and report.remark is not None:
                warn(f"[clients.{name}] {report.remark}", StyleWarning, stacklevel=2)
            return done

        return drawn

    def lacking(self, name: str) -> str:
        """The message about categories of an MDM of which the data have no points; "" without any."""
        if name not in self.models.mdms:
            return ""
        asked = self.models.mdms[name].model.mean()
        return lacking_categories(asked, has_points(self.codes, len(asked)), self.names)

    @property
    def n_categories(self) -> int:
        known = [saved.model.n_categories for saved in self.models.mdms.values()]
        return max([int(self.codes.max()) + 1, *known])

    def _fixed(self, name: str, entry: ClientsConfig) -> Population | None:
        """The population of an entry that does not depend on another's clients under a seed."""
        if name in self.models.mdms:
            return self.models.mdms[name].model
        path = self.folder / str(entry.oracle)
        if entry.oracle is not None and path.suffix in _TABLES:
            names = self.names
            declared = tuple(names) if isinstance(names, Sequence) else self.n_categories
            return Oracle(read_clients(path, Reading(lambda _: None, over=True), declared).counts)
        if isinstance(entry.like, str):
            return None
        return _baseline(entry, self.codes, self.n_categories, None)


def _baseline(
    entry: ClientsConfig, codes: Ints, n_categories: int, like: Partition | None
) -> Population:
    """Clients made from the data's categories; like others, or as large as the entry says."""
    sizes: SizesLike = [int(entry.like or 0)] if like is None else like.sizes
    available = np.bincount(codes, minlength=n_categories)
    if like is not None and entry.kind in ("fitted", "oracle", "iid"):
        make = {"fitted": fitted_dirichlet, "oracle": Oracle, "iid": IID.like}[entry.kind]
        return make(like.histograms(codes, n_categories))
    if entry.hsu is not None:
        return Dirichlet.hsu(available, sizes, alpha=entry.hsu)
    if entry.pathological is not None:
        return Pathological(entry.pathological, available, sizes)
    if entry.shards is not None:
        return Shards(entry.shards, available)
    if entry.quantity_skew is not None:
        return QuantitySkew(entry.quantity_skew, available)
    if entry.kind != "dirichlet":
        return IID.proxy(codes, n_categories=n_categories, sizes=sizes)
    assert entry.dirichlet is not None
    alpha = entry.dirichlet * (available > 0)  # of the categories that the data have points of
    return Dirichlet(alpha, sizes)


def lacking_categories(asked: Floats, there: Bools, names: Side | None) -> str:
    """The message about categories that clients ask for and the data lack; "" without any.

    How much of each is asked for, and whether it is there, have shape (n_categories,). A
    `ParameterError` if most of it is not.
    """
    missing = np.flatnonzero((asked > 0) & ~there)
    if len(missing) == 0:
        return ""
    share = float(asked[missing].sum() / asked.sum())
    most = int(missing[asked[missing].argmax()])
    named = repr(names[most]) if isinstance(names, Sequence) else str(most)
    if share > 1 - LEAST_KNOWN:
        raise ParameterError(
            f"{share:.0%} of what the clients hold are categories that the data have no points of, "
            f"{named} most of all; expected data with the categories that were modelled"
        )
    return (
        f"{share:.2%} of the points that they ask for are left out: the data have none of "
        f"{len(missing):,} categories, {named} most of all"
    )
