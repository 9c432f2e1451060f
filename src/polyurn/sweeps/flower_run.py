"""A Flower app as it is, run in Flower's simulation: a function, and a command for sweeps.

    python -m polyurn.sweeps.flower_run my-app --partition clients.json --metrics out.jsonl --set lr=0.1

Its data come through `partitioner_from_environment` (`integrations/flwr_datasets.py`), with a SuperNode
for each client of the partition. Its metrics are those that its strategy returns: a line of JSON for
each round. Every run has a SuperLink of its own, by Flower's own commands; nothing is left behind.
"""

import argparse
import inspect
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from polyurn.errors import FileError, ParameterError, PolyurnError, TrainingError
from polyurn.storage.files import write_whole
from polyurn.storage.partitions import load_partition

_METRICS, _END = "POLYURN_METRICS", "POLYURN_FLOWER_END"
_QUIET = {
    "FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1", "RAY_USAGE_STATS_ENABLED": "0"
}  # fmt: skip
_ENDS_WITHIN = 10.0  # seconds after a request to end, a process is killed
_WRAPPER = """\
from {module} import {name} as theirs
from polyurn.sweeps.flower_run import recorded

app = recorded(theirs)
"""


def simulate(
    app: str | os.PathLike[str],
    settings: Mapping[str, Any],
    *,
    n_nodes: int,
    environment: Mapping[str, str] | None = None,
    n_cpus: int = 1,
) -> None:
    """Run the app in a folder in Flower's simulation, until its ServerApp ends.

    `settings` override its run-config, where `batch_size` may be called `batch-size`; its processes get
    the environment, too. What it prints goes to this process's output.
    """
    app = Path(app)
    overrides = [f"{name}={json.dumps(v)}" for name, v in as_run_config(app, settings).items()]
    with TemporaryDirectory(prefix="pu") as scratch:  # short: Ray puts its sockets there
        end, home, port = Path(scratch) / "end", Path(scratch) / "home", _free_port()
        home.mkdir()
        address, log = f"127.0.0.1:{port}", Path(scratch) / "flower.log"
        (home / "config.toml").write_text(
            f'[superlink]\ndefault = "own"\n[superlink.own]\naddress = "{address}"\ninsecure = true\n'
        )
        # Flower's commands start one another by name.
        path = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")])
        own = {"FLWR_HOME": str(home), "RAY_TMPDIR": scratch, "PATH": path, _END: str(end)}
        known = {**os.environ, **_QUIET, **own, **(environment or {})}
        superlink = (
            "flower-superlink", "--insecure", "--simulation", "--isolation", "process",
            "--disable-runtime-dependency-installation", "--host", "127.0.0.1", "--port", str(port),
        )  # fmt: skip
        executor = ("flower-superexec", "--insecure", "--runtime-api-address", address)
        nodes = f"num-supernodes={n_nodes} init-args-num-cpus={n_cpus} client-resources-num-cpus=1"
        run = (
            "flwr", "run", str(_wrapped(app, Path(scratch) / "app")), "own", "--stream",
            "--federation-config", nodes, *(f"--run-config={text}" for text in overrides),
        )  # fmt: skip
        with _running(superlink, known, log) as first:
            _wait_for(port, first)
            with _running(executor, known, log) as second, _running(run, known, None) as third:
                while not end.exists() and all(p.poll() is None for p in (first, second, third)):
                    time.sleep(0.05)
        if not end.exists():
            sys.stderr.write(log.read_text(errors="replace")[-5000:])
        if not end.exists() or end.read_text():
            why = end.read_text() if end.exists() else "its output says why"
            raise TrainingError(f"the Flower app {app.name} failed: {why}")


def recorded(app: Any) -> Any:
    """A ServerApp that runs another, and writes down the metrics of every round and how it ended."""
    from flwr.serverapp import ServerApp
    from flwr.serverapp.strategy import Strategy

    outer, start = ServerApp(), Strategy.start

    def noting(self: Any, *args: Any, **kwargs: Any) -> Any:
        given = inspect.signature(start).bind(self, *args, **kwargs)
        _note_rounds(self, given.arguments)
        return start(*given.args, **given.kwargs)

    @outer.main()
    def main(grid: Any, context: Any) -> None:
        Strategy.start, failure = noting, ""  # type: ignore[method-assign]
        try:
            app(grid, context)
        except Exception as error:
            failure = f"{type(error).__name__}: {error}"
            raise
        finally:
            Strategy.start = start  # type: ignore[method-assign]
            write_whole(Path(os.environ[_END]), lambda file: file.write(failure.encode()))

    return outer


