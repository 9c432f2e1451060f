"""`polyurn demo`, small."""

from functools import partial

import pytest


@pytest.mark.slow
def test_the_command_tells_the_whole_story(run, tmp_path, monkeypatch):
    pytest.importorskip("torch")
    pytest.importorskip("altair")
    from polyurn.commands import demo_story

    short = partial(demo_story.tell, n_rounds=5, n_training_rounds=2)
    monkeypatch.setattr(demo_story, "tell", short)
    ran = run("demo", "--data", "digits", "--clients", 100, "--json")
    told = ran.json()
    assert told["n_clients"] == 80
    assert {v["population"] for v in told["sweep"]["populations"]} == {
        "again", "mdm", "iid",
    }  # fmt: skip
    for stage in range(1, 7):
        assert f"{stage} " in ran.err
    assert (tmp_path / "report.html").as_uri() in ran.err
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    for section in ("verdict", "components", "choice", "populations", "sweep", "provenance"):
        assert f'<section id="{section}"' in page


@pytest.mark.parametrize("clients", [0, 1, 3, 5])
def test_too_few_clients_are_one_clear_line(run, clients):
    ran = run("demo", "--data", "digits", "--clients", clients, "--seed", 7)
    assert ran.code == 2
    assert f"'--clients': {clients} is not in the range x>=100" in ran.err
    assert "Traceback" not in ran.err
