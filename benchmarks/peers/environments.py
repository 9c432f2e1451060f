"""The peers: which they are, how each is installed, and one block of rounds of each.

Every peer has an environment of its own, made when it is first needed and kept in build/peers: torch
first, by our constraints, so that all of them share one version. A block is one process from start to
end, so that nothing of a peer is left running while another is measured.
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
FOLDER = ROOT / "build" / "peers"
QUIET = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"} | {
    "RAY_USAGE_STATS_ENABLED": "0"
}
OURS_ALONE = ("PYTHONPATH", "OMP_NUM_THREADS", "MKL_NUM_THREADS")  # a peer decides for itself


@dataclass(frozen=True)
class Peer:
    """A framework and a way of running it."""

    name: str
    requirement: str
    package: str
    one_per_core: bool = False

    @property
    def environment(self) -> Path:
        return FOLDER / self.package


PFL = Peer("pfl", "pfl[pytorch]", "pfl")
PFL_PER_CORE = Peer("pfl, one process per core", "pfl[pytorch]", "pfl", one_per_core=True)
FLOWER = Peer("Flower (Ray)", "flwr[simulation]", "flwr")
PEERS = (PFL, PFL_PER_CORE, FLOWER)


@dataclass(frozen=True)
class Block:
    """Some rounds after one another, without the warm-up.

    Attributes
    ----------
    seconds, processor_seconds : list of float
        One number per round.
    loss : float
        Over all points, after the last round.
    n_steps : int
        Of all clients, warm-up included: the same for everybody who did the same work.
    n_threads : int
        Of torch, in each process that trains.
    """

    seconds: list[float]
    processor_seconds: list[float]
    loss: float
    n_steps: int
    n_threads: int


def installed(peer: Peer) -> str:
    """Make the environment of a peer unless it is there; returns the version."""
    python = peer.environment / "bin" / "python"
    done = peer.environment / "installed"
    if not done.exists():
        print(f"making an environment for {peer.package} ...", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", peer.environment], check=True)
        pip = [python, "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt"]
        subprocess.run([*pip, "torch"], check=True)
        subprocess.run([*pip, peer.requirement], check=True)
        done.touch()
    ask = f"from importlib.metadata import version; print(version({peer.package!r}))"
    answer = subprocess.run([python, "-c", ask], check=True, stdout=subprocess.PIPE, text=True)
    return answer.stdout.strip()


def block(peer: Peer, work: Path, *, n_warm_up: int, n_rounds: int, n_cores: int) -> Block:
    """Rounds of a peer on the work in a file."""
    environment = {k: v for k, v in os.environ.items() if k not in OURS_ALONE} | QUIET
    environment["PYTHONPATH"] = str(HERE)
    if peer.one_per_core:
        environment["OMP_NUM_THREADS"] = "1"
    ended = subprocess.run(
        _command(peer, str(work), n_warm_up, n_rounds, n_cores),
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode != 0:
        raise RuntimeError(f"{peer.name} failed:\n{ended.stderr[-4000:]}")
    return Block(**json.loads(ended.stdout.splitlines()[-1]))


def _command(peer: Peer, work: str, n_warm_up: int, n_rounds: int, n_cores: int) -> list[str]:
    programs, rounds = peer.environment / "bin", [str(n_warm_up), str(n_rounds)]
    if peer is FLOWER:
        call = f"main({work!r}, {n_warm_up}, {n_rounds}, {n_cores})"
        return [str(programs / "python"), "-c", f"import flower_training; flower_training.{call}"]
    script = [str(HERE / "pfl_training.py"), work, *rounds]
    if peer.one_per_core:
        launcher = [str(programs / "torchrun"), "--standalone", "--nproc-per-node", str(n_cores)]
        return [*launcher, *script]
    return [str(programs / "python"), *script]
