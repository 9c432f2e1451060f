"""The whole story on built-in data: true clients, a federated fit, simulated clients, and their worth.

One function per stage, in the order of the flow; `tell` prints what each comes to.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

import polyurn as pu
from polyurn.commands.console import say, talk
from polyurn.commands.progress import selection_progress, sweep_progress
from polyurn.commands.verdicts import verdict_json
from polyurn.commands.views import mdm_json
from polyurn.comparison.likeness import Compared
from polyurn.datasets.dataset import Dataset, LabelledPoints, digits, flights
from polyurn.errors import MissingDependencyError, ParameterError
from polyurn.model.paper_truths import truth
from polyurn.server.fit_settings import Settings
from polyurn.server.fitting import fit_sums
from polyurn.storage.files import write_whole
from polyurn.storage.models import Saved, load_saved
from polyurn.storage.provenance import DataProvenance, Provenance
from polyurn.typed.declared import Ints, Seed
from polyurn.typed.json_form import to_json
from polyurn.wording import counted

if TYPE_CHECKING:
    from polyurn.sweeps.grid import SweepProgress

# The clients of a federation in three parts: live ones, ones that only judge, and ones whose records are
# the server's own data, their ids forgotten.
_SHARES = (0.6, 0.2, 0.2)
# Aeroplanes that left New York less often are left out, and of the others so many flights are taken.
_FEWEST_FLIGHTS, _MOST_FLIGHTS = 20, 60
_MOST_TEST_POINTS = 4_000
_CANDIDATES = (1, 2, 4, 8, 16, 32)
# Over a live federation a round takes seconds, and these need fewer rounds.
FEW_CANDIDATES = (1, 2, 3, 4)


@dataclass(frozen=True, eq=False)
class DemoFederation:
    """True clients, and what a server has of its own.

    Of the clients there are the records (`live`) and the histograms (`live_counts`), of those that are
    never fitted the histograms alone (`held_out`), all of shape (n_clients, n_categories). `proxy` are
    the server's records, without clients, `proxy_codes` their categories, and `test` the held-out
    clients' records. `categories` are those of the feature that is modelled, and no client can hold
    more than `max_size` points: that is known of the source, not measured from clients.
    """

    name: str
    story: str
    categories: tuple[str, ...] = field(repr=False)
    max_size: int
    live: LabelledPoints
    live_counts: Ints = field(repr=False)
    held_out: Ints = field(repr=False)
    proxy: LabelledPoints
    proxy_codes: Ints = field(repr=False)
    test: LabelledPoints
    learning_rates: tuple[float, ...]


def tell(
    output: Path, *, data: Literal["flights", "digits"] | None, n_clients: int | None,
    n_nodes: int | None, seed: int, command: dict[str, Any], n_rounds: int = 100,
    n_training_rounds: int = 24,
) -> dict[str, Any]:  # fmt: skip
    """Tell the story stage by stage, and write the report; what came of it, for JSON."""
    began = time.monotonic()
    streams = np.random.default_rng(seed).spawn(6)
    with _stage("1 True clients") as end:
        if n_nodes is not None and data is None:
            data = "digits"  # whose search needs few rounds
        there = federation(data, n_clients=n_clients, rng=streams[0])
        end(there.story)
    if n_nodes is None:
        learned = _learned(there, n_rounds, streams[1])
    else:
        learned = _learned_over_nodes(there, n_nodes, n_rounds, seed, output)
    mdm = learned.model
    with _stage("3 Simulated clients") as end:
        simulated = simulate(there, mdm, rng=streams[2])
        n_simulated = counted(len(simulated["mdm"]), "client")
        end(f"{n_simulated} cut from {there.proxy.n_records:,} proxy records")
    with _stage("4 Comparison with true clients that were never fitted") as end:
        likeness = judge(there, mdm, simulated, rng=streams[3])
        close, iid = (likeness[name].energy_ratio for name in ("mdm", "iid"))
        end(f"{close:.2f} times the distance that chance alone makes; IID clients {iid:.2f}")
    runs = _trained(there, mdm, n_training_rounds)
    with _stage("6 Report") as end:
        material = {"comparison": likeness, "runs": runs, "rng": streams[5]}
        end(_written(output, there, learned, simulated, command, **material))
    return {
        "data": there.name,
        "n_clients": len(there.live_counts),
        "report": str(output),
        "seconds": time.monotonic() - began,
        "fit": to_json(learned.provenance.fit),
        "learned": mdm_json(mdm, there.categories),
        "comparison": likeness.to_dict(),
        "sweep": verdict_json(pu.compare_sweeps(runs)) if runs else None,
    }


def federation(
    source: Literal["flights", "digits"] | None = None,
    *,
    n_clients: int | None = None,
    rng: Seed = None,
) -> DemoFederation:
    """Natural clients from the flights data if they are installed, else digits cut by a hidden mixture.

    There are at most `n_clients`, all parts together.
    """
    rng = np.random.default_rng(rng)
    if source != "digits":
        try:
            return _flights(n_clients, rng)
        except MissingDependencyError:
            if source == "flights":
                raise
    return _digits(n_clients, rng)


def split(there: DemoFederation, n_nodes: int) -> list[Ints]:
    """The live clients' histograms, dealt to nodes of a federation as evenly as can be."""
    if not 3 <= n_nodes <= len(there.live_counts):
        raise ParameterError(
            f"expected 3 to {len(there.live_counts):,} nodes, each with a client, got {n_nodes:,}"
        )
    return [there.live_counts[i::n_nodes] for i in range(n_nodes)]


