"""Starts the server's process of a federation, sees whether it serves, and ends it."""

import socket
import subprocess
import sys
import time

from polyurn.errors import FederationError
from polyurn.federation.folder import FederationFolder
from polyurn.federation.https.asking import HttpsExchange
from polyurn.federation.processes import alive, end_processes, keep_pid
from polyurn.storage.files import write_secret

_STARTS_WITHIN = 60.0  # seconds
_ENDS_WITHIN = 10.0


def start(folder: FederationFolder, *, host: str) -> int:
    """Start the server on an address of this machine, and return its pid when it has answered."""
    if (pid := alive(folder.pid)) is not None:
        raise FederationError(f"the server is running already (process {pid})")
    folder.check_certificate()
    port = int(folder.read().address.rpartition(":")[2])
    _check_free(host, port)
    reached = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    write_secret(folder.listens, f"{reached} {port}\n".encode())
    exchange = HttpsExchange(folder)
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
    while not _serves(exchange):
        if process.poll() is not None or time.monotonic() > end:
            end_processes([folder.pid], within=_ENDS_WITHIN)
            process.wait()
            line = errors.read_text(errors="replace").strip().rpartition("\n")[2]
            raise FederationError(f"the server did not start: {line or f'see {folder.log}'}")
        time.sleep(0.1)
    process.returncode = 0  # else this object would warn that the process outlives it
    return process.pid


def stop(folder: FederationFolder) -> bool:
    """End the server; return whether it was running."""
    return end_processes([folder.pid], within=_ENDS_WITHIN) > 0


def _serves(exchange: HttpsExchange) -> bool:
    """Whether the server answers the operator, over TLS, with what it is there for."""
    try:
        exchange.nodes()
    except FederationError:
        return False
    return True


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
