"""`polyurn sweep`: train every setting on every population.

Parses, calls one library function, writes.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from polyurn.commands.console import say, talk, warnings_as_sentences
from polyurn.commands.declare import argument, option
from polyurn.commands.options import AS_JSON
from polyurn.errors import StyleWarning
from polyurn.wording import counted

if TYPE_CHECKING:
    from polyurn.storage.run_log import FinishedRun


def sweep_command(
    *,
    config: Path = argument("CONFIG", "TOML file: settings, and populations to train on."),
    output: Path = option(
        ..., "Folder that keeps each run; a stopped sweep goes on.", "--output", "-o"
    ),
    jobs: int | None = option(None, "Number of runs at a time; default: one per core."),
    as_json: bool = AS_JSON,
) -> None:
    """Train every setting on every population under every seed, and give the verdict.

    Example: `polyurn sweep config.toml -o runs/`
    """
    from polyurn.commands.progress import sweep_progress
    from polyurn.commands.verdicts import conclude
    from polyurn.sweeps.config import read_config
    from polyurn.sweeps.grid import sweep
    from polyurn.sweeps.inputs import read_inputs

    asked = read_config(config)
    inputs = read_inputs(asked)
    for remark in inputs.remarks:
        say(remark)
    with warnings_as_sentences(StyleWarning), sweep_progress(talk) as on_run:
        done = sweep(
            asked.fedavg,
            asked.model,
            inputs.data,
            populations=inputs.populations,
            seeds=asked.seeds,
            grid=asked.grid,
            optuna=asked.search,
            folder=output,
            n_jobs=jobs,
            metrics=inputs.metrics(),
            engine=asked.engine,
            noise_floor=asked.noise_floor,
            on_run=on_run,
        )
    say(_run_sentence(done.runs, output))
    conclude(done.runs, as_json=as_json)


def _run_sentence(runs: Sequence["FinishedRun"], folder: Path) -> str:
    """How many runs there are, and how many of them diverged or were cut short."""
    text = f"{counted(len(runs), 'run')} in {folder}"
    for name, n in (
        ("diverged", sum(run.diverged for run in runs)),
        ("cut short by the search", sum(run.pruned for run in runs)),
    ):
        text += f"; {n} {name}" if n else ""
    return text
