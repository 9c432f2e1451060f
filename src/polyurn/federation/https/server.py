"""The server's process: hands messages to the nodes that ask for them, and replies back to the operator.

    python -m polyurn.federation.https.server DIR HOST

It keeps nothing on disk but a log. It reads no message: what is asked, and of whom, is the operator's,
and what is answered the nodes'. After a crash it is started again, and the nodes come back.
"""

import asyncio
import contextlib
import logging
import os
import secrets
import socket
import ssl
import sys
import time
from collections import deque
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from logging.handlers import RotatingFileHandler
from typing import Any

from polyurn.errors import MissingDependencyError
from polyurn.federation.folder import FederationFolder
from polyurn.federation.https.protocol import (
    CLOSES,
    MESSAGE,
    MOST_MESSAGE,
    MOST_REPLY,
    POLL,
    REPLIED,
    RUN,
    SENT,
    SESSION,
    STAGE,
    TIMEOUT,
    server_context,
)
from polyurn.federation.keys import public_key_of
from polyurn.federation.processes import ended_like_ctrl_c
from polyurn.wording import listed

try:
    from aiohttp import web
except ImportError as error:
    raise MissingDependencyError("aiohttp", "federation", "a federation") from error

_LOG = logging.getLogger(__name__)
_LOG_BYTES, _N_OLD_LOGS = 2**20, 2
_SELDOM = 60.0  # seconds between two lines that say the same
_HANDSHAKE = 10.0  # seconds
_MOST_STRANGERS = 256  # connections in their handshake; then the oldest is closed
_MOST_CONNECTIONS = 4  # of a node, twice what it needs to reconnect; then the oldest is closed
_BODY = 60.0  # seconds until the body of a request has arrived
_LOOK = 0.25  # seconds between two looks which nodes have gone
_GRACE = 3.0  # seconds that a node without a connection may take to come back
_SILENT = 15.0  # seconds without a request, after which an idle node is not there
_MOST_RUNS = 64  # whose late replies are remembered
_OPERATOR = 0
# A connection that says nothing for 30 s is asked three times whether it is still there.
_KEEP_ALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}


@dataclass(eq=False)
class _Ask:
    """One stage of a run: who has not replied yet, and replies that the run has not read."""

    stage: str
    run: str
    open: set[int] = field(default_factory=set)
    replies: asyncio.Queue[tuple[int, bytes]] = field(default_factory=asyncio.Queue)

    def close(self, node: int, reply: bytes) -> bool:
        """Take a node's reply; False if the stage does not wait for it any more."""
        if node not in self.open:
            return False
        self.open.discard(node)
        self.replies.put_nowait((node, reply))
        return True


@dataclass(eq=False)
class _Message:
    ask: _Ask
    node: int
    parts: tuple[bytes, bytes, bytes]  # head, what all messages of the stage share, and the rest
    id: str = field(default_factory=lambda: secrets.token_hex(16))


class _Node:
    """A node as the server sees it: its process, its connection, and messages on their way to it."""

    def __init__(self) -> None:
        self.waiting: deque[_Message] = deque()
        self.current: _Message | None = None
        self.session = ""
        self.n_polls = 0
        self._transport: asyncio.BaseTransport | None = None
        self._is_polling, self._seen, self._lost = False, 0.0, 0.0
        self._news = asyncio.Event()

    @property
    def is_connected(self) -> bool:
        if self._transport is None or self._transport.is_closing():
            return False
        at_work = self._is_polling or self.current is not None
        return at_work or time.monotonic() - self._seen < _SILENT

    @property
    def has_gone(self) -> bool:
        """Whether it has been away for so long that it will not reply to what is on its way."""
        if self.is_connected:
            self._lost = 0.0
            return False
        self._lost = self._lost or time.monotonic()
        return self._transport is None or time.monotonic() - self._lost > _GRACE

    def enter(self, session: str, transport: asyncio.BaseTransport | None) -> bool:
        """A request of one of the node's processes; False if another one is connected."""
        if session != self.session:
            if self.is_connected:
                return False
            self.fail()
            self.session = session
        self._transport, self._seen = transport, time.monotonic()
        return True

    def fail(self) -> None:
        """The message that it has will not be replied to."""
        if self.current is not None:
            self.current.ask.close(self.current.node, b"")
        self.current = None

    def post(self, message: _Message) -> None:
        self.waiting.append(message)
        self._news.set()

    async def next(self) -> _Message | None:
        """Wait for a message, until the node sends another request.

        A node that asks again without a reply has not received the last message.
        """
        self.n_polls += 1
        mine, self._is_polling = self.n_polls, True
        self._news.set()  # ends an earlier request of the node, whose connection may be broken
        try:
            async with asyncio.timeout(POLL):
                while self.n_polls == mine:
                    if (message := self._first()) is not None:
                        return message
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            pass
        finally:
            if self.n_polls == mine:
                self._is_polling, self._seen = False, time.monotonic()
        return None

    def _first(self) -> _Message | None:
        """The first message that is still waited for."""
        while True:
            message = self.current
            if message is not None and message.node in message.ask.open:
                return message
            if not self.waiting:
                self.current = None
                return None
            self.current = self.waiting.popleft()


