"""Performs a job of a federation: what `polyurn federation run` or `style` asks, over any exchange.

`server/` searches, `aggregator.py` asks the nodes, and the job's folder keeps the progress. A job with a
guarantee is charged to the federation's ledger, which has everything that was ever spent on its clients.
"""

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polyurn.aggregate.replay import ReplayAggregator
from polyurn.errors import BudgetError, FileError, ParameterError, PolyurnError
from polyurn.federation.aggregator import FederatedAggregator
from polyurn.federation.exchange import Exchange
from polyurn.federation.folder import Federation, FederationFolder
from polyurn.federation.graph import choose_graph
from polyurn.federation.jobs import Job, JobFolder, LookJob, MixtureJob, StyleJob
from polyurn.federation.processes import keep_pid
from polyurn.privacy.accounting import sigma_for
from polyurn.privacy.ledger import PrivacyLedger
from polyurn.privacy.noise import check_installed
from polyurn.privacy.private_aggregator import ExactAggregator, PrivateAggregator
from polyurn.server.describing import describe, describe_column
from polyurn.server.drift import drift
from polyurn.server.feature_choice import choose_feature
from polyurn.server.fit_results import Round
from polyurn.server.learning import learn
from polyurn.server.style_fit import fit_style
from polyurn.storage.documents import save_document
from polyurn.storage.journal import Journal
from polyurn.storage.ledger_file import LedgerFile, raised_ledger
from polyurn.storage.models import load_saved, save
from polyurn.storage.provenance import PrivacyProvenance, Provenance
from polyurn.typed.json_form import to_json
from polyurn.wire import Aggregator
from polyurn.wording import counted


def perform(exchange: Exchange, folder: JobFolder) -> None:
    """Ask the nodes until there is a model, and write it into the folder.

    The first round waits for all nodes to connect. A failure is an event of the folder before it is
    raised.
    """
    keep_pid(folder.pid, os.getpid())
    try:
        _perform(exchange, folder)
    except PolyurnError as error:
        folder.tell({"failed": str(error)})
        raise
    except KeyboardInterrupt:
        folder.tell({"failed": "interrupted"})
        raise
    except Exception as error:
        text = f"the server's side failed: {type(error).__name__}: {error}"
        folder.tell({"failed": text})
        raise
    finally:
        folder.pid.unlink(missing_ok=True)


def _perform(exchange: Exchange, folder: JobFolder) -> None:
    job = folder.read()
    files = FederationFolder(job.federation)
    federation = files.read()
    names = federation.names
    nodes = FederatedAggregator(
        exchange, job, roster=federation.roster, clients_per_node=federation.clients_per_node,
        names=names, expected=len(names), rng=job.seed if isinstance(job, MixtureJob) else None,
        on_change=lambda number, left, joined: folder.tell({
            "round": number, "left": {names[node]: why for node, why in left.items()},
            "joined": [names[node] for node in joined],
        }),
    )  # fmt: skip
    if missing := sorted(names.keys() - set(exchange.nodes())):
        folder.tell({"missing": [names[node] for node in missing]})
    run = _Run(nodes, federation, files.ledger, folder)
    try:
        if isinstance(job, MixtureJob):
            _learn_mixture(run, job)
        elif isinstance(job, LookJob):
            _look(run, job)
        elif isinstance(job, StyleJob):
            _learn_style(run, job)
    except BudgetError as error:  # of the ledger, which all runs and retries share
        more = " with --ledger-epsilon" if str(error).endswith("raise the budget") else ""
        raise BudgetError(f"{error}{more}") from error


@dataclass(frozen=True)
class _Run:
    """What asks the nodes for a job, and where its answers and charges go."""

    nodes: FederatedAggregator
    federation: Federation
    ledger: Path
    folder: JobFolder

    def provenance(self, job: Job) -> dict[str, Any]:
        """The part of the provenance that all results share."""
        traffic = self.nodes.traffic.named(self.federation.names)
        return {"command": job.command, "traffic": to_json(traffic)}


def _learn_mixture(run: _Run, job: MixtureJob) -> None:
    federation, folder = run.federation, run.folder
    answers = None if job.checkpoint is None else Journal(Path(job.checkpoint), job.settings)
    asked = _entered(run, job, answers)
    if answers is not None:
        folder.tell({"kept": len(answers)})
        asked = ReplayAggregator(asked, answers)
    start = None if job.start is None else load_saved(job.start).model
    learned = learn(
        asked, job.components or "auto", n_categories=federation.n_categories, rng=job.seed,
        start=start and start.in_order_of(federation.declared),
        on_round=lambda done: folder.tell(_event(done)), **job.search,
    )  # fmt: skip
    found = {"seed": job.seed, **Provenance.of(learned).to_json()}
    provenance = {**found, **run.provenance(job)}
    save(learned.mdm, folder.result, categories=federation.categories, provenance=provenance)


