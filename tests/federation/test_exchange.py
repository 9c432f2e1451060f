"""Nodes played in this process."""

from polyurn.federation.exchange import InProcessExchange


def test_replies_come_from_those_who_reply():
    exchange = InProcessExchange({1: lambda stage, message: message + b"!", 2: lambda *_: None})
    assert exchange.nodes() == [1, 2]
    assert dict(exchange.ask("plain", {1: b"a"}, timeout=1.0)) == {1: b"a!"}
    assert dict(exchange.ask("mask", {1: b"a", 2: b"b"}, timeout=1.0)) == {1: b"a!"}


def test_a_node_that_fails_replies_with_no_bytes_and_nobody_waits():
    exchange = InProcessExchange({1: lambda stage, message: b""})
    assert dict(exchange.ask("plain", {1: b"a"}, timeout=1.0)) == {1: b""}
