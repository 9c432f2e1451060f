"""`polyurn federation up`, `status` and `down`, where nothing is up."""

import socket
from datetime import UTC, datetime, timedelta

import pytest

import polyurn as pu
from cli_walk import assert_refused
from federation_jobs import job_of
from polyurn.federation.folder import FederationFolder
from polyurn.federation.jobs import JobFolder
from polyurn.federation.keys import Certified, expiry, make_server


def test_a_port_that_is_in_use_is_said(run, fed):
    port = int(FederationFolder(fed).read().address.rpartition(":")[2])
    with socket.create_server(("127.0.0.1", port)):
        ran = run("federation", "up", "fed")
    assert_refused(
        ran, f"cannot listen on 127.0.0.1:{port}: Address already in use", "take another port"
    )


def test_an_expired_certificate_is_said_with_what_to_do(run, fed):
    key, certificate = ((fed / "authority" / name).read_bytes() for name in ("ca.key", "ca.crt"))
    past = datetime.now(UTC) - timedelta(days=900)
    old = make_server(Certified(key, certificate), ["localhost"], now=past)
    place = FederationFolder(fed)
    place.take_certificate(old)
    ran = run("federation", "up", "fed")
    assert_refused(ran, "certificate of the server has expired", "polyurn federation up --renew")
    port = int(place.read().address.rpartition(":")[2])
    with socket.create_server(("127.0.0.1", port)):  # so that it is renewed, and not started
        assert_refused(run("federation", "up", "fed", "--renew"), "Address already in use")
    assert expiry(place.certificate.read_bytes()) > datetime.now(UTC)


def test_an_authority_that_was_put_away_is_missed_by_name(run, fed):
    (fed / "authority" / "ca.key").unlink()
    assert_refused(run("federation", "up", "fed", "--renew"), "ca.key")


@pytest.mark.parametrize("command", ["up", "status", "down"])
def test_a_folder_that_is_no_federation_is_said(run, command):
    ran = run("federation", command, "nowhere")
    assert_refused(ran, "there is no federation.json in", "polyurn federation init")


def test_a_federation_that_is_down_says_so(run, fed):
    ran = run("federation", "status", "fed")
    assert (ran.code, ran.out) == (0, "")
    assert "the server is down: polyurn federation up fed" in ran.err
    state = run("federation", "status", "fed", "--json").json()
    assert state["server"] is None
    assert state["address"].startswith("localhost:")


def test_ending_what_is_not_there_is_no_mistake(run, fed):
    ran = run("federation", "down", "fed")
    assert ran.code == 0
    assert ran.err == "the server was down already; no node was running\n"


def test_a_status_does_not_hide_what_was_spent_and_what_a_run_asked(run, fed):
    place = FederationFolder(fed)
    job = job_of(fed, epsilon=1.0, delta=1e-6, trust="distributed")
    JobFolder.make(place.runs, job).tell({"failed": "too few nodes"})
    pu.open_ledger(place.ledger, epsilon=1.5, delta=1e-6).charge("survey", 4.2247, 39)
    said = run("federation", "status", "fed").err
    assert "run 0001, mixture, epsilon 1: failed: too few nodes\n" in said
    assert "ledger: epsilon 1 of 1.5 is spent\n" in said
    state = run("federation", "status", "fed", "--json").json()
    assert (state["runs"][0]["asks"], round(state["epsilon_spent"], 3)) == ("mixture", 1.0)
