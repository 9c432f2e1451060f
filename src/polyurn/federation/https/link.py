"""A node's side: one outgoing request after the other, until the process is told to end.

A node waits for a server that is gone, ever longer, and at random, so that a thousand nodes do not come
back at once. `HTTPS_PROXY` is honoured. `federation/node.py` makes the replies.
"""

import asyncio
import random
import secrets
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from polyurn.errors import FederationError, MissingDependencyError
from polyurn.federation.folder import TRANSPORT_KEY, NodeFolder
from polyurn.federation.https.protocol import (
    CLOSES,
    MESSAGE,
    MOST_MESSAGE,
    POLL,
    SESSION,
    STAGE,
    client_context,
)

try:
    import aiohttp
except ImportError as error:
    raise MissingDependencyError("aiohttp", "federation", "a node") from error

_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 30.0  # seconds until a lost server is tried again
_CONNECTS, _SILENT = 15.0, POLL + 15.0  # seconds for a connection, and without a byte
_TAKEN = 60.0  # seconds in which another process with the same key may end


class _RefusedError(Exception):
    """The server's status is not one of success."""

    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}")
        self.status = status


@dataclass(frozen=True)
class Link:
    """A node and what it answers.

    `answer` is `Node.answer`. `on_joined` is called when it is connected for the first time, and `say`
    gets a line for its owner when the server is lost or is back.
    """

    folder: NodeFolder
    answer: Callable[[str, bytes], bytes]
    on_joined: Callable[[], None] = lambda: None
    say: Callable[[str], None] = lambda _: None


def knock(links: Sequence[Link]) -> None:
    """See that some nodes may join; whatever keeps one from it is one line."""
    _run(links, answers=False)


def serve(links: Sequence[Link]) -> None:
    """Answer the messages to some nodes until the process is told to end."""
    _run(links, answers=True)


def _run(links: Sequence[Link], *, answers: bool) -> None:
    async def for_all() -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for link in links:
                    group.create_task(_visit(link, answers=answers))
        finally:
            await asyncio.sleep(CLOSES)

    failures = list[FederationError]()
    try:
        asyncio.run(for_all())
    except* FederationError as group:
        failures += [error for error in group.exceptions if isinstance(error, FederationError)]
    if failures:
        raise failures[0]


async def _visit(link: Link, *, answers: bool) -> None:
    async with _session(link) as session:
        await _join(link, session)
        if answers:
            link.on_joined()
            await _answer_messages(link, session)


def _session(link: Link) -> aiohttp.ClientSession:
    folder = link.folder
    context = client_context(folder.certificate, folder.path / TRANSPORT_KEY, folder.ca_certificate)
    return aiohttp.ClientSession(
        f"https://{folder.federation.address}",
        headers={SESSION: secrets.token_hex(16)},
        connector=aiohttp.TCPConnector(ssl=context, limit=2, keepalive_timeout=2 * POLL),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECTS, sock_read=_SILENT),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,  # a few bytes could become very many
        trust_env=True,
    )


async def _join(link: Link, session: aiohttp.ClientSession) -> None:
    """Say hello; whatever keeps the node from joining is one line."""
    end = asyncio.get_running_loop().time() + _TAKEN
    while True:
        try:
            async with session.get("/hello", allow_redirects=False) as response:
                if response.status == 204:
                    return
                raise _RefusedError(response.status)
        except (aiohttp.ClientError, OSError, TimeoutError, _RefusedError) as error:
            is_taken = isinstance(error, _RefusedError) and error.status == 409
            if not is_taken or asyncio.get_running_loop().time() > end:
                raise FederationError(_in_words(error, link.folder)) from error
        await asyncio.sleep(1.0)


async def _answer_messages(link: Link, session: aiohttp.ClientSession) -> None:
    """Message after message; a reply is sent again until the server has it."""
    reply, headers, n_failures = b"", dict[str, str](), 0
    while True:
        try:
            async with session.post(
                "/next", data=reply, headers=headers, allow_redirects=False
            ) as response:
                message = await _read(response)
                stage, name = (response.headers.get(one, "") for one in (STAGE, MESSAGE))
        except (aiohttp.ClientError, OSError, TimeoutError, _RefusedError) as error:
            n_failures += 1
            status = error.status if isinstance(error, _RefusedError) else 0
            if status == 403:
                raise FederationError(_in_words(error, link.folder)) from error
            if status in (408, 413):
                reply, headers = b"", {}  # the server does not want it
            if n_failures == 3:
                link.say(f"{_in_words(error, link.folder)}; trying again")
            pause = min(_FIRST_PAUSE * 2 ** min(n_failures - 1, 20), _LONGEST_PAUSE)
            await asyncio.sleep(pause * random.uniform(0.5, 1.5))
            continue
        if n_failures >= 3:
            link.say("the server is back")
        n_failures = 0
        reply, headers = b"", {}
        if message is not None:
            reply, headers = link.answer(stage, message), {MESSAGE: name}


async def _read(response: aiohttp.ClientResponse) -> bytes | None:
    """A message; None if there is none yet."""
    if response.status == 204:
        return None
    length = response.content_length
    if response.status != 200 or length is None or length > MOST_MESSAGE:
        raise _RefusedError(response.status)
    return await response.read()


def _in_words(error: Exception, folder: NodeFolder) -> str:
    """Why a node is not connected, and what to do."""
    address = folder.federation.address
    match error:
        case _RefusedError(status=403):
            return f"the server at {address} does not know this node's key: {_ROSTER}"
        case _RefusedError(status=409):
            return f"another process has joined {address} with this node's key: end it first"
        case _RefusedError(status=status):
            return f"{address} answers with status {status}: is it the federation's server?"
        case aiohttp.ClientConnectorCertificateError():
            return _distrust(error.certificate_error, address, folder)
        case aiohttp.ClientConnectorSSLError():
            return f"{address} answers, but not with TLS 1.3: is it the server's port?"
        case aiohttp.ClientConnectorError() | TimeoutError():
            why = getattr(error, "strerror", None) or error or "no answer"
            return (
                f"no server at {address}: {why}; run `polyurn federation up` on the server first, and "
                "check the address"
            )
    return (
        f"{address} closed the connection, as a server does that does not know this node's certificate: "
        f"{_ROSTER}"
    )


_ROSTER = "take the files that this federation's `init` made for the node"


def _distrust(error: Exception, address: str, folder: NodeFolder) -> str:
    match error.verify_code if isinstance(error, ssl.SSLCertVerificationError) else 0:
        case 10:  # X509_V_ERR_CERT_HAS_EXPIRED
            return f"the certificate of {address} has expired: make a new one on the server"
        case 9:  # X509_V_ERR_CERT_NOT_YET_VALID
            return f"the certificate of {address} is not valid yet: is this machine's clock right?"
        case 62 | 64:  # X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH
            return (
                f"the certificate of the server is not for {address}: name that host in "
                "`polyurn federation init --host`"
            )
    return f"the certificate of {address} is not of {folder.ca_certificate}: take this federation's"
