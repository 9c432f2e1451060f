"""The page about threats names tests that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "threat-model.md"


def test_every_test_that_the_threat_model_names_exists():
    named = set(re.findall(r"`([\w/]+\.py)`", PAGE.read_text()))
    assert len(named) > 10
    assert [name for name in sorted(named) if not (ROOT / "tests" / name).is_file()] == []
