"""The first connection of a node: one clear line for each thing that can be wrong with it."""

from datetime import UTC, datetime, timedelta

import pytest

from polyurn.errors import FederationError, FileError
from polyurn.federation.certificates import make_authority, make_server
from polyurn.federation.flower.supernode import knock
from polyurn.federation.one_machine import free_port
from tls_doors import Door

PAST, FUTURE = (datetime.now(UTC) + timedelta(days=days) for days in (-900, 30))


@pytest.fixture(scope="module")
def authority():
    return make_authority("a federation")


@pytest.fixture
def knocked(tmp_path, authority):
    """A function: what knocking at a door with a certificate comes to."""
    doors = []
    (tmp_path / "ca.crt").write_bytes(authority.certificate)

    def at(certified, host="localhost"):
        doors.append(Door(tmp_path, certified))
        knock(f"{host}:{doors[-1].port}", tmp_path / "ca.crt")

    yield at
    for door in doors:
        door.close()


def test_a_server_of_the_federation_is_let_be(knocked, authority):
    knocked(make_server(authority, ["localhost"]))
    knocked(make_server(authority, ["127.0.0.1"]), host="127.0.0.1")


def test_an_expired_certificate_is_said(knocked, authority):
    with pytest.raises(FederationError, match=r"certificate of localhost:\d+ has expired"):
        knocked(make_server(authority, ["localhost"], now=PAST))


def test_a_certificate_of_tomorrow_is_said(knocked, authority):
    with pytest.raises(FederationError, match=r"is not valid yet: .*clock"):
        knocked(make_server(authority, ["localhost"], now=FUTURE))


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_a_certificate_for_another_host_is_said(knocked, authority, host):
    with pytest.raises(FederationError, match=f"is not for {host}:.*name that host in"):
        knocked(make_server(authority, ["example.org"]), host=host)


def test_a_certificate_of_another_authority_is_said(knocked):
    with pytest.raises(FederationError, match=r"is not signed by .*ca\.crt"):
        knocked(make_server(make_authority("another"), ["localhost"]))


def test_a_port_without_tls_is_said(knocked):
    with pytest.raises(FederationError, match="answers, but not with TLS"):
        knocked(None)


def test_a_server_that_is_down_is_said_with_what_to_do(tmp_path, authority):
    (tmp_path / "ca.crt").write_bytes(authority.certificate)
    port = free_port()
    with pytest.raises(FederationError, match=f"no SuperLink at localhost:{port}: .*federation up"):
        knock(f"localhost:{port}", tmp_path / "ca.crt")


@pytest.mark.parametrize("data", [b"", b"no certificate", b"\xff\xfe"])
def test_an_authority_that_is_none_is_said(tmp_path, data):
    (tmp_path / "ca.crt").write_bytes(data)
    with pytest.raises(FederationError, match=r"ca\.crt is not a certificate"):
        knock(f"localhost:{free_port()}", tmp_path / "ca.crt")


def test_an_authority_that_is_missing_is_said(tmp_path):
    with pytest.raises(FileError, match=r"ca\.crt: No such file"):
        knock(f"localhost:{free_port()}", tmp_path / "ca.crt")