def _note_rounds(strategy: Any, given: dict[str, Any]) -> None:
    """Have a strategy write a line of JSON after each round, with all numbers that it returns in it."""
    path, metrics = os.environ.get(_METRICS), dict[str, float]()
    train, evaluate = strategy.aggregate_train, given.get("evaluate_fn")

    def trained(server_round: int, replies: Iterable[Any]) -> Any:
        """Raise if all clients failed: a strategy would go on with the weights that it has."""
        replies = list(replies)
        if replies and all(reply.has_error() for reply in replies):
            why = " ".join(replies[0].error.reason.split())
            raise TrainingError(f"all {len(replies)} clients of round {server_round} failed: {why}")
        return train(server_round, replies)

    def noted(function: Callable[..., Any], *, is_last: bool = False) -> Callable[..., Any]:
        def call(server_round: int, *rest: Any) -> Any:
            result = function(server_round, *rest)
            record = result[1] if isinstance(result, tuple) else result
            metrics.update((k, v) for k, v in (record or {}).items() if isinstance(v, int | float))
            if is_last and server_round and path and metrics:
                with open(path, "a") as file:
                    file.write(json.dumps({"round": server_round, **metrics}) + "\n")
                metrics.clear()
            return result

        return call

    strategy.aggregate_train = noted(trained)
    strategy.aggregate_evaluate = noted(strategy.aggregate_evaluate, is_last=evaluate is None)
    if evaluate is not None:
        given["evaluate_fn"] = noted(evaluate, is_last=True)


def _described(app: Path) -> Any:
    """The part of an app's pyproject.toml that is Flower's."""
    try:
        with open(app / "pyproject.toml", "rb") as file:
            described = tomllib.load(file)["tool"]["flwr"]["app"]
        _ = described["components"]["serverapp"]
    except (OSError, tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise FileError(
            f"{app} is not a Flower app: expected a pyproject.toml that names its serverapp"
        ) from error
    return described


def as_run_config(app: Path, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings, or what they may be, under the names of an app's run-config, and its floats as such."""
    known, found = _described(app).get("config", {}), {}
    for name, value in settings.items():
        key = name if name in known else name.replace("_", "-")
        if key not in known:
            raise ParameterError(
                f"{app.name} has no {name} in its run-config; expected one of {', '.join(known)}"
            )
        found[key] = _floats(value) if isinstance(known[key], float) else value
    return found


def _floats(value: Any) -> Any:
    """Numbers as Flower tells them apart: 1 is no float."""
    if isinstance(value, Mapping):
        return {name: _floats(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_floats(part) for part in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _wrapped(app: Path, target: Path) -> Path:
    """A copy of the app whose ServerApp is recorded."""
    shutil.copytree(app, target, ignore=shutil.ignore_patterns("__pycache__", ".git", ".venv"))
    component = str(_described(app)["components"]["serverapp"])
    module, _, name = component.partition(":")
    (target / "polyurn_recorded.py").write_text(_WRAPPER.format(module=module, name=name))
    text = (target / "pyproject.toml").read_text()
    pattern = rf'(serverapp\s*=\s*)["\']{re.escape(component)}["\']'
    (target / "pyproject.toml").write_text(re.sub(pattern, r'\1"polyurn_recorded:app"', text))
    return target


@contextmanager
def _running(
    words: tuple[str, ...], environment: Mapping[str, str], log: Path | None
) -> Iterator[subprocess.Popen[bytes]]:
    """A process of the same group, which ends with this context: one signal to the group ends all."""
    with open(log or os.devnull, "ab") as output:
        out = output if log else None
        program = shutil.which(words[0], path=environment["PATH"]) or words[0]
        process = subprocess.Popen([program, *words[1:]], env=environment, stdout=out, stderr=out)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(_ENDS_WITHIN)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _wait_for(port: int, superlink: subprocess.Popen[bytes]) -> None:
    """Return as soon as the SuperLink listens, or has ended."""
    while superlink.poll() is None:
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m polyurn.sweeps.flower_run")
    parser.add_argument("app", type=Path)
    parser.add_argument("--partition", type=Path, required=True)
    parser.add_argument("--metrics", type=Path, required=True)
    parser.add_argument("--settings", type=Path, help="a JSON file")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--seed", type=int, help="the setting seed, if the app has one")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        settings = json.loads(given.settings.read_text()) if given.settings else {}
        settings |= tomllib.loads("\n".join(given.set))
        if given.seed is not None and "seed" in _described(given.app).get("config", {}):
            settings["seed"] = given.seed
        places = {"POLYURN_PARTITION": given.partition, _METRICS: given.metrics}
        environment = {name: str(path.resolve()) for name, path in places.items()}
        n_nodes = len(load_partition(given.partition))
        simulate(given.app, settings, n_nodes=n_nodes, environment=environment)
    except (PolyurnError, OSError, ValueError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
