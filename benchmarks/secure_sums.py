"""Processor time of one secure sum: the server's, and that of one node on average.

    python benchmarks/secure_sums.py                       # all cases (minutes: every node is played)
    python benchmarks/secure_sums.py --case 0              # 100 nodes x 50,000 numbers

All nodes run in this process, one after the other, on one thread; `time.process_time` counts around
each call, so that other processes on the machine lengthen it little. Nothing travels.
"""

import argparse
import time
from dataclasses import dataclass

import numpy as np
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from polyurn.federation.keys import Roster, SigningKey
from polyurn.federation.participant import Participant
from polyurn.federation.round import SecureSum

STAGES = ("advertise", "share", "mask", "confirm", "reveal")
TAKES = ("advertised", "shared", "masked", "confirmed", "revealed")


@dataclass(frozen=True)
class Case:
    """One sum; `gone` nodes never send their numbers, which is the dearest time to leave."""

    n_nodes: int
    n_numbers: int
    dropout: float
    gone: int = 0
    curve: str = "Ed25519"


CASES = (
    Case(100, 50_000, 0.1),
    Case(100, 50_000, 0.1, curve="P-384"),
    Case(100, 50_000, 0.3, gone=30),
    Case(1000, 1000, 0.05),
    Case(1000, 1000, 0.3),
    Case(1000, 1000, 0.3, gone=300),
)


def main() -> None:
    """Measure and print one row of a table per case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", type=int, help="only this one, counted from 0")
    number = parser.parse_args().case
    print(
        "| nodes | numbers | gone | declared dropouts | signatures | neighbours, threshold, quorum "
        "| server, s | one node, ms | largest message up, down, kB | error / bound |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for case in CASES if number is None else [CASES[number]]:
        print(row(case), flush=True)


def row(case: Case) -> str:
    """One sum, measured."""
    rng = np.random.default_rng(1)
    keys = {node: signing_key(case.curve) for node in range(1, case.n_nodes + 1)}
    roster = Roster({node: key.public for node, key in keys.items()})
    nodes = {n: Participant(n, signer=key, roster=roster) for n, key in keys.items()}
    bounds = 10.0 ** rng.uniform(-3, 6, case.n_numbers)
    values = {node: bounds * rng.uniform(-1, 1, case.n_numbers) for node in keys}
    gone = set(rng.choice(list(keys), case.gone, replace=False).tolist())
    round_ = SecureSum(keys, roster=roster, bounds=bounds, dropout=case.dropout, rng=2)
    server = node_time = 0.0
    up = down = 0
    requests, server = timed(round_.invite, server)
    for stage, takes in zip(STAGES, TAKES, strict=True):
        replies, stage_time = {}, 0.0
        for node, request in requests.items():
            if stage == "mask" and node in gone:
                continue
            numbers = {"values": values[node], "bounds": bounds} if stage == "mask" else {}
            act = getattr(nodes[node], stage)
            replies[node], stage_time = timed(act, stage_time, request, **numbers)
            up, down = max(up, len(replies[node])), max(down, len(request))
        node_time += stage_time / len(replies)
        requests, server = timed(getattr(round_, takes), server, replies)
    total = np.sum([values[node] for node in round_.summed], axis=0)
    error = np.max(np.abs(requests - total) / bounds)
    graph = round_.graph
    return (
        f"| {case.n_nodes:,} | {case.n_numbers:,} | {case.gone} | {case.dropout:.0%} | {case.curve} "
        f"| {graph.n_neighbours}, {graph.threshold}, {graph.quorum} | {server:.2f} "
        f"| {1000 * node_time:.0f} | {up / 1000:.0f}, {down / 1000:.0f} | {error:.1e} |"
    )


def timed(call, so_far, *args, **kwargs):
    """What a call returns, and the processor time with that of the call added."""
    start = time.process_time()
    result = call(*args, **kwargs)
    return result, so_far + time.process_time() - start


def signing_key(curve: str) -> SigningKey:
    """A fresh key of either kind."""
    if curve == "Ed25519":
        return SigningKey.generate()
    form = serialization.PrivateFormat.PKCS8
    private = ec.generate_private_key(ec.SECP384R1())
    return SigningKey(
        private.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    )


if __name__ == "__main__":
    main()
