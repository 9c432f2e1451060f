"""The SuperLink before it is started: what is in its way."""

import shutil
import socket
from datetime import UTC, datetime, timedelta

import pytest

from polyurn.errors import FederationError
from polyurn.federation.certificates import Certified, make_server
from polyurn.federation.flower import superlink
from polyurn.federation.folder import FederationFolder, set_up
from polyurn.federation.one_machine import free_port


@pytest.fixture
def folder(tmp_path):
    return set_up(
        tmp_path / "fed",
        address=f"localhost:{free_port()}",
        categories=3,
        max_size=9,
        clients_per_node=5,
        n_nodes=1,
    )


def test_a_port_that_is_in_use_is_said_and_nothing_is_started(folder):
    port = int(folder.read().address.rpartition(":")[2])
    with socket.create_server(("127.0.0.1", port)):
        said = f"cannot listen on 127.0.0.1:{port}: Address already in use"
        with pytest.raises(FederationError, match=said):
            superlink.start(folder, host="127.0.0.1")
    assert not folder.pid.exists()
    assert not folder.log.exists()


def test_an_address_that_is_not_of_this_machine_is_said(folder):
    with pytest.raises(FederationError, match=r"cannot listen on 192\.0\.2\.1:"):
        superlink.start(folder, host="192.0.2.1")  # of RFC 5737, for documentation


def test_an_expired_certificate_is_said_and_nothing_is_started(folder):
    key, certificate = ((folder.authority / name).read_bytes() for name in ("ca.key", "ca.crt"))
    past = datetime.now(UTC) - timedelta(days=900)
    old = make_server(Certified(key, certificate), ["localhost"], now=past)
    folder.take_certificate(old)
    with pytest.raises(FederationError, match="has expired"):
        superlink.start(folder, host="127.0.0.1")
    assert not folder.pid.exists()


def test_flowers_files_are_in_the_folder_and_it_tells_nobody(folder):
    environment = superlink.environment(folder)
    assert environment["FLWR_HOME"] == str(folder.flower_home)
    assert environment["FLWR_TELEMETRY_ENABLED"] == "0"
    assert environment["FLWR_DISABLE_UPDATE_CHECK"] == "1"


def test_there_is_nothing_to_end_where_nothing_was_started(federation, tmp_path):
    copy = FederationFolder(shutil.copytree(federation.path, tmp_path / "copy"))
    assert not superlink.stop(copy)


def test_no_command_of_flower_is_no_process(folder):
    assert superlink.flwr(folder) == []
