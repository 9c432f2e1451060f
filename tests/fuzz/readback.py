"""Whether polyurn can read what polyurn wrote.

What a file means is not asked.
"""

from pathlib import Path

from polyurn.errors import PolyurnError


def unreadable(path: Path) -> str | None:
    """What is wrong with a file that a command wrote, or None."""
    try:
        _read(path)
    except PolyurnError as error:
        return str(error)
    except ValueError as error:
        return f"{type(error).__name__}: {error}"
    return None


def _read(path: Path) -> None:
    from polyurn.model.style import Style
    from polyurn.report.material import SavedComparison
    from polyurn.storage.documents import format_of, load_document
    from polyurn.storage.models import load_saved
    from polyurn.storage.partitions import load_partition
    from polyurn.storage.table_files import read_table

    if path.read_bytes().startswith(b"<!"):  # a page, whatever it is called
        if not path.read_text(encoding="utf-8").rstrip().endswith("</html>"):
            raise ValueError("the page has no end")
    elif format_of(path) == "polyurn.mdm":
        load_saved(path)
    elif format_of(path) == "polyurn.style":
        load_saved(path, Style)
    elif format_of(path) == "polyurn.comparison":
        SavedComparison.from_json(load_document(path, kind="comparison"))
    elif path.suffix == ".json":
        load_partition(path)
    else:
        read_table(path)
