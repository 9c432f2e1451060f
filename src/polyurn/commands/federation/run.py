"""`polyurn federation run`: learn what a live federation looks like.

The nodes are asked by polyurn's ServerApp, a process that Flower starts; this command submits the job,
shows how it goes on, and takes the result. What the process does is `federation/learning.py`.
"""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from polyurn.commands._shared.console import print_json, say, show
from polyurn.commands._shared.invocation import check_output, refuse_options
from polyurn.commands._shared.options import (
    AsJson,
    Checkpoint,
    Delta,
    Dropout,
    Epsilon,
    FederationLedgerEpsilon,
    MaxUpload,
    MinFraction,
    MinNodes,
    NoPrivacy,
    Output,
    Patience,
    Plain,
    Rounds,
    Seed,
    Settling,
    Timeout,
    Tol,
    Trust,
    component_numbers,
)
from polyurn.commands._shared.private_fits import candidates_table
from polyurn.commands.federation.up import FolderArgument
from polyurn.errors import ParameterError
from polyurn.typed.records import to_record
from polyurn.wording.numbers import counted

if TYPE_CHECKING:
    from polyurn.model.mdm import MDM
    from polyurn.storage.models import Saved


def run_command(
    context: typer.Context,
    folder: FolderArgument,
    components: Annotated[
        str, typer.Option(help="One number of components; or to choose from: 1:6, 2,4,8 or auto.")
    ] = "1:6",
    output: Output = None,
    checkpoint: Checkpoint = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    trust: Trust = None,
    ledger_epsilon: FederationLedgerEpsilon = None,
    no_privacy: NoPrivacy = False,
    max_size: Annotated[
        int | None, typer.Option(help="Largest size of a client; as declared at init by default.")
    ] = None,
    held_out: Annotated[
        float, typer.Option(help="Share of the clients that scores and is never fitted.")
    ] = 0.2,
    rounds: Rounds = 50,
    tol: Tol = 1e-3,
    patience: Patience = 3,
    cohort: Annotated[
        int | None, typer.Option(help="Nodes per round, not clients; all of them by default.")
    ] = None,
    sizes: Annotated[
        Literal["exact", "binned", "shared"],
        typer.Option(help="Sizes one by one, in bins, or in bins that all components share."),
    ] = "binned",
    max_upload: MaxUpload = 50_000,
    plain: Plain = False,
    min_nodes: MinNodes = 3,
    min_fraction: MinFraction = 0.7,
    timeout: Timeout = 60.0,
    settling: Settling = 60.0,
    dropout: Dropout = 0.3,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Learn a mixture from the nodes of a federation; the server sees masked sums only.

    With one number of components it is fitted; with several, held-out clients choose. `--cohort`,
    `--min-nodes` and `--min-fraction` count nodes. Say what is guaranteed to a client: `--epsilon` and
    `--delta`, or `--no-privacy`.

    Example: `polyurn federation run fed --epsilon 1 --delta 1e-6 --components 3 -o mdm.json`
    """
    from polyurn.commands._shared.federated import asked_job, perform, warn_of_missing_nodes
    from polyurn.federation.folder import FederationFolder
    from polyurn.federation.jobs import MixtureJob
    from polyurn.storage.files import check_place, write_whole
    from polyurn.storage.models import load_saved

    place = FederationFolder(folder)
    federation = place.read()
    numbers = component_numbers(components)
    selects = numbers == "auto" or len(numbers) > 1
    if not selects:
        refuse_options(context, ["held_out"], "with one number of components")
    if max_size is not None and not 1 <= max_size <= federation.max_size:
        raise ParameterError(
            f"expected --max-size from 1 to {federation.max_size:,}, which nodes have agreed to"
        )
    if output is not None:
        check_output(context, output)
        check_place(output)
    job = asked_job(
        MixtureJob,
        context,
        place,
        selects=selects,
        components=() if numbers == "auto" else numbers,
        max_size=max_size or federation.max_size,
        checkpoint=None if checkpoint is None else str(checkpoint.absolute()),
    )
    done = perform(place, job)
    saved = load_saved(done.result)
    for sentence in _sentences(saved):
        say(sentence)
    warn_of_missing_nodes(saved.made.crossed)
    if output is not None:
        write_whole(output, lambda file: file.write(done.result.read_bytes()))
        say(f"wrote {output}")
    _show(saved, as_json=as_json, is_kept=output is not None)


def _sentences(saved: "Saved[MDM]") -> list[str]:
    from polyurn.commands._shared.fitted_mdm import component_sentences

    if (fit := saved.made.fit) is not None:
        said = [f"{counted(fit.n_rounds, 'round')}; {fit.stopped}"]
        privacy = saved.made.privacy
        if privacy is not None and privacy.guarantee is not None:
            said = [f"stopped {fit.stopped}", saved.made.privacy_in_words]
        return [*said, *component_sentences(fit)]
    choice = saved.made.selection
    assert choice is not None
    judges = counted(choice.n_held_out, "held-out client")
    said = [f"{counted(choice.n_components, 'component')}, by {judges}"]
    said += [choice.stopped] if choice.unfinished else []
    return said + component_sentences(choice.chosen)


def _show(saved: "Saved[MDM]", *, as_json: bool, is_kept: bool) -> None:
    from polyurn.commands._shared.fitted_mdm import mdm_record, mdm_table
    from polyurn.commands._shared.selections import selection_table
    from polyurn.server.private.fitting import PrivateCandidate

    fit, choice = saved.made.fit, saved.made.selection
    if as_json:
        record = to_record(fit or choice)
        shown = {**record, **mdm_record(saved.model, saved.categories)}
        print_json({**shown, **saved.made.more, "privacy": saved.made.privacy_in_words})
    elif choice is not None:
        show(selection_table(choice))
    elif tried := saved.made.more.get("candidates"):
        candidates = [PrivateCandidate(**one) for one in tried]
        show(candidates_table(candidates, saved.model.n_components))
    elif not is_kept:
        show(mdm_table(saved.model, saved.categories))