def learn(
    there: DemoFederation, *, max_rounds: int = 100, rng: Seed = None,
    on_round: Callable[[pu.Round], None] | None = None,
) -> pu.Fit:  # fmt: skip
    """Fit the live clients from sums, with the number of components chosen by some of them."""
    play, search = np.random.default_rng(rng).spawn(2)
    return fit_sums(
        pu.LocalAggregator(there.live_counts, rng=play), _CANDIDATES, rng=search,
        n_categories=len(there.categories), max_size=there.max_size,
        settings=Settings(max_rounds=max_rounds), on_round=on_round,
    )  # fmt: skip


def simulate(there: DemoFederation, mdm: pu.MDM, *, rng: Seed = None) -> dict[str, Ints]:
    """As many clients as there are live ones: from the model, and IID with their sizes and marginal."""
    n = len(there.live_counts)
    populations: dict[str, pu.Population] = {"mdm": mdm, "iid": pu.IID.like(there.live_counts)}
    drawn = zip(populations.items(), np.random.default_rng(rng).spawn(2), strict=True)
    return {
        name: np.asarray(pu.held_categories(population.sample(n, rng=stream), there.proxy_codes))
        for (name, population), stream in drawn
    }


def judge(
    there: DemoFederation, mdm: pu.MDM, clients: dict[str, Ints], *, rng: Seed = None
) -> pu.Comparison:
    """How alike simulated clients are to true ones that were never fitted."""
    n = len(there.held_out)
    fitted, held_out = range(len(there.live_counts)), range(-n, 0)  # nobody is in both
    populations: dict[str, Compared] = {"mdm": mdm, "iid": clients["iid"]}
    return pu.compare(
        populations, there.held_out, match="position", clients=held_out, fitted=fitted, rng=rng
    )


def tune(
    there: DemoFederation, mdm: pu.MDM, *, n_rounds: int = 24, seeds: Sequence[int] = (0, 1, 2, 3),
    on_run: "Callable[[SweepProgress], object] | None" = None,
) -> "pu.Sweep":  # fmt: skip
    """Train every learning rate on true clients and on simulated ones, drawn anew for each seed."""
    live, proxy = there.live, there.proxy
    assert live.features is not None
    assert live.clients is not None
    assert proxy.features is not None
    assert there.test.features is not None
    data = pu.Examples(
        np.concatenate([live.features, proxy.features]),
        np.concatenate([live.labels, proxy.labels]),
        there.test.features,
        there.test.labels,
    )
    at = np.arange(live.n_records, len(data))

    def held(name: str, seed: int) -> pu.Partition:
        drawing, cutting = np.random.default_rng(seed).spawn(2)
        counts = simulate(there, mdm, rng=drawing)[name]
        return pu.partition(there.proxy_codes, counts, rng=cutting).renumbered(at)

    return pu.sweep(
        # Small cohorts and long local work: that is where clients who differ make training differ.
        pu.FedAvg(n_rounds=n_rounds, cohort_size=10, local_epochs=5, batch_size=10, evaluate_every=2),
        "softmax",
        data,
        populations={
            "true": pu.Partition.by_owner(live.clients), "mdm": partial(held, "mdm"),
            "iid": partial(held, "iid"),
        },
        seeds=seeds,
        grid={"local_learning_rate": there.learning_rates},
        on_run=on_run,
    )  # fmt: skip


