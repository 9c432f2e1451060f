"""The side of whoever asks: an `Exchange` over the server of a federation, and the state of the server.

A command on the server's machine has the operator's key, which the server wants to see.
"""

import http.client
import json
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from polyurn.errors import FederationError
from polyurn.federation.folder import FederationFolder
from polyurn.federation.https.protocol import (
    N_HEAD,
    REPLIED,
    RUN,
    SENT,
    STAGE,
    TIMEOUT,
    client_context,
)

_SLACK = 60.0  # seconds that the server may take beside waiting for nodes


class HttpsExchange:
    """Carries messages to the nodes that are connected to the server of a federation."""

    def __init__(self, files: FederationFolder) -> None:
        self._files, self._run = files, secrets.token_hex(16)
        self._context = client_context(
            files.operators_certificate, files.operators_key, files.ca_certificate
        )
        self._context.check_hostname = False  # it may listen on an address that nodes do not use

    def nodes(self) -> list[int]:
        """The numbers of the nodes that are connected now."""
        with self._asked("GET", "/status", within=_SLACK) as response:
            return list(json.loads(response.read()))

    def ask(
        self, stage: str, messages: Mapping[int, bytes], *, timeout: float
    ) -> Iterator[tuple[int, bytes]]:
        """(node, reply) as replies arrive, with empty ones of nodes that replied late, or are gone."""
        headers = {STAGE: stage, RUN: self._run, TIMEOUT: str(timeout)}
        with self._asked(
            "POST", "/ask", within=timeout + _SLACK, headers=headers, body=_written(messages)
        ) as response:
            while head := response.read(REPLIED.size):
                node, n_bytes = REPLIED.unpack(head)
                yield (
                    node,
                    response.read(n_bytes) if n_bytes else b"",
                )  # of 0 it would wait for more

    @contextmanager
    def _asked(
        self,
        method: str,
        path: str,
        *,
        within: float,
        headers: Mapping[str, str] | None = None,
        body: Iterator[bytes] | None = None,
    ) -> Iterator[http.client.HTTPResponse]:
        host, _, port = self._files.listens.read_text().strip().rpartition(" ")
        link = http.client.HTTPSConnection(host, int(port), timeout=within, context=self._context)
        try:
            _connect(link)
            link.request(method, path, body, headers or {}, encode_chunked=body is not None)
            response = link.getresponse()
            if response.status != http.client.OK:
                raise FederationError(f"the server refused {path}: {response.reason}")
            yield response
        except (OSError, http.client.HTTPException) as error:
            raise FederationError(
                f"the server has died, or does not answer: polyurn federation up {self._files.path}"
            ) from error
        finally:
            link.close()


def _connect(link: http.client.HTTPSConnection) -> None:
    """Open a connection; a server that is flooded with connections may lose one that has begun."""
    for _ in range(9):
        try:
            link.connect()
        except ConnectionRefusedError:
            raise  # nobody listens
        except OSError:
            time.sleep(1.0)
        else:
            return
    link.connect()


def _written(messages: Mapping[int, bytes]) -> Iterator[bytes]:
    """All messages of a stage: what they share with the first one after their heads goes once."""
    first = None
    for node, message in messages.items():
        head, body = message[:N_HEAD], message[N_HEAD:]
        n_shared = 0 if first is None else _n_shared(first, body)
        first = body if first is None else first
        rest = body[n_shared:]
        yield SENT.pack(node, len(head), n_shared, len(rest)) + head
        yield rest


def _n_shared(one: bytes, other: bytes) -> int:
    """How many bytes two texts have in common at their beginnings."""
    low, high = 0, min(len(one), len(other))
    if one[:high] == other[:high]:
        return high
    while (
        low < high
    ):  # the first `low` are equal; of the first `high` + 1, if there are any, not all
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
