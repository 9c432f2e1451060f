"""`polyurn select`: choose the number of components of an MDM by held-out clients of a table.

Parses, calls one library function, writes.
"""

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polyurn.commands._shared.console import INTERRUPTED, print_json, say, show, talk
from polyurn.commands._shared.invocation import check_output, made_by, refuse_options, settings
from polyurn.commands._shared.options import (
    AsJson,
    Categories,
    Category,
    Checkpoint,
    Client,
    Cohort,
    Count,
    Delta,
    DropEmpty,
    Epsilon,
    Ledger,
    LedgerEpsilon,
    MaxSize,
    MaxUpload,
    Output,
    Patience,
    Rounds,
    Sampling,
    Scheduler,
    Seed,
    SizesOption,
    TableArgument,
    Threads,
    Tol,
    component_numbers,
    declared_categories,
)
from polyurn.commands._shared.private_fits import N_ROUNDS, candidates_table, private_budget
from polyurn.errors import ParameterError
from polyurn.typed.records import to_record
from polyurn.wording.numbers import counted

if TYPE_CHECKING:
    from polyurn.server.private.fitting import PrivateSelection
    from polyurn.server.results import Selection
    from polyurn.storage.provenance import Made


def select_command(
    context: typer.Context,
    table: TableArgument,
    components: Annotated[
        str, typer.Option(help="Numbers of components: 1:6, or 2,4,8, or auto.")
    ] = "1:6",
    output: Output = None,
    client: Client = None,
    category: Category = None,
    count: Count = None,
    categories: Categories = None,
    max_size: MaxSize = None,
    held_out: Annotated[
        float, typer.Option(help="Share of the clients that scores and is never fitted.")
    ] = 0.2,
    rounds: Rounds = 50,
    tol: Tol = 1e-3,
    patience: Patience = 3,
    cohort: Cohort = None,
    sampling: Sampling = "fixed",
    epsilon: Epsilon = None,
    delta: Delta = None,
    ledger: Ledger = None,
    ledger_epsilon: LedgerEpsilon = None,
    sizes: SizesOption = None,
    max_upload: MaxUpload = 50_000,
    checkpoint: Checkpoint = None,
    threads: Threads = 1,
    scheduler: Scheduler = None,
    drop_empty: DropEmpty = False,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Choose the number of components by the likelihood of held-out clients.

    All are fitted in the same rounds; the smallest within one standard error of the best is kept. With
    `--epsilon` sums have noise, nobody is held out, and the file states the guarantee.

    Example: `polyurn select clients.csv --components 1:6 -o mdm.json`
    """
    from polyurn.client.layout import Columns
    from polyurn.commands._shared.checkpoints import recorded
    from polyurn.commands._shared.client_tables import Reading, largest_size
    from polyurn.commands._shared.fitted_mdm import mdm_record
    from polyurn.commands._shared.packed_clients import clients_of, read_all
    from polyurn.commands._shared.progress import fit_progress, selection_progress
    from polyurn.commands._shared.selections import selection_table
    from polyurn.server.fit import select
    from polyurn.server.private.fitting import select_private
    from polyurn.storage.files import check_place
    from polyurn.storage.models import save
    from polyurn.storage.provenance import Made, PrivacyRecord

    budget = private_budget(context, epsilon=epsilon, delta=delta)
    if budget is None and cohort is None:
        refuse_options(context, ["sampling"], "without --cohort")
    made = Made(**made_by(context, seed))
    if output is not None:
        check_output(context, output)
        check_place(output)
    numbers = component_numbers(components)
    reading = Reading(say, Columns(client, category, count), drop_empty=drop_empty)
    read = read_all(table, reading, declared_categories(categories))
    aggregator = clients_of(read, seed, sampling, threads, scheduler)
    if budget is not None:
        bounds: dict[str, Any] = {
            "n_categories": read.shape[1], "max_size": max_size, "sizes": sizes or "binned",
        }  # fmt: skip
        if numbers == "auto":
            raise ParameterError("expected --components as 1:6 or 2,4,8 with --epsilon, got auto")
        with fit_progress(talk, N_ROUNDS) as on_done:
            private = select_private(
                aggregator, numbers, rng=seed, on_round=on_done, **budget, **bounds
            )
        _write_private(private, output, replace(made, data=table.name), read.categories, as_json)
        return
    try:
        with selection_progress(talk) as on_round:
            choice = select(
                recorded(aggregator, checkpoint, settings(context), read, say),
                numbers,
                n_categories=read.shape[1],
                max_size=largest_size(max_size, read, say),
                held_out=held_out,
                max_rounds=rounds,
                cohort_size=cohort,
                tol=tol,
                patience=patience,
                max_upload=max_upload,
                sizes=sizes or "binned",
                rng=seed,
                on_round=on_round,
            )
    except KeyboardInterrupt:
        kept = (
            f"repeat the command to go on from {checkpoint}" if checkpoint else "nothing was kept"
        )
        say(f"interrupted; {kept}")
        raise typer.Exit(INTERRUPTED) from None
    for sentence in _sentences(choice):
        say(sentence)
    if output is not None:
        privacy = PrivacyRecord.of(None)
        made = replace(made, data=read.record, selection=choice, privacy=privacy)
        save(choice.mdm, output, categories=read.categories, made=made)
        say(f"wrote {output}")
    if as_json:
        print_json({**to_record(choice), **mdm_record(choice.mdm, read.categories)})
    else:
        show(selection_table(choice))


def _write_private(
    choice: "PrivateSelection",
    output: Path | None,
    made: "Made",
    categories: tuple[str, ...] | None,
    as_json: bool,
) -> None:
    """What a private choice came to, in words, in its file, and as a table or JSON."""
    from polyurn.commands._shared.fitted_mdm import component_sentences, mdm_record
    from polyurn.privacy.statement import in_words
    from polyurn.storage.models import save
    from polyurn.storage.provenance import PrivacyRecord

    done = choice.fit
    say(f"{counted(choice.n_components, 'component')}, {done.stopped}")
    for sentence in (*component_sentences(done), in_words(done.guarantee)):
        say(sentence)
    privacy = PrivacyRecord.of(done.guarantee)
    if output is not None:
        made = replace(made, fit=done, privacy=privacy)
        save(done.mdm, output, categories=categories, made=made)
        say(f"wrote {output}")
    if as_json:
        candidates = [asdict(candidate) for candidate in choice.candidates]
        shown = {**to_record(done), **mdm_record(done.mdm, categories)}
        print_json({**shown, "candidates": candidates, "privacy": privacy.statement})
        return
    show(candidates_table(choice.candidates, choice.n_components))


def _sentences(choice: "Selection") -> list[str]:
    """What there is to say about a selection besides its table."""
    from polyurn.commands._shared.fitted_mdm import component_sentences

    judges = counted(choice.n_held_out, "held-out client")
    said = [f"{counted(choice.n_components, 'component')}, by {judges}"]
    if choice.caution:
        said.append(choice.caution)
    if choice.unfinished:
        said.append(choice.stopped)
    if choice.skipped:
        which = ", ".join(map(str, choice.skipped))
        said.append(f"left out K = {which}: there are not as many clients to fit")
    return said + component_sentences(choice.chosen)
