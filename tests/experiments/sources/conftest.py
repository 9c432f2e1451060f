"""What tests of several sources work on."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from dataset_files import BATCHES, Server


@pytest.fixture
def batches():
    rng = np.random.default_rng(0)
    return {
        name: (rng.integers(0, 256, (3, 3072), dtype=np.uint8), rng.integers(0, 10, 3).tolist())
        for name in BATCHES
    }


@pytest.fixture
def server(monkeypatch):
    """A server in this process, and how it is to behave."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked = self.headers.get("Range")
            state.asked.append(asked)
            start = int(asked.removeprefix("bytes=").rstrip("-")) if asked else 0
            if state.status != 200:
                self.send_error(state.status)
                return
            if state.with_ranges and asked and start >= len(state.content):
                self.send_error(416)
                return
            start = start if state.with_ranges else 0
            body = state.content[start:]
            self.send_response(206 if start else 200)
            if start:
                end = len(state.content) - 1
                self.send_header("Content-Range", f"bytes {start}-{end}/{len(state.content)}")
            if state.with_length:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: state.cut_after])

        def log_message(self, *_):
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = False
    thread = threading.Thread(target=http.serve_forever, args=(0.01,))
    thread.start()
    state.url = f"http://127.0.0.1:{http.server_port}/some/data.bin"
    yield state
    http.shutdown()
    http.server_close()
    thread.join()
