"""A node of a Flower federation in one process: Flower's connection, and no code from the server.

Flower's own SuperNode runs any app that the server sends, in a new process for each message. This node
answers with the polyurn that its owner installed: the server's app is not even fetched.
`federation/node.py` makes the replies.

The connection is an internal function of flwr, which is why the extra `flower` bounds its version.
"""

import logging
import math
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from polyurn.errors import FederationError, MissingDependencyError
from polyurn.federation.flower.grid_exchange import FIRST_BACKOFF, LAST_BACKOFF, answered
from polyurn.storage.files import check_regular

try:
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import load_ssh_private_key
    from flwr.app import Message
    from flwr.common.constant import HEARTBEAT_DEFAULT_INTERVAL
    from flwr.proto.fleet_pb2 import ActivateNodeRequest, DeactivateNodeRequest
    from flwr.supercore.inflatable.inflatable_object import (
        get_all_nested_objects,
        get_object_tree,
        no_object_id_recompute,
    )
    from flwr.supercore.inflatable.inflatable_utils import (
        pull_and_inflate_object_from_tree,
        push_objects,
    )
    from flwr.supercore.interceptors.http.runtime_version import RuntimeVersionHttpInterceptor
    from flwr.supercore.primitives.asymmetric import public_key_to_bytes
    from flwr.supercore.run import RunNotRunningException
    from flwr.supercore.task_identity import TaskIdentity
    from flwr.supernode.fleet_http_client import FleetHttpClient
    from flwr.supernode.fleet_http_connection import http_request_response
    from flwr.supernode.node_auth_http_interceptor import NodeAuthHttpInterceptor
except ImportError as error:
    raise MissingDependencyError("flwr", "flower", "a node") from error

# Seconds between two polls for messages: a fraction of the time since the last one. A node is quick
# during the rounds, and puts little load on the SuperLink for the rest of the day.
_SOONEST, _LATEST, _PART = 0.3, 3.0, 0.05
_NOT_TAKEN = 412  # a SuperLink's answer to a key that it does not know, or that is in use
# Seconds until a SuperLink notices that a node is gone: more than two heartbeats.
_GONE_WITHIN = 75.0
_GIVES_UP = 60.0  # seconds without a SuperLink: then a new node ends, and a joined one logs a line
_KNOCK = 10.0  # seconds for the first connection


@dataclass(frozen=True)
class Connection:
    """The SuperLink's address, and the keys that identify both sides."""

    address: str
    certificate: Path
    key: bytes


def serve(
    connection: Connection,
    answer: Callable[[str, bytes], bytes],
    *,
    was_there: bool = False,
    on_joined: Callable[[int], None] = lambda _: None,
    on_failure: Callable[[Exception], None] = lambda _: None,
) -> None:
    """Answer messages until the process is told to end; wait for a SuperLink that is gone.

    `answer` is `Node.answer`. `on_joined` gets Flower's id of the node when it is connected, and
    `on_failure` the error of each message that could not be received or replied to. A node that
    `was_there` before may have been killed: the SuperLink accepts it again after about a minute.
    """
    knock(connection.address, connection.certificate)
    logging.getLogger("flwr").setLevel(logging.ERROR)
    private = load_ssh_private_key(connection.key, password=None)
    assert isinstance(private, ec.EllipticCurvePrivateKey)
    _check_in(connection, private, patience=_GONE_WITHIN if was_there else 0.0)
    try:
        with http_request_response(
            connection.address,
            insecure=False,
            root_certificates=str(connection.certificate),
            authentication_keys=(private, private.public_key()),
            max_wait_time=_GIVES_UP,
        ) as link:
            on_joined(link[0])
            _answer_messages(link, answer, on_failure)
    except SystemExit as ended:
        raise FederationError(
            f"the SuperLink at {connection.address} refused this node: {ended.__context__}"
        ) from None


def _check_in(
    connection: Connection, private: ec.EllipticCurvePrivateKey, *, patience: float
) -> None:
    """Connect and disconnect once, before flwr connects: flwr ends the process of a refused node."""
    public = private.public_key()
    end = time.monotonic() + patience
    with FleetHttpClient.from_server_address(
        connection.address,
        False,
        str(connection.certificate),
        interceptors=[
            RuntimeVersionHttpInterceptor(component_name="SuperNode"),
            NodeAuthHttpInterceptor(private, public),
        ],
    ) as client:
        asked = ActivateNodeRequest(
            public_key=public_key_to_bytes(public), heartbeat_interval=HEARTBEAT_DEFAULT_INTERVAL
        )
        while True:
            try:
                taken = client.ActivateNode(asked)
                client.DeactivateNode(DeactivateNodeRequest(node_id=taken.node_id))
                return
            except Exception as error:
                response = getattr(error, "response", None)
                if response is None or response.status_code != _NOT_TAKEN:
                    raise FederationError(
                        f"the SuperLink at {connection.address} refused this node: {error}"
                    ) from error
                if time.monotonic() >= end:
                    raise FederationError(_not_taken(connection.address, patience)) from error
            time.sleep(_LATEST)


