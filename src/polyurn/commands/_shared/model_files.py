"""MDM files as the commands read them: with a line about what of them is not ours.

The format is `storage/models.py`.
"""

from pathlib import Path

from polyurn.commands._shared.console import warn
from polyurn.model.mdm import MDM
from polyurn.storage.models import Saved, load_saved


def read_model(path: Path) -> Saved[MDM]:
    """What an MDM file holds; a line for each record that is left out."""
    saved = load_saved(path)
    for line in saved.made.left_out:
        warn(f"left out of {path}: {line}")
    return saved