class Switchboard:
    """The handlers of all requests.

    `names` are those of the nodes, by their numbers; `known` has whose connection it is (a node's number
    or `_OPERATOR`) for each public key.
    """

    def __init__(self, names: dict[int, str], known: dict[str, int]) -> None:
        self._names, self._known = names, known
        self._nodes = {number: _Node() for number in names}
        self._whose: dict[bytes, int | None] = {}  # certificates, which are read once
        self._connections: dict[int, deque[asyncio.Transport]] = {}
        # For each run, nodes whose late replies it has not been told.
        self._alive: dict[str, set[int]] = {}
        self._noted: dict[str, tuple[float, int]] = {}

    def application(self) -> web.Application:
        """The HTTP of the server."""
        app = web.Application(client_max_size=MOST_REPLY)
        app.add_routes([
            web.get("/hello", self._hello), web.post("/next", self._next),
            web.post("/ask", self._ask), web.get("/status", self._status),
        ])  # fmt: skip
        return app

    def entered(self, transport: asyncio.Transport) -> None:
        """A connection whose handshake is over: close those of nobody in the roster, and the oldest."""
        whose = self._whose_is(transport)
        if whose is None:
            self.seldom("refused a certificate that is not in the roster")
            transport.abort()
            return
        own = self._connections.setdefault(whose, deque())
        own.append(transport)
        while own and own[0].is_closing():
            own.popleft()
        if whose != _OPERATOR and len(own) > _MOST_CONNECTIONS:
            own.popleft().abort()

    def close(self) -> None:
        """End all connections."""
        for transport in chain.from_iterable(self._connections.values()):
            transport.abort()

    def seldom(self, what: str) -> None:
        """Log what strangers and hostile nodes can cause, once a minute at most."""
        last, n = self._noted.get(what, (-_SELDOM, 0))
        if (now := time.monotonic()) - last < _SELDOM:
            self._noted[what] = last, n + 1
            return
        _LOG.info("%s%s", what, f" ({n + 1} times since the last line)" if n else "")
        self._noted[what] = now, 0

    def _whose_is(self, transport: asyncio.BaseTransport | None) -> int | None:
        tls = None if transport is None else transport.get_extra_info("ssl_object")
        if tls is None:
            return None
        certificate = tls.getpeercert(binary_form=True)
        if certificate not in self._whose:
            # There are as many as the authority has signed.
            self._whose[certificate] = self._known.get(public_key_of(certificate))
        return self._whose[certificate]

    def _entering(self, request: web.Request) -> tuple[int, _Node]:
        """The node that sends a request."""
        number = self._whose_is(request.transport)
        if number is None or number == _OPERATOR:
            raise web.HTTPForbidden
        node = self._nodes[number]
        if not node.is_connected and node.session != request.headers.get(SESSION, ""):
            _LOG.info("%s connects", self._names[number])
        if not node.enter(request.headers.get(SESSION, ""), request.transport):
            self.seldom(f"refused another process of {self._names[number]}")
            raise web.HTTPConflict
        return number, node

    async def _hello(self, request: web.Request) -> web.Response:
        """Whether the node may join."""
        self._entering(request)
        return web.Response(status=204)

    async def _next(self, request: web.Request) -> web.StreamResponse:
        """Take a node's reply, and give it the next message."""
        number, node = self._entering(request)
        try:
            if (request.content_length or 0) > MOST_REPLY:
                raise web.HTTPRequestEntityTooLarge(MOST_REPLY, request.content_length or 0)
            async with asyncio.timeout(_BODY):
                reply = await request.read()
        except (TimeoutError, web.HTTPRequestEntityTooLarge) as error:
            self.seldom(f"{self._names[number]} sent too much, or too slowly")
            node.fail()
            if isinstance(error, TimeoutError):
                raise web.HTTPRequestTimeout from error
            raise
        if MESSAGE in request.headers:
            self._take(number, node, request.headers[MESSAGE], reply)
        message = await node.next()
        if message is None:
            return web.Response(status=204)
        response = web.StreamResponse(
            headers={STAGE: message.ask.stage, MESSAGE: message.id,
                     "Content-Length": str(sum(map(len, message.parts)))}
        )  # fmt: skip
        await response.prepare(request)
        for part in message.parts:
            await response.write(part)
        return response

    def _take(self, number: int, node: _Node, reply_to: str, reply: bytes) -> None:
        message, name = node.current, self._names[number]
        if message is None or message.id != reply_to:
            self.seldom(f"{name} replied to a message that it does not have")
            return
        node.current = None
        if message.ask.close(number, reply):
            return
        _LOG.info("%s replied too late, to the stage %s", name, message.ask.stage)
        self._alive.setdefault(message.ask.run, set()).add(number)
        while len(self._alive) > _MOST_RUNS:
            del self._alive[next(iter(self._alive))]

    def _check_operator(self, request: web.Request) -> None:
        """Only the operator's key, and only from this machine: such a connection has one address."""
        transport = request.transport
        if transport is None or self._whose_is(transport) != _OPERATOR:
            raise web.HTTPForbidden
        ends = (transport.get_extra_info(name)[0] for name in ("peername", "sockname"))
        if len(set(ends)) > 1:
            raise web.HTTPForbidden

    async def _status(self, request: web.Request) -> web.Response:
        """The nodes that are connected."""
        self._check_operator(request)
        return web.json_response([n for n, node in self._nodes.items() if node.is_connected])

    async def _ask(self, request: web.Request) -> web.StreamResponse:
        """Messages of one stage, and replies as they arrive, until all are there or the time is over."""
        self._check_operator(request)
        headers = request.headers
        ask = _Ask(headers[STAGE], headers[RUN])
        response = web.StreamResponse()
        try:
            await self._read_messages(ask, request.content)
            asked = set(ask.open)
            await response.prepare(request)
            for node in self._alive.pop(ask.run, set()) - asked:
                await response.write(REPLIED.pack(node, 0))
            end = time.monotonic() + float(headers[TIMEOUT])
            while (ask.open and time.monotonic() < end) or not ask.replies.empty():
                for node, reply in await self._replies(ask):
                    await response.write(REPLIED.pack(node, len(reply)) + reply)
            if ask.open:
                names = listed([self._names[node] for node in sorted(ask.open)])
                _LOG.info("%s did not reply in time, to the stage %s", names, ask.stage)
        finally:
            ask.open.clear()
        return response

    async def _read_messages(self, ask: _Ask, content: Any) -> None:
        shared = b""  # the rest of the first message
        while (first := await content.read(1)) != b"":
            head = first + await content.readexactly(SENT.size - 1)
            number, n_head, n_shared, n_rest = SENT.unpack(head)
            if number not in self._nodes or max(n_head, n_shared, n_rest) > MOST_MESSAGE:
                raise web.HTTPBadRequest
            begin, rest = await content.readexactly(n_head), await content.readexactly(n_rest)
            ask.open.add(number)
            self._nodes[number].post(_Message(ask, number, (begin, shared[:n_shared], rest)))
            shared = shared or rest

    async def _replies(self, ask: _Ask) -> list[tuple[int, bytes]]:
        """The replies that are there, or one of no bytes for each node that has gone."""
        found = []
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LOOK):
                found.append(await ask.replies.get())
        while not ask.replies.empty():
            found.append(ask.replies.get_nowait())
        if not found:
            for node in [node for node in ask.open if self._nodes[node].has_gone]:
                ask.close(node, b"")
        return found


