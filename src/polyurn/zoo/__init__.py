"""Models of real federations, to cut any dataset with: parameters only, learned by `zoo/build.py`.

>>> import polyurn as pu
>>> mdm = pu.zoo.like("celeba_hair", ["cat", "dog", "cat", "bird"])
>>> mdm.categories
('bird', 'cat', 'dog')
"""

from importlib import import_module

TYPE_CHECKING = False

if TYPE_CHECKING:
    from polyurn.zoo.federations import card as card
    from polyurn.zoo.federations import like as like
    from polyurn.zoo.federations import load as load
    from polyurn.zoo.federations import names as names
    from polyurn.zoo.neighbours import nearest as nearest

_HOME = dict.fromkeys(("card", "like", "load", "names"), "federations") | {"nearest": "neighbours"}

__all__ = sorted(_HOME)  # noqa: PLE0605


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'polyurn.zoo' has no attribute {name!r}")
    return getattr(import_module(f"polyurn.zoo.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
