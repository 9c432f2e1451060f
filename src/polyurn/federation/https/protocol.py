"""What the processes of a federation over HTTPS agree on: names, limits, and TLS contexts.

A node sends `POST /next` again and again: the body is its reply to the last message, the response the
next message, or 204 if there was none for a while. The operator, which is a command on the server's
machine, sends `POST /ask` with messages and reads replies as they come, and `GET /status`.

Both sides of every connection show a certificate of the federation's authority, so that a stranger's
connection ends in the handshake. TLS also refuses what is replayed or changed on the way.
"""

import ssl
import struct
from pathlib import Path

from polyurn.errors import FederationError
from polyurn.storage.files import check_regular, read_secret

# Headers: the stage of a message, its id, the node's process, whoever asks, and the seconds of a stage.
STAGE, MESSAGE, SESSION, RUN, TIMEOUT = (
    f"Polyurn-{name}" for name in ("Stage", "Message", "Session", "Run", "Timeout")
)
MOST_REPLY = 2**23  # bytes: a million numbers
MOST_MESSAGE = 2**26  # bytes: more than any policy allows in a question
POLL = 30.0  # seconds that a request waits for a message: proxies end what is silent for a minute
CLOSES = 0.25  # seconds in which connections in TLS end once they are closed

# In requests and responses of the operator. A message is (node, length of its head, of what it shares
# with the first one after the head, and of the rest); a reply is (node, length).
SENT, REPLIED = struct.Struct("<QIII"), struct.Struct("<QI")
N_HEAD = 68  # bytes, which differ from node to node


def server_context(certificate: Path, key: Path, authority: Path) -> ssl.SSLContext:
    """TLS of the server, which takes clients of the authority only."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = ssl.CERT_REQUIRED
    return _filled(context, certificate, key, authority)


def client_context(certificate: Path, key: Path, authority: Path) -> ssl.SSLContext:
    """TLS of a node or the operator."""
    return _filled(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), certificate, key, authority)


def _filled(
    context: ssl.SSLContext, certificate: Path, key: Path, authority: Path
) -> ssl.SSLContext:
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    read_secret(key)  # refuses one that others may read
    for path in (certificate, authority):
        check_regular(path)
    try:
        context.load_verify_locations(authority)
    except ssl.SSLError as error:
        raise FederationError(
            f"{authority} is not a certificate: take the one of this federation"
        ) from error
    try:
        context.load_cert_chain(certificate, key)
    except ssl.SSLError as error:
        raise FederationError(
            f"{certificate} is not the certificate of {key}: take those of one federation"
        ) from error
    return context
