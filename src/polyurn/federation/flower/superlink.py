"""Flower's SuperLink as a process of this machine: start it, register nodes, submit runs, end it.

Everything goes through Flower's own commands. All files are in the federation's folder, and every
process is ended by its own pid.
"""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from polyurn.errors import FederationError, MissingDependencyError
from polyurn.federation.flower.processes import alive, end_orphans, end_processes, keep_pid
from polyurn.federation.folder import FederationFolder

_LINK = "federation"  # the SuperLink's name in Flower's configuration
_STARTS_WITHIN = 60.0  # seconds
_ENDS_WITHIN = 15.0
_STARTED = ("flower-superexec", "flwr-serverapp")  # by the SuperLink, each in a session of its own


# Flower's command line, once for each line that is read.
_COMMANDS = """
import contextlib, json, sys
from flwr.cli.app import app
for line in sys.stdin:
    with contextlib.suppress(SystemExit):
        app(json.loads(line), standalone_mode=False)
"""


def start(folder: FederationFolder, *, host: str, durable: bool = True) -> int:
    """Start the SuperLink, wait until it listens on an address of this machine, and return its pid.

    A durable SuperLink keeps its state in a file, and continues with the same nodes after a crash. In
    memory, a message takes half the processor time.
    """
    if (pid := alive(folder.pid)) is not None:
        raise FederationError(f"the SuperLink is running already (process {pid})")
    folder.check_certificate()
    _end_orphans(folder)
    port = int(folder.read().address.rpartition(":")[2])
    _check_free(host, port)
    _configure(folder, f"{_reached(host)}:{port}")
    command = [
        program("flower-superlink"),
        "--ssl-ca-certfile", str(folder.ca_certificate),
        "--ssl-certfile", str(folder.certificate),
        "--ssl-keyfile", str(folder.key),
        "--enable-supernode-auth",
        "--host", host,
        "--port", str(port),
        "--database", str(folder.database) if durable else ":flwr-in-memory:",
        "--disable-runtime-dependency-installation",
    ]  # fmt: skip
    with open(folder.log, "ab") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder.server,
            env=environment(folder), start_new_session=True,
        )  # fmt: skip
    keep_pid(folder.pid, process.pid)
    end = time.monotonic() + _STARTS_WITHIN
    while not _listens(host, port):
        if process.poll() is not None or time.monotonic() > end:
            end_processes([folder.pid], within=_ENDS_WITHIN)
            raise FederationError(f"the SuperLink did not start: see {folder.log}")
        time.sleep(0.2)
    process.returncode = 0  # else this object would warn that the process outlives it
    return process.pid


def register(folder: FederationFolder) -> dict[int, int]:
    """Register the nodes' keys with the running SuperLink; Flower's ids and the nodes' numbers.

    Keys that are already registered stay registered.
    """
    there = {int(node["node-id"]) for node in nodes(folder)}
    ids = {key: number for key, number in folder.flower_ids().items() if key in there}
    missing = [node for node in folder.read().nodes if node.number not in ids.values()]
    paths = [folder.server / f"{node.name}.pub" for node in missing]
    try:
        for node, path in zip(missing, paths, strict=True):
            path.write_text(node.transport + "\n")
        commands = [("supernode", "register", str(path), _LINK) for path in paths]
        for node, reply in zip(missing, flwr(folder, *commands), strict=True):
            ids[int(reply["node-id"])] = node.number
    finally:
        for path in paths:
            path.unlink(missing_ok=True)
        folder.register(ids)
    return ids


def nodes(folder: FederationFolder) -> list[dict[str, Any]]:
    """The SuperLink's list of nodes: "node-id", "status" and times."""
    (reply,) = flwr(folder, ("supernode", "list", _LINK))
    return list(reply["nodes"])


def runs(folder: FederationFolder) -> list[dict[str, Any]]:
    """The SuperLink's list of runs: "run-id", "status" and times."""
    (reply,) = flwr(folder, ("list", _LINK))
    return list(reply["runs"])


def submit(folder: FederationFolder, job: Path) -> int:
    """Start a run that performs a job; Flower's id of it."""
    config = f"job={json.dumps(str(job))}"
    (reply,) = flwr(folder, ("run", str(folder.app), _LINK, "--run-config", config))
    return int(reply["run-id"])


def stop_run(folder: FederationFolder, run: int) -> None:
    """End a run."""
    flwr(folder, ("stop", str(run), _LINK))


def stop(folder: FederationFolder) -> bool:
    """End the SuperLink and its children; return whether it was running."""
    was_up = end_processes([folder.pid], within=_ENDS_WITHIN) > 0
    _end_orphans(folder)
    return was_up


def flwr(folder: FederationFolder, *commands: tuple[str, ...]) -> list[dict[str, Any]]:
    """The output of each of some Flower commands, all in one process, as Flower takes a second to load.

    If a command fails, the commands before it have been carried out.
    """
    if not commands:
        return []
    asked = "\n".join(json.dumps([*command, "--format", "json"]) for command in commands)
    done = subprocess.run(
        [sys.executable, "-c", _COMMANDS], input=asked, capture_output=True, text=True,
        env=environment(folder), check=False, cwd=folder.server,
    )  # fmt: skip
    answers = list(_documents(done.stdout))
    for i, command in enumerate(commands):
        answer = answers[i] if i < len(answers) else {}
        if not answer.get("success"):
            line = " ".join(str(answer.get("error-message") or done.stderr).split())
            raise FederationError(f"`flwr {' '.join(command[:2])}` failed: {line[-300:]}")
    return answers


def _documents(text: str) -> Iterator[dict[str, Any]]:
    """The JSON documents in a text, one after the other."""
    decoder, at = json.JSONDecoder(), 0
    while (at := text.find("{", at)) >= 0:
        document, at = decoder.raw_decode(text, at)
        yield document


def _end_orphans(folder: FederationFolder) -> None:
    """End the processes that a killed SuperLink left behind: its ServerApp would go on asking nodes."""
    end_orphans(_STARTED, variable="FLWR_HOME", value=str(folder.flower_home), within=_ENDS_WITHIN)


def environment(folder: FederationFolder) -> dict[str, str]:
    """The environment of Flower's processes: files in the folder, no telemetry, no check for updates."""
    return {
        **os.environ,
        "FLWR_HOME": str(folder.flower_home),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        # Flower's processes start each other by name.
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
    }


def program(name: str) -> str:
    """One of Flower's programs, from this Python's environment."""
    path = Path(sys.executable).parent / name
    if not path.exists():
        raise MissingDependencyError("flwr", "flower", "a federation")
    return str(path)


def _configure(folder: FederationFolder, address: str) -> None:
    """Tell Flower's commands where the SuperLink is."""
    text = (
        f'[superlink]\ndefault = "{_LINK}"\n\n[superlink.{_LINK}]\naddress = "{address}"\n'
        f"root-certificates = {json.dumps(str(folder.ca_certificate))}\n"
    )
    (folder.flower_home / "config.toml").write_text(text)


def _check_free(host: str, port: int) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((host, port))
        except OSError as error:
            raise FederationError(
                f"cannot listen on {host}:{port}: {error.strerror}; end what uses it, or take another "
                "port"
            ) from error


def _listens(host: str, port: int) -> bool:
    try:
        with socket.create_connection((_reached(host), port), timeout=1.0):
            return True
    except OSError:
        return False


def _reached(host: str) -> str:
    """The address at which a server that listens on `host` is reached."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
