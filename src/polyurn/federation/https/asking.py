"""The operator's side: starts and ends the server of a federation, and is an `Exchange` over it.

A command on the server's machine has the operator's key, which the server wants to see.
"""

import http.client
import json
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

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
from polyurn.federation.processes import alive, end_processes, keep_pid
from polyurn.storage.files import write_secret

_SLACK = 60.0  # seconds that the server may take beside waiting for nodes
_STARTS_WITHIN = 60.0  # seconds


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
                # A read of 0 bytes would wait for more.
                yield node, response.read(n_bytes) if n_bytes else b""

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
    while low < high:  # the first `low` are equal; of the first `high` + 1, if they exist, not all
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def start(folder: FederationFolder, *, host: str) -> int:
    """Start the server on an address of this machine, and return its pid when it has answered."""
    if (pid := alive(folder.pid)) is not None:
        raise FederationError(f"the server is running already (process {pid})")
    folder.check_certificate()
    port = int(folder.read().address.rpartition(":")[2])
    _check_free(host, port)
    reached = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    write_secret(folder.listens, f"{reached} {port}\n".encode())
    command = [sys.executable, "-m", "polyurn.federation.https.server", str(folder.path), host]
    errors = folder.server / "start.log"
    write_secret(errors, b"")
    with open(errors, "ab") as file:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, cwd=folder.server,
            start_new_session=True,
        )  # fmt: skip
    keep_pid(folder.pid, process.pid)
    end = time.monotonic() + _STARTS_WITHIN
    while not _serves(folder):
        if process.poll() is not None or time.monotonic() > end:
            end_processes([folder.pid])
            process.wait()
            line = errors.read_text(errors="replace").strip().rpartition("\n")[2]
            raise FederationError(f"the server did not start: {line or f'see {folder.log}'}")
        time.sleep(0.1)
    process.returncode = 0  # else this object would warn that the process outlives it
    return process.pid


def _serves(folder: FederationFolder) -> bool:
    """Whether the server answers the operator, over TLS, with what it is there for."""
    with suppress(FederationError):
        HttpsExchange(folder).nodes()
        return True
    return False


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