class _Door:
    """Lets connections in, whose handshakes take a bounded number of places: the oldest one leaves."""

    def __init__(self, board: Switchboard, server: Any, context: ssl.SSLContext) -> None:
        self._board, self._server, self._context = board, server, context
        self._strangers: dict[asyncio.Task[None], None] = {}

    async def listen(self, host: str, port: int) -> None:
        """Accept connections for ever."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        loop = asyncio.get_running_loop()
        with socket.create_server((host, port), family=family, backlog=1024) as door:
            door.setblocking(False)
            while True:
                try:
                    connection, _ = await loop.sock_accept(door)
                except OSError as error:  # too many open files, or the other side has left
                    self._board.seldom(f"a connection could not be accepted: {error.strerror}")
                    self._make_room(len(self._strangers) // 2)
                    await asyncio.sleep(0.01)
                    continue
                self._make_room(_MOST_STRANGERS - 1)
                task = loop.create_task(self._let_in(connection))
                self._strangers[task] = None
                task.add_done_callback(partial(self._over, connection))

    def _over(self, connection: socket.socket, task: asyncio.Task[None]) -> None:
        self._strangers.pop(task, None)
        if task.cancelled():
            connection.close()

    def _make_room(self, most: int) -> None:
        while len(self._strangers) > most:
            oldest = next(iter(self._strangers))
            del self._strangers[oldest]
            oldest.cancel()
            self._board.seldom("closed the oldest of too many connections in their handshake")

    async def _let_in(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEP_ALIVE.items():
            if hasattr(socket, name):
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        loop = asyncio.get_running_loop()
        try:
            # One that says nothing costs a descriptor, and no buffers of TLS.
            async with asyncio.timeout(_HANDSHAKE):
                await _readable(loop, connection)
            transport, _ = await loop.connect_accepted_socket(
                self._server, connection, ssl=self._context, ssl_handshake_timeout=_HANDSHAKE
            )
        except (OSError, TimeoutError):
            connection.close()
            self._board.seldom("refused a connection without a certificate of this federation")
        else:
            self._board.entered(transport)


async def _readable(loop: asyncio.AbstractEventLoop, connection: socket.socket) -> None:
    """Wait until the other side has said something."""
    heard = asyncio.Event()
    loop.add_reader(connection, heard.set)
    try:
        await heard.wait()
    finally:
        loop.remove_reader(connection)


async def serve(files: FederationFolder, host: str) -> None:
    """Serve a federation until the task is cancelled."""
    federation = files.read()
    known = {node.transport: node.number for node in federation.nodes}
    known[public_key_of(files.operators_certificate.read_bytes())] = _OPERATOR
    board = Switchboard(federation.names, known)
    runner = web.AppRunner(
        board.application(), access_log=None, handler_cancellation=True, shutdown_timeout=1.0
    )
    await runner.setup()
    try:
        context = server_context(files.certificate, files.key, files.ca_certificate)
        _LOG.info("the server begins, process %d", os.getpid())
        port = int(federation.address.rpartition(":")[2])
        await _Door(board, runner.server, context).listen(host, port)
    finally:
        board.close()
        await runner.cleanup()
        await asyncio.sleep(CLOSES)


def _raise_limits() -> None:
    """As many open files as this user may have: each connection is one."""
    try:
        import resource
    except ImportError:
        return
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def main(path: str, host: str) -> None:
    """Serve the federation of a folder until SIGTERM."""
    os.umask(0o077)
    files = FederationFolder(path)
    log = RotatingFileHandler(files.log, maxBytes=_LOG_BYTES, backupCount=_N_OLD_LOGS)
    log.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[log])
    _raise_limits()
    with contextlib.suppress(KeyboardInterrupt), ended_like_ctrl_c():
        asyncio.run(serve(files, host))


if __name__ == "__main__":
    main(*sys.argv[1:])
