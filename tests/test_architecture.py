"""Who may import whom, and where tests stand. One row per room; a row is a design decision."""

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import polyurn

ROOT = Path(polyurn.__file__).parent

# room: the rooms that it may import from. Modules of one room may import each other, without cycles.
# The command line (cli, commands) is the top of the tree: it may call anything, and nothing calls it.
ROOMS = {
    "errors": set(),
    "reference": set(),
    "wording": set(),
    "typed": {"errors"},
    "counts": {"errors", "typed"},
    "memory": {"errors"},
    "model": {"counts", "errors", "memory", "typed", "wording"},
    "wire": {"errors", "model", "typed", "wording"},
    "client": {"counts", "errors", "model", "privacy", "typed", "wire", "wording"},
    "privacy": {"errors", "typed", "wire", "wording"},
    "aggregate": {"client", "counts", "errors", "storage", "typed", "wire", "wording"},
    "federation": {
        "aggregate", "client", "counts", "errors", "model", "privacy", "server", "storage", "typed",
        "wire", "wording",
    },
    "server": {"comparison", "errors", "model", "privacy", "typed", "wire", "wording"},
    "partitioning": {"counts", "errors", "memory", "model", "typed", "wording"},
    "comparison": {"counts", "errors", "memory", "model", "typed", "wording"},
    "storage": {
        "client", "counts", "errors", "memory", "model", "partitioning", "privacy", "server",
        "training", "typed", "wire",
    },
    "sources": {
        "aggregate", "client", "counts", "errors", "federation", "memory", "model", "storage", "typed",
        "wire", "wording",
    },
    "datasets": {"client", "errors", "storage"},
    "training": {"errors", "memory", "partitioning", "typed", "wording"},
    "sweeps": {
        "client", "comparison", "datasets", "errors", "model", "partitioning", "sources",
        "storage", "training", "typed", "wording",
    },
    "report": {
        "comparison", "counts", "errors", "model", "partitioning", "server",
        "storage", "sweeps", "typed", "wire", "wording", "zoo",
    },
    "integrations": {
        "aggregate", "client", "counts", "errors", "model", "partitioning",
        "privacy", "server", "storage", "typed", "wire", "wording", "zoo",
    },
    "zoo": {"comparison", "counts", "errors", "model", "storage", "typed"},
}  # fmt: skip
TOP = {"cli", "commands"}

# What may be imported anywhere, and the optional packages that belong to a room or module each.
EVERYWHERE = {"numpy", "scipy"} | set(sys.stdlib_module_names)
ONLY_IN = {
    "numba": {
        "client.e_step_kernels", "client.simd", "comparison.distances", "model.model_kernels",
        "partitioning.draw_kernels", "partitioning.styled_kernels", "report.tsne",
        "server.m_step_kernel",
    },
    "llvmlite": {"client.simd"},
    "cryptography": {"federation"},
    "flwr": {"federation.flower", "sweeps.flower_run"},
    "opendp": {"privacy.noise"},
    "aiohttp": {"federation.https"},
    "pandas": {"typed.plotted"},
    "psutil": {"federation.processes"},
    "pyarrow": {
        "client.candidates", "client.columns", "client.record_tables", "client.tables",
        "datasets.dataset", "storage",
    },
    "sklearn": {
        "comparison.likeness", "datasets.dataset", "integrations.sklearn",
    },
    "threadpoolctl": {"aggregate.shard_aggregator", "comparison.likeness"},
    "distributed": {"aggregate.dask"},
    "duckdb": {"storage.long_rows"},
    "datasets": {"integrations.flwr_datasets", "integrations.huggingface"},
    "flwr_datasets": {"integrations.flwr_datasets"},
    "torch": {"integrations.torch", "sweeps.own_engines", "training"},
    "joblib": {"sweeps.grid", "sweeps.optuna_search", "training.engines.worker_pool"},
    "optuna": {"sweeps.optuna_search"},
    "altair": {"report"},
    "vl_convert": {"report.charts"},
    "jinja2": {"report.page"},
    "typer": TOP,
    "rich": TOP,
}  # fmt: skip


