"""The server of a federation in a thread, and nodes that speak to it by hand, for the tests."""

import asyncio
import contextlib
import http.client
import secrets
import threading
import time

from polyurn.errors import FederationError
from polyurn.federation.https.asking import HttpsExchange
from polyurn.federation.https.protocol import MESSAGE, SESSION, STAGE, client_context
from polyurn.federation.https.server import serve
from polyurn.storage.files import write_secret


class Serving:
    """The server of a federation's folder, until `close`."""

    def __init__(self, files):
        self.files, self._links = files, []
        port = files.read().address.rpartition(":")[2]
        write_secret(files.listens, f"127.0.0.1 {port}\n".encode())
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self._thread.start()
        self.exchange = HttpsExchange(files)
        wait_until(self._answers)

    async def _serve(self):
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        with contextlib.suppress(asyncio.CancelledError):
            await serve(self.files, "127.0.0.1")

    def _answers(self):
        try:
            self.exchange.nodes()
        except FederationError:
            return False
        return True

    def node(self, number, **options):
        """A connection of a node, or one with another certificate."""
        self._links.append(link := ByHand(self.files, f"node-{number}", **options))
        return link

    def ask(self, stage, messages, *, timeout=20.0):
        """What comes of a stage, in a thread of its own: `join` gives the replies."""
        return Asking(self.exchange, stage, messages, timeout)

    def close(self):
        for link in self._links:
            link.close()
        self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join()


class Asking(threading.Thread):
    """A stage that is being asked."""

    def __init__(self, exchange, stage, messages, timeout):
        super().__init__()
        self.replies = []
        self._arguments = exchange, stage, messages, timeout
        self.start()

    def run(self):
        exchange, stage, messages, timeout = self._arguments
        self.replies.extend(exchange.ask(stage, messages, timeout=timeout))

    def end(self):
        self.join()
        return self.replies


class ByHand:
    """A connection with the certificate of a node, or of the operator, and its requests one by one."""

    def __init__(self, files, name, *, session=None, certificate=None, key=None):
        home = files.node(name)
        certificate = certificate or home / "node.crt"
        context = client_context(certificate, key or home / "transport.key", home / "ca.crt")
        port = int(files.read().address.rpartition(":")[2])
        self.link = http.client.HTTPSConnection("localhost", port, timeout=20.0, context=context)
        self.session = session or secrets.token_hex(8)

    def send(self, method, path, body=None, **headers):
        """(status, headers, body) of the response."""
        named = {
            SESSION: self.session,
            **{name.replace("_", "-"): v for name, v in headers.items()},
        }
        self.link.request(method, path, body, named)
        response = self.link.getresponse()
        return response.status, response.headers, response.read()

    def next(self, reply=b"", to=None):
        """(stage, id, message), after a reply to the message `to`."""
        status, more = 204, {MESSAGE: to} if to else {}
        while status == 204:  # there is none yet
            status, headers, body = self.send("POST", "/next", reply, **more)
            reply, more = b"", {}
        assert status == 200, status
        return headers[STAGE], headers[MESSAGE], body

    def reply_and_leave(self, reply, to):
        """A reply, without waiting for the next message."""
        self.link.request("POST", "/next", reply, {SESSION: self.session, MESSAGE: to})

    def close(self):
        self.link.close()


def wait_until(condition, *, within=30.0):
    end = time.monotonic() + within
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)
