"""Where a source's files are: under `root`, or under the folder that POLYURN_DATA names.

A source may come in several layouts; the first that is there whole is read. When there is none, the
error says which file to put where. What stands in the files is the sources' business.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from polyurn.errors import FileError, InputError
from sources.download import OnProgress, RemoteFile, fetch

VARIABLE = "POLYURN_DATA"


@dataclass(frozen=True)
class Layout:
    """Files that make a source when all of them are there.

    Attributes
    ----------
    name : str
    patterns : tuple of str
        Relative paths; `*` and `?` may stand in them.
    wanted : str
        What to put there, in words.
    """

    name: str
    patterns: tuple[str, ...]
    wanted: str


@dataclass(frozen=True)
class Source:
    """A source of data on disk.

    Attributes
    ----------
    name : str
        Also the folder under `root` in which its files are looked for, and downloaded to.
    layouts : tuple of Layout
    remote : tuple of RemoteFile
        What to download; with these, one of the layouts is whole. Empty: there is no such address.
    also_in : tuple of str
        Other folders under `root` in which to look.
    """

    name: str
    layouts: tuple[Layout, ...]
    remote: tuple[RemoteFile, ...] = ()
    also_in: tuple[str, ...] = ()


@dataclass(frozen=True)
class Found:
    """The layout that was found, and its files: for each pattern, every path that fits."""

    layout: str
    paths: tuple[tuple[Path, ...], ...]

    @property
    def folder(self) -> Path:
        return self.paths[0][0].parent

    def one_each(self) -> tuple[Path, ...]:
        """The first file of each pattern: plain before packed."""
        return tuple(paths[0] for paths in self.paths)


def locate(
    source: Source,
    *,
    root: str | os.PathLike[str] | None,
    download: bool,
    on_progress: OnProgress | None,
) -> Found:
    """The files of a source, downloaded when they are missing and `download` is set.

    Parameters
    ----------
    source : Source
    root : path, optional
        A folder, or one file; without it, the folder that POLYURN_DATA names.
    download : bool
    on_progress : callable, optional

    Raises
    ------
    FileError
        The files are not there; the message says which to put where.
    InputError
        There is neither `root` nor POLYURN_DATA, or nothing that can be downloaded.
    """
    place = _place(source, root)
    found = _find(source, place)
    if found is None and download:
        if not source.remote:
            raise InputError(f"{source.name} cannot be downloaded; {_put(source, place)}")
        for remote in source.remote:
            fetch(remote, place / source.name, on_progress=on_progress)
        found = _find(source, place)
    if found is None:
        hint = ", or pass download=True" if source.remote and not download else ""
        raise FileError(f"found no {source.name} in {place}; {_put(source, place)}{hint}")
    return found


def _place(source: Source, root: str | os.PathLike[str] | None) -> Path:
    given = root if root is not None else os.environ.get(VARIABLE)
    if not given:
        raise InputError(
            f"expected root= or the environment variable {VARIABLE}: the folder in which "
            f"{source.name}/ holds {_wanted(source)}"
        )
    return Path(given)


def _find(source: Source, place: Path) -> Found | None:
    if place.is_file():
        fitting = (x for x in source.layouts if len(x.patterns) == 1 and place.match(x.patterns[0]))
        return next((Found(layout.name, ((place,),)) for layout in fitting), None)
    for folder in (place, *(place / name for name in (source.name, *source.also_in))):
        for layout in source.layouts:
            paths = tuple(tuple(sorted(folder.glob(p))) for p in layout.patterns)
            if all(paths):
                return Found(layout.name, paths)
    return None


def _put(source: Source, place: Path) -> str:
    folder = place.parent if place.is_file() else place
    return f"put {_wanted(source)} into {folder / source.name}"


def _wanted(source: Source) -> str:
    return ", or ".join(layout.wanted for layout in source.layouts)
