"""The files of a public project say what is there: the workflow, the hooks, the templates."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = [ROOT / ".pre-commit-config.yaml", *sorted((ROOT / ".github").rglob("*.yml"))]


def parsed(path):
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def targets():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^(\w+):.*##", makefile, flags=re.MULTILINE))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_yaml_file_can_be_read(path):
    assert isinstance(parsed(path), dict)


def test_the_workflow_runs_the_checks_on_every_supported_python():
    job = parsed(".github/workflows/ci.yml")["jobs"]["checks"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = [c.rpartition(" ")[2] for c in project["classifiers"] if "Python :: 3." in c]
    assert job["strategy"]["matrix"]["python"] == named
    (script,) = [step["run"].split() for step in job["steps"] if "run" in step]
    assert script == ["bash", ".ci/run"]
    text = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    asked = [word for line in re.findall(r"^make (.*)", text, flags=re.M) for word in line.split()]
    assert {word for word in asked if not word.startswith("-")} <= targets()


def test_the_hooks_run_the_ruff_that_make_runs():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    hooks = [hook for repo in parsed(".pre-commit-config.yaml")["repos"] for hook in repo["hooks"]]
    assert [hook["id"] for hook in hooks] == ["ruff-format", "ruff-check"]
    for hook in hooks:
        ruff, what, *_ = hook["entry"].split()
        assert ruff == ".venv/bin/ruff"
        assert f"$(BIN)/ruff {what}" in makefile


def test_a_bug_report_asks_for_what_the_version_option_prints_and_for_the_command(run):
    asked = parsed(".github/ISSUE_TEMPLATE/bug_report.yml")["body"]
    fields = {field["id"]: field for field in asked}
    assert "`polyurn --version`" in fields["version"]["attributes"]["description"]
    assert re.fullmatch(r"polyurn \d+\.\d+\S*\n", run("--version").out)
    assert all(fields[name]["validations"]["required"] for name in ("version", "command"))


def test_the_pull_request_template_has_the_checklist_of_the_contributing_page():
    template = (ROOT / ".github" / "pull_request_template.md").read_text(encoding="utf-8")
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    checklist = contributing.partition("A pull request is ready when")[2]
    points = re.findall(r"^- (.*)", checklist, flags=re.MULTILINE)
    assert len(points) > 3
    assert re.findall(r"^- \[ \] (.*)", template, flags=re.MULTILINE) == points


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", ".github/pull_request_template.md"])
def test_every_make_command_and_file_on_the_page_is_there(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    assert set(re.findall(r"(?:^|`)make (\w+)", text, flags=re.MULTILINE)) <= targets()
    for path in re.findall(r"`((?:tests|docs)/[\w/.]+|[A-Z]+\.md)`", text):
        assert (ROOT / path).exists(), path
