"""Something that listens on a port of this machine, with a certificate or without, for the tests."""

import socket
import ssl
import threading


class Door:
    """Answers one connection; with a certificate, it speaks TLS."""

    def __init__(self, folder, certified, port=0):
        self._context = None
        if certified is not None:
            for name, data in {"key": certified.key, "crt": certified.certificate}.items():
                (folder / f"door.{name}").write_bytes(data)
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._context.load_cert_chain(folder / "door.crt", folder / "door.key")
        self._socket = socket.create_server(("127.0.0.1", port))
        self.port = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._answer)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _answer(self):
        plain, _ = self._socket.accept()
        with plain:
            try:
                if self._context is None:
                    plain.recv(1)
                    plain.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                else:
                    self._context.wrap_socket(plain, server_side=True).close()
            except OSError:
                pass  # the other side has hung up, as it should

    def close(self):
        self._thread.join()
        self._socket.close()
