"""Learn what your federation looks like, then simulate it.

The names in `__init__.pyi` are the public interface; each is loaded when it is first used, so that
`import polyurn` costs nothing.
"""

from importlib import import_module

__version__ = "0.2.0"

with open(f"{__path__[0]}/__init__.pyi", encoding="utf-8") as _stub:
    # "from polyurn.model.mdm import MDM as MDM"
    _imports = [line.split() for line in _stub if line.startswith("from polyurn.")]
_HOME = {name: module for _, module, _, name, _, _ in _imports}

__all__ = sorted(_HOME)  # noqa: PLE0605


def __getattr__(name: str) -> object:
    if name == "zoo":  # a room, whose module import_module binds to this name
        return import_module("polyurn.zoo")
    if name not in _HOME:
        raise AttributeError(f"module 'polyurn' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__", "zoo"]