def _answer_messages(
    link: Any, answer: Callable[[str, bytes], bytes], on_failure: Callable[[Exception], None]
) -> None:
    """Messages one by one, as a SuperNode does; one that fails does not end the node."""
    node_id, receive, send, _, _, pull, push, confirm = link
    pause = _Pause()
    while True:
        try:
            got = receive()
            if got is None:
                pause.sleep()
                continue
            pause.wake()
            head, tree = got
            run = head.metadata.run_id
            TaskIdentity.run_id = TaskIdentity.task_id = run
            TaskIdentity.node_id = node_id
            message = pull_and_inflate_object_from_tree(
                tree, partial(pull, run), partial(confirm, run), return_type=Message,
                initial_backoff=FIRST_BACKOFF, backoff_cap=LAST_BACKOFF,
            )  # fmt: skip
            message.metadata.__dict__["_message_id"] = tree.object_id
            _reply(answered(message, answer), send, partial(push, run))
        except RunNotRunningException:
            continue  # the server no longer waits for the reply
        except Exception as error:
            # The connection broke, or the message cannot be read: the next one may be right.
            on_failure(error)
            time.sleep(_LATEST)


def knock(address: str, certificate: Path) -> None:
    """Check that a SuperLink with a certificate of this authority is at the address."""
    host, _, port = address.rpartition(":")
    check_regular(certificate)
    try:
        context = ssl.create_default_context(cafile=certificate)
    except ssl.SSLError as error:
        raise FederationError(
            f"{certificate} is not a certificate: take the one of this federation"
        ) from error
    try:
        with (
            socket.create_connection((host.strip("[]"), int(port)), timeout=_KNOCK) as plain,
            context.wrap_socket(plain, server_hostname=host.strip("[]")),
        ):
            return
    except ssl.SSLCertVerificationError as error:
        raise FederationError(_distrust(error, address, certificate)) from error
    except ssl.SSLError as error:
        raise FederationError(
            f"{address} answers, but not with TLS: is it the SuperLink's port?"
        ) from error
    except OSError as error:
        raise FederationError(
            f"no SuperLink at {address}: {error.strerror or error}; run `polyurn federation up` on the "
            "server first, and check the address"
        ) from error


class _Pause:
    """Seconds to wait before the next poll for messages."""

    def __init__(self) -> None:
        self._last = -math.inf

    def wake(self) -> None:
        self._last = time.monotonic()

    def sleep(self) -> None:
        since = time.monotonic() - self._last
        time.sleep(min(max(_SOONEST, _PART * since), _LATEST))


def _reply(
    reply: Message,
    send: Callable[[Message, Any, float], tuple[set[str], str]],
    push: Callable[[str, str, bytes], None],
) -> None:
    """Send a reply as a SuperNode does internally: first its outline, then its objects."""
    reply.metadata.__dict__["_message_id"] = reply.object_id
    with no_object_id_recompute():
        objects, tree = get_all_nested_objects(reply), get_object_tree(reply)
        wanted, session = send(reply, tree, 0.0)
        push_objects(objects, partial(push, session), object_ids_to_push=wanted)


def _distrust(error: ssl.SSLCertVerificationError, address: str, certificate: Path) -> str:
    match error.verify_code:
        case 10:  # X509_V_ERR_CERT_HAS_EXPIRED
            return f"the certificate of {address} has expired: make a new one on the server"
        case 9:  # X509_V_ERR_CERT_NOT_YET_VALID
            return f"the certificate of {address} is not valid yet: is this machine's clock right?"
        case 62 | 64:  # X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH
            return (
                f"the certificate of the SuperLink is not for {address}: name that host in "
                "`polyurn federation init --host`"
            )
    return f"the certificate of {address} is not signed by {certificate}: take this federation's"


def _not_taken(address: str, patience: float) -> str:
    """The reasons for a refusal: a SuperLink gives the same for an unknown key and for one in use."""
    if not patience:
        return (
            f"the SuperLink at {address} does not know this node's key: register it on the server with "
            "`polyurn federation up`"
        )
    return (
        f"the SuperLink at {address} has not taken this node for {patience:g} s: another process has "
        "joined with its key, or the server does not know the key any more"
    )
