"""`polyurn sweep`: train every setting on every population."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polyurn as pu
from polyurn.commands.console import say, talk, warnings_as_sentences
from polyurn.commands.declare import argument, option
from polyurn.commands.options import AS_JSON
from polyurn.errors import StyleWarning, TrainingError
from polyurn.wording import counted

if TYPE_CHECKING:
    from polyurn.sweeps.config import SweepConfig
    from polyurn.sweeps.inputs import Inputs


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
    from polyurn.sweeps.choice_of_settings import as_text
    from polyurn.sweeps.config import read_config
    from polyurn.sweeps.inputs import read_inputs

    asked = read_config(config)
    inputs = read_inputs(asked)
    for remark in inputs.remarks:
        say(remark)
    with warnings_as_sentences(StyleWarning), sweep_progress(talk) as on_run:
        done = _swept(
            asked, inputs, populations=inputs.populations, seeds=asked.seeds, grid=asked.grid,
            optuna=asked.search, folder=output, n_jobs=jobs, noise_floor=asked.noise_floor,
            client_test=asked.client_test, on_run=on_run,
        )  # fmt: skip
    say(_run_sentence(done.runs, output))
    for run in done.failed:
        say(f"failed: {run.population}, seed {run.seed}, {as_text(run.settings)}: {run.error}")
    if done.failed:
        say(
            f"{counted(len(done.failed), 'run')} failed; what they printed is in {output}/failed, and "
            "the same command repeats them"
        )
    if done.runs:
        chosen_by = None if asked.search is None else asked.search.metric
        conclude(done.runs, metric=chosen_by, as_json=as_json, folder=output)
    elif done.failed:
        raise TrainingError("every run failed")


def _swept(asked: "SweepConfig", inputs: "Inputs", **given: Any) -> "pu.Sweep":
    """Train with our own engines, or with the trainer that the file names."""
    if asked.fedavg is not None and inputs.data is not None:
        metrics, engine = inputs.metrics(), asked.engine
        return pu.sweep(
            asked.fedavg, asked.model, inputs.data, metrics=metrics, engine=engine, **given
        )

    assert asked.trainer is not None
    trainer = asked.trainer.in_folder(asked.folder)
    return pu.sweep_trainer(trainer, inputs.labels, settings=asked.settings, **given)


def _run_sentence(runs: Sequence["pu.FinishedRun"], folder: Path) -> str:
    """How many runs there are, and how many of them diverged or were cut short."""
    text = f"{counted(len(runs), 'run')} in {folder}"
    for name, n in (
        ("diverged", sum(run.diverged for run in runs)),
        ("cut short by the search", sum(run.pruned for run in runs)),
    ):
        text += f"; {n} {name}" if n else ""
    return text