def modules():
    for path in sorted(ROOT.rglob("*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        if name != "__init__":
            yield name, path


def imports(path):
    """Every module that a file imports, at the top or inside a function."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                place = ROOT.parent / whole.replace(".", "/")
                is_module = place.with_suffix(".py").exists() or (place / "__init__.py").exists()
                yield whole if is_module else node.module


def ours(path):
    """The modules of ours that a file imports."""
    return {name.removeprefix("polyurn.") for name in imports(path) if name.startswith("polyurn.")}


def room(name):
    return name.split(".")[0]


def is_command(name):
    return room(name) in TOP


@pytest.mark.parametrize(("name", "path"), [m for m in modules() if not is_command(m[0])])
def test_each_room_imports_only_from_the_rooms_of_its_row(name, path):
    others = {room(other) for other in ours(path)} - {room(name)}
    assert others <= ROOMS[room(name)]


def test_no_module_of_the_server_imports_the_client():
    for name, path in modules():
        if room(name) in ("server", "wire", "model"):
            assert "client" not in {room(other) for other in ours(path)}, name


def test_there_is_no_cycle_of_imports():
    graph = {name: ours(path) for name, path in modules()}
    # static_order raises CycleError and names the modules of the cycle.
    assert list(TopologicalSorter(graph).static_order())


def test_at_most_eight_modules_stand_in_the_hallway():
    assert len(list(ROOT.glob("*.py"))) <= 8


@pytest.mark.parametrize(("name", "path"), list(modules()))
def test_optional_packages_stay_in_their_own_room(name, path):
    places = {".".join(name.split(".")[:n]) for n in range(1, name.count(".") + 2)}
    for imported in imports(path):
        package = imported.split(".")[0]
        if package == "polyurn" or package in EVERYWHERE:
            continue
        assert ONLY_IN.get(package, set()) & places, f"{name} imports {package}"


def test_importing_the_package_loads_nothing_heavy():
    code = "import sys, polyurn; print(*sorted(m.split('.')[0] for m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert loaded.isdisjoint(
        {"numba", "torch", "pandas", "matplotlib", "scipy", "pyarrow", "duckdb", "distributed"}
    )


def test_the_command_line_loads_nothing_heavy_before_a_command_runs():
    code = "import sys, polyurn.commands.app; print(*sorted(m.split('.')[0] for m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert loaded.isdisjoint({"numpy", "numba", "torch", "scipy", "pyarrow", "sklearn", "altair"})


def test_every_public_name_can_be_loaded():
    for name in polyurn.__all__:
        assert getattr(polyurn, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = polyurn.nothing


def test_no_module_shares_its_name_with_a_function_of_the_package():
    shared = {
        name
        for name, _ in modules()
        if not is_command(name) and name.split(".")[-1] in polyurn.__all__
    }
    assert shared == set()


def test_no_module_is_too_long_to_be_one_idea():
    for name, path in modules():
        assert len(path.read_text().splitlines()) <= 800, name


# ------------------------------------------------------------------------------ where tests stand

TESTS = Path(__file__).parent
# Folders whose tests are of other code than the package's; the harness stands beside its tests.
OTHER_FOLDERS = {
    "attacks": TESTS / "attacks",
    "experiments": TESTS.parent / "experiments",
    "fuzz": TESTS / "fuzz",
}


def place_of(test):
    """The folder of the code that a test file's folder stands for."""
    folder = test.parent.relative_to(TESTS)
    first = folder.parts[0] if folder.parts else ""
    return OTHER_FOLDERS.get(first, ROOT / folder)


def test_every_folder_of_tests_is_a_room():
    folders = {test.parent for test in TESTS.rglob("test_*.py")}
    for folder in sorted(folders):
        assert place_of(folder / "test_.py").is_dir(), f"there is no room for {folder}"
