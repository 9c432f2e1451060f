"""What is published: the wheel's content and metadata, what the core needs, how soon it is imported."""

import subprocess
import sys
import tomllib
import zipfile
from email import message_from_string
from pathlib import Path

import pytest

import polyurn

ROOT = Path(__file__).parents[1]
CORE = {"numpy", "scipy", "numba", "typer", "rich"}


def names(requirements):
    packaging = pytest.importorskip("packaging.requirements")
    return [packaging.Requirement(one) for one in requirements]


def test_the_core_needs_five_packages_and_nothing_else():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {one.name for one in names(project["dependencies"])} == CORE


def test_importing_the_package_loads_no_other_package():
    code = (
        "import sys; before = set(sys.modules); import polyurn; print(*set(sys.modules) - before)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert loaded - set(sys.stdlib_module_names) == {"polyurn"}


def test_version_and_citation_say_the_same():
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {polyurn.__version__}\n" in cited
    page = (ROOT / "docs" / "which-partition.md").read_text(encoding="utf-8")
    assert f"version = {{{polyurn.__version__}}}" in page
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"\n## [{polyurn.__version__}]" in changes


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    backend = pytest.importorskip("hatchling.build", reason="hatchling is not installed")
    folder = tmp_path_factory.mktemp("wheel")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        return folder / backend.build_wheel(str(folder))


def test_the_wheel_is_small_and_has_what_is_read_at_run_time(wheel):
    assert wheel.stat().st_size <= 3_000_000
    there = set(zipfile.ZipFile(wheel).namelist())
    package = ROOT / "src" / "polyurn"
    kept = [
        path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    ]
    expected = {path.relative_to(ROOT / "src").as_posix() for path in kept}
    assert expected <= there
    assert "polyurn/zoo/page.js" in expected


def test_the_wheel_says_what_it_needs_and_what_it_is(wheel):
    archive = zipfile.ZipFile(wheel)
    (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
    said = message_from_string(archive.read(name).decode())
    assert (said["Name"], said["Version"]) == ("polyurn", polyurn.__version__)
    assert said["License-Expression"] == "Apache-2.0"
    assert said["Description-Content-Type"] == "text/markdown"
    needed = names(said.get_all("Requires-Dist"))
    assert {one.name for one in needed if one.marker is None} == CORE
