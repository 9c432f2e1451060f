"""What a worker does: makes a case from its name, runs it, and says how it ended."""

from fuzz.cases import case_of
from fuzz.harness import Outcome, run
from fuzz.material import material


def judge(name: str) -> Outcome:
    """How the case of a name ended."""
    return run(case_of(name))


def prepare() -> None:
    """Import and compile all that cases need, so that none of them pays for it."""
    import polyurn.commands.demo_story
    import polyurn.report.page
    import polyurn.sweeps.grid  # noqa: F401

    material()
