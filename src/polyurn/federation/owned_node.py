"""A node from its owner's folder: its table, policy, keys and log, and the `Node` made of them.

`https/link.py` brings its messages, or a SuperNode of Flower's.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Any

import numpy as np

from polyurn.client.counting import Histograms, category_names
from polyurn.client.record_tables import table_records
from polyurn.client.records import Records
from polyurn.counts import check_counts, client_sizes
from polyurn.errors import CountsError, InputError
from polyurn.federation.folder import SIGNING_KEY, TRANSPORT_KEY, NodeFolder, bucket_key
from polyurn.federation.keys import SigningKey
from polyurn.federation.node import Node, check_clients
from polyurn.federation.node_log import NodeLogFile
from polyurn.federation.policy import NodePolicy, read_policy
from polyurn.model.style_coordinates import StyleSpace
from polyurn.privacy.ledger import PrivacyLedger
from polyurn.privacy.noise import check_installed
from polyurn.storage.ledger_file import LedgerFile, raised_ledger
from polyurn.wire import StyleMoments
from polyurn.wording import counted

POLICY, BUCKET_KEY, QUESTIONS = "policy.toml", "bucket.key", "questions.log"
LEDGER = "privacy.ledger"


def open_node(
    folder: NodeFolder,
    clients: Histograms | Records,
    *,
    allow_exact: bool = False,
    memory: Mapping[str, bytes] | None = None,
    on_failure: Callable[[Exception], None] = lambda _: None,
) -> Node:
    """The node that answers for some clients, if they fit the declarations of the federation.

    With records, questions about style are answered too. `allow_exact` allows sums without noise,
    whatever the policy says; `memory` and `on_failure` are as in `Node`.
    Files that are missing, damaged or open to others, another node's key, and noise that cannot be
    drawn are errors here, and not at the first question.
    """
    declared = folder.federation
    listed, names = clients, category_names(declared.declared)
    if isinstance(listed, Records):
        listed = Histograms(listed.counts, listed.ids, names)
    if listed.shape[1] != declared.n_categories:
        raise CountsError(
            f"the federation has {counted(declared.n_categories, 'category')}, the table "
            f"{listed.shape[1]}"
        )
    # Before there is any file; the node itself checks it, too.
    largest = int(client_sizes(check_counts(listed.counts)).max())
    limits: Any = {"max_size": declared.max_size, "clients_per_node": declared.clients_per_node}
    check_clients(listed.shape[0], largest, **limits)
    signer = SigningKey(folder.secret(SIGNING_KEY))
    entry = declared.nodes[folder.number - 1]
    transport = SigningKey(folder.secret(TRANSPORT_KEY))  # a key like others, for this comparison
    keys = {SIGNING_KEY: (signer, entry.signing), TRANSPORT_KEY: (transport, entry.transport)}
    for name, (held, public) in keys.items():
        if held.public.split()[:2] != public.encode().split()[:2]:
            raise InputError(
                f"{folder.path / name} is not the key of {entry.name} in the roster: take the folder of "
                "one federation"
            )
    policy = read_policy(folder.path / POLICY)
    if allow_exact:
        policy = replace(policy, allow_exact=True)
    secret, log = bucket_key(folder.path / BUCKET_KEY), NodeLogFile(folder.path / QUESTIONS)
    ledger, entries = _ledger(folder, policy, secret, log)
    return Node(
        folder.number, clients if isinstance(clients, Records) else clients.counts,
        ids=list(listed.clients), key=secret, policy=policy, log=log,
        ledger=ledger, entries=entries, signer=signer, roster=declared.roster, memory=memory,
        on_failure=on_failure, **limits,
    )  # fmt: skip


def records_of(
    folder: NodeFolder, table: Any, features: str, *, client: str | None, category: str | None
) -> Records:
    """The clients of a table with a row for each point; `features` are comma-separated columns."""
    columns = [name.strip() for name in features.split(",")]
    folder.federation.check_features(columns)
    return table_records(
        table, label=category or "category", categories=folder.federation.declared, features=columns,
        client=client or "client",
        values=folder.federation.values,
    )  # fmt: skip


def _ledger(
    folder: NodeFolder, policy: NodePolicy, key: bytes, log: NodeLogFile
) -> tuple[PrivacyLedger | None, LedgerFile | None]:
    """The owner's account of what these clients have answered, with a budget if the policy has one.

    The log of questions has the mark of the last charge: a ledger without it is not the node's.
    """
    if not policy.allow_exact:
        check_installed(f"noise, which {folder.path / POLICY} demands,")
    path = folder.path / LEDGER
    kept: dict[str, Any] = {"key": ledger_key(key), "mark": log.last_ledger}
    if policy.most_epsilon == 0:
        return None, LedgerFile(path, **kept) if policy.allow_exact else None
    most = policy.most_epsilon
    ledger = raised_ledger(
        path, epsilon=most, delta=policy.delta, first=most, renew=policy.renew, **kept
    )
    return ledger, None


def ledger_key(key: bytes) -> bytes:
    """The key of the ledger's checksums, from that of the buckets."""
    return sha256(b"polyurn ledger" + key).digest()


def warm_up() -> None:
    """Compile or load the kernels of all answers, so that no round waits for that.

    The first time it takes half a minute. A small selection asks every kind of question once; then one
    client is asked about its style.
    """
    from polyurn.aggregate.local import LocalAggregator
    from polyurn.server.fit_settings import Settings
    from polyurn.server.fitting import fit_sums

    counts = np.random.default_rng(0).multinomial(9, [0.5, 0.3, 0.2], size=60)
    few = Settings(max_rounds=6)
    clients = LocalAggregator(counts, rng=0)
    fit_sums(clients, (1, 2), n_categories=3, max_size=9, settings=few, rng=0)
    space = StyleSpace(np.zeros((2, 1)), np.ones((1, 1)), np.ones((2, 1, 1)), radius=1.0)
    records = Records([[0.5], [1.0]], [0, 1], [0, 0])
    LocalAggregator(records).aggregate(StyleMoments(space), None)