def _learn_style(run: _Run, job: StyleJob) -> None:
    asked = _entered(run, job)
    style = fit_style(
        asked, job.space, label_effect=job.label_effect, epsilon=job.epsilon, delta=job.delta
    )
    provenance = {"privacy": to_json(PrivacyProvenance.by(asked)), **run.provenance(job)}
    save(
        style, run.folder.result, categories=run.federation.categories, features=job.features,
        provenance=provenance,
    )  # fmt: skip


def _look(run: _Run, job: LookJob) -> None:
    federation = run.federation
    n = federation.n_categories
    budget: Any = {"epsilon": job.epsilon, "delta": job.delta}
    mdm = None if job.mdm is None else load_saved(job.mdm).model
    asked = _entered(run, job)
    found: Any
    if mdm is not None:
        found = drift(asked, mdm, since=job.since, level=job.level, rng=job.seed, **budget)
    elif job.column is not None:
        whole = {"n_categories": n, "n_bins": job.n_bins, **budget}
        found = describe_column(asked, job.column, features=federation.features or (), **whole)
    elif job.columns:
        found = choose_feature(asked, job.columns, label=job.label, n_labels=n, **budget)
    else:
        found = describe(asked, n_categories=n, max_size=federation.max_size, **budget)
    save_document(found, run.folder.result, kind="look", provenance=run.provenance(job))


def _event(done: Round) -> dict[str, Any]:
    """A round as an event: the fields that a file keeps, its clients, and how far each K is."""
    more = {"n_clients": done.n_clients, "values": dict(done.values), "running": done.running}
    return {**to_json(done), **more}


# -------------------------------------------------------------------------------- a guarantee


def _entered(run: _Run, job: Job, answers: Journal | None = None) -> Aggregator:
    """The nodes behind the federation's ledger, an error if that cannot pay for the whole run.

    With a guarantee they are asked for sums with noise only. A run that continues from a journal is
    charged or entered under the name with which it began.
    """
    name = None if answers is None else answers.name
    if job.epsilon is None or job.delta is None:
        return ExactAggregator(run.nodes, LedgerFile(run.ledger), run=name)
    ledger = raised_ledger(
        run.ledger, epsilon=job.ledger_epsilon, delta=job.delta, first=job.epsilon, renew=job.renew
    )
    lost = [] if answers is None else _lost(ledger, answers, run.ledger)
    planned = [sigma_for(job.epsilon, job.delta), *lost]
    ledger.check(planned, "this run and what was spent before it", run=name)
    trust: Any = job.trust
    if trust == "central":
        check_installed("central noise")  # before anything is charged
    n_nodes = len(run.federation.nodes)
    n_reporters, n_colluding = reporters(n_nodes, job) if trust == "distributed" else (1, 0)
    return PrivateAggregator(
        run.nodes, ledger=ledger, trust=trust, n_reporters=n_reporters, n_colluding=n_colluding,
        run=name,
    )  # fmt: skip


def _lost(ledger: PrivacyLedger, answers: Journal, path: Path) -> list[float]:
    """The noise of the run's earlier charges without an answer: those are charged again."""
    own = [charge.sigma for charge in ledger.charges if charge.run == answers.name]
    n_kept = len(answers)
    if len(own) < n_kept:
        raise FileError(
            f"{path} has {counted(len(own), 'charge')} of the run in {answers.folder}, which "
            f"has {counted(n_kept, 'round')}: put the ledger of that run there, or take an "
            "empty folder"
        )
    return sorted(own, reverse=True)[: len(own) - n_kept]  # at least the cheapest ones


def reporters(n_nodes: int, job: Job) -> tuple[int, int]:
    """The fewest nodes of a sum with shares of noise, and how many of them may collude.

    The fewest nodes are those that the job needs for any sum. On a ring, a node counts only its
    neighbourhood, of which as many stay as a secure sum needs. All colluding nodes may be among them.

    >>> job = Job(federation="fed", command=None)
    >>> [reporters(n, job) for n in (3, 10, 100)]
    [(3, 0), (7, 2), (70, 20)]
    """
    graph = choose_graph(n_nodes, dropout=job.dropout, colluding=job.colluding)
    n_around = graph.n_neighbours + 1
    fewest = job.needed(n_nodes)
    n_reporters = fewest if n_around == n_nodes else min(fewest, graph.threshold)
    n_colluding = math.floor(job.colluding * n_around + 1e-9)
    if n_reporters - n_colluding < 2:
        raise ParameterError(
            f"expected sums over at least {n_colluding + 2} of {counted(n_nodes, 'node')}, "
            f"{n_colluding} of which may collude, for noise in shares, got {n_reporters}: take a "
            "larger min_fraction (--terms)"
        )
    return n_reporters, n_colluding