def _flights(n_clients: int | None, rng: np.random.Generator) -> DemoFederation:
    """Aeroplanes; the model is of where a flight goes from and to, the network learns where to."""
    data, routes = flights(features="air_time"), flights(features="air_time", category="route")
    assert data.train.clients is not None
    rows = _some_of_each(data.train.clients, rng)
    flown = data.train.take(rows)
    chosen = rng.permutation(flown.n_clients)[:n_clients]
    part = np.full(flown.n_clients, -1)
    part[chosen] = _parts(len(chosen))
    assert flown.clients is not None
    of_row = part[flown.clients]
    live, held_out, proxy = (flown.take(np.flatnonzero(of_row == i)) for i in range(3))
    by_route = Dataset(routes.name, routes.categories, routes.train.take(rows))
    counts = by_route.histograms()
    return DemoFederation(
        name="flights",
        story=(
            f"{live.n_clients:,} aeroplanes that left New York in 2013 are the clients; a "
            f"category is one of {routes.n_categories} routes"
        ),
        categories=routes.categories,
        max_size=_MOST_FLIGHTS,
        live=live,
        live_counts=counts[part == 0],
        held_out=counts[part == 1],
        proxy=LabelledPoints(proxy.labels, proxy.features),
        proxy_codes=by_route.train.labels[of_row == 2],
        test=held_out.take(np.sort(rng.permutation(held_out.n_records)[:_MOST_TEST_POINTS])),
        learning_rates=(0.3, 1.0, 3.0, 10.0),
    )


def _digits(n_clients: int | None, rng: np.random.Generator) -> DemoFederation:
    data = digits()
    hidden = truth("medium/3")
    n = 1_000 if n_clients is None else n_clients
    n_live, n_held_out = round(0.8 * n), n - round(0.8 * n)
    pictures = np.array_split(rng.permutation(data.train.n_records), 3)
    live, proxy, test = (data.train.take(rows) for rows in pictures)
    counts = hidden.sample(n_live, rng=rng)
    parts = pu.partition(live.labels, counts, rng=rng)
    rows = parts.indices
    assert live.features is not None
    ids = np.array([str(i) for i in range(n_live)])
    return DemoFederation(
        name="digits",
        story=(
            f"{n_live:,} clients hold handwritten digits; who holds which follows a hidden mixture of "
            "three components"
        ),
        categories=data.categories,
        max_size=hidden.max_size,
        live=LabelledPoints(live.labels[rows], live.features[rows], parts.clients, ids),
        live_counts=counts,
        held_out=hidden.sample(n_held_out, rng=rng),
        proxy=proxy,
        proxy_codes=proxy.labels,
        test=test,
        learning_rates=(0.03, 0.1, 0.3, 1.0),
    )


def _parts(n_clients: int) -> Ints:
    """Which part each client is in, shape (n_clients,); every part has its share."""
    ends = np.rint(np.cumsum(_SHARES) * n_clients).astype(np.int64)
    return np.repeat(np.arange(len(_SHARES)), np.diff(ends, prepend=0))


