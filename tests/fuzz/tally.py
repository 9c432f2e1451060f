"""Counts what became of cases, and puts defects that are alike together.

Defects are written down at once, one line of JSON per case.
"""

import json
import re
from collections import Counter, defaultdict
from pathlib import Path

from fuzz.harness import Defect, Outcome

# What differs between two cases of one defect: what is quoted, numbers, paths, and all in brackets.
_PARTICULAR = re.compile(
    r"""'[^']*'|"[^"]*"|\([^)]*\)|\{[^}]*\}|\[[^]]*\]|[^ :]*[0-9][^ :]*|\S*/\S*|\S+\.\w+"""
)


class Tally:
    """What became of the cases.

    Parameters
    ----------
    folder : Path
        Gets `defects.jsonl`.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._place = folder / "defects.jsonl"
        self._place.write_text("")
        self.n = self.n_defects = 0
        self._kinds: dict[str, Counter[str]] = defaultdict(Counter)
        self._seconds: Counter[str] = Counter()
        self._groups: dict[tuple[str, str, str], list[tuple[str, Defect]]] = defaultdict(list)

    def add(self, name: str, outcome: Outcome) -> None:
        """One more case."""
        kind = name.partition("/")[0]
        self.n += 1
        self._kinds[kind]["worked" if outcome.worked else "refused"] += 1
        self._seconds[kind] += outcome.seconds
        if not outcome.defects:
            return
        self.n_defects += 1
        self._kinds[kind]["defects"] += 1
        with open(self._place, "a", encoding="utf-8") as file:
            file.write(json.dumps({"case": name, **outcome.to_json()}) + "\n")
        for defect in outcome.defects:
            self._groups[defect.what, defect.place, _shape(defect)].append((name, defect))

    def table(self) -> str:
        """One line per kind."""
        lines = [f"{'kind':<14}{'cases':>8}{'refused':>9}{'worked':>8}{'defects':>9}{'seconds':>9}"]
        for kind, became in sorted(self._kinds.items()):
            n = became["worked"] + became["refused"]
            lines.append(
                f"{kind:<14}{n:>8,}{became['refused']:>9,}{became['worked']:>8,}"
                f"{became['defects']:>9,}{self._seconds[kind]:>9.0f}"
            )
        return "\n".join(lines)

    def groups(self) -> str:
        """One line per distinct defect, the most frequent first, with cases that show it."""
        lines = []
        for (what, place, _), found in sorted(self._groups.items(), key=lambda one: -len(one[1])):
            names = ", ".join(name for name, _ in found[:3])
            where = f" [{place}]" if place else ""
            lines.append(f"{len(found):>5} {what}{where}: {found[0][1].detail[:250]} ({names})")
        return "\n".join(lines)


def _shape(defect: Defect) -> str:
    """What two defects have to share besides their place: the words, or the exception's class."""
    if defect.what == "traceback" and defect.place:
        return defect.detail.split(":")[0]
    return " ".join(_PARTICULAR.sub("…", defect.detail).split()[:14])