def _some_of_each(clients: Ints, rng: np.random.Generator) -> Ints:
    """Rows, in order: some of each client that has enough, drawn at random."""
    order = rng.permutation(len(clients))
    order = order[np.argsort(clients[order], kind="stable")]
    sizes = np.bincount(clients)
    index = np.arange(len(clients)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    enough = np.repeat(sizes >= _FEWEST_FLIGHTS, sizes)
    return np.sort(order[enough & (index < _MOST_FLIGHTS)])


def _learned(there: DemoFederation, rounds: int, rng: np.random.Generator) -> Saved[pu.MDM]:
    """Stage 2, in this process."""
    with _stage("2 Federated fit, all K in the same rounds") as end:
        with selection_progress(talk) as on_round:
            choice = learn(there, max_rounds=rounds, rng=rng, on_round=on_round)
        end(f"{_came_to(choice)}, and the server saw only sums")
        if choice.stopped:
            say(f"  {choice.stopped}")
    return Saved(choice.mdm, there.categories, Provenance(fit=choice))


def _learned_over_nodes(
    there: DemoFederation, n_nodes: int, rounds: int, seed: int, output: Path
) -> Saved[pu.MDM]:
    """Stage 2, over a federation of processes, whose files stay beside the report."""
    from polyurn.commands.federation.following import perform
    from polyurn.federation.jobs import MixtureJob
    from polyurn.federation.one_machine import federation_here
    from polyurn.federation.owned_node import warm_up
    from polyurn.federation.policy import NodePolicy

    folder = output.absolute().with_name(f"{output.stem}-federation")
    with _stage(f"2 Federated fit over {n_nodes} nodes, in secure sums") as end:
        parts = split(there, n_nodes)
        warm_up()  # once, before the nodes do it all at the same time
        with federation_here(
            folder, parts, max_size=there.max_size, categories=there.categories,
            policy=NodePolicy(allow_exact=True),
        ) as federation:  # fmt: skip
            say(f"  {counted(n_nodes, 'node')} have joined over TLS, files in {folder}")
            job = MixtureJob(
                federation=str(federation.path),
                command=None,
                selects=True,
                components=FEW_CANDIDATES,
                shape="dirichlet",  # which its clients follow; the stages would take a third of its time
                max_size=there.max_size,
                max_rounds=rounds,
                seed=seed,
            )
            saved = load_saved(perform(federation, job).result)
        assert saved.provenance.fit is not None
        end(f"{_came_to(saved.provenance.fit)}, and the server saw only masked sums")
    return saved


def _came_to(fit: pu.Fit) -> str:
    components, rounds = fit.n_components, fit.n_rounds
    return (
        f"{counted(components, 'component')} after {counted(rounds, 'round')}; a client sent at most "
        f"{max(one.n_numbers for one in fit.rounds):,} numbers a round"
    )


def _trained(there: DemoFederation, mdm: pu.MDM, n_rounds: int) -> tuple[pu.FinishedRun, ...]:
    """Stage 5: the runs and their verdict; nothing without torch."""
    with _stage("5 Training on true, simulated and IID clients") as end:
        try:
            with sweep_progress(talk) as on_run:
                runs = tune(there, mdm, n_rounds=n_rounds, on_run=on_run).runs
        except MissingDependencyError as error:
            end(f"left out: {error}")
            return ()
        verdict = pu.compare_sweeps(runs)
        end(verdict.sentence())
        say(f"  {verdict.regret_sentence()}")
    return runs


def _written(
    output: Path, there: DemoFederation, learned: Saved[pu.MDM],
    simulated: dict[str, Ints], command: dict[str, Any], **material: Any,
) -> str:  # fmt: skip
    """Stage 6: write the page; where it is, and how large."""
    data = DataProvenance(
        file=there.name, n_clients=len(there.live_counts), n_categories=len(there.categories),
        n_points=there.live.n_records,
    )  # fmt: skip
    known = learned.provenance
    provenance = Provenance(**command, data=data, fit=known.fit, traffic=known.traffic)
    page = pu.report_on(
        Saved(learned.model, there.categories, provenance),
        clients={"true": there.held_out, **simulated}, categories=there.categories,
        title=f"What the federation of {there.name} looks like", **material,
    ).html()  # fmt: skip
    write_whole(output, lambda file: file.write(page.encode()))
    return f"{output.resolve().as_uri()} ({len(page.encode()) / 1e6:.1f} MB)"


@contextmanager
def _stage(title: str) -> Iterator[Callable[[str], None]]:
    """Announce a stage; yield a function that prints its result and how long it took."""
    began = time.monotonic()
    talk.print(f"[bold]{title}[/bold]", markup=True)

    def end(sentence: str) -> None:
        say(f"  {sentence} ({time.monotonic() - began:.1f} s)")

    yield end
