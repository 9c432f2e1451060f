"""The zoo page: one HTML file that lays the zoo's federations over any labels, in the browser.

The page has the models with their numbers rounded; its scripts draw from the same law as `like`, with
random numbers of their own.
"""

import json
import zlib
from base64 import b64encode
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from polyurn.model.mdm import MDM
from polyurn.zoo.cards import Card
from polyurn.zoo.federations import card, load, names

# Steps of 1 % of concentrations, 0.05 % of a mass and 0.1 % of a profile: all of it in 100 kB.
_STEPS, _MASSES, _PROFILE = 100, 2_000, 1_000
# A smaller share of a component's concentration gives no point to a client of a million.
_NO_SHARE = 1e-7


def zoo_page() -> str:
    """The page, to be written to a file that ends in .html."""
    from polyurn import __version__

    parts = {name: files("polyurn.zoo").joinpath(name).read_text("utf-8") for name in _PARTS}
    cards = sorted((card(name) for name in names()), key=_alpha)
    found = {one.name: {"card": _facts(one), **_packed(load(one.name))} for one in cards}
    document = {"version": __version__, "federations": found}
    packed = zlib.compress(json.dumps(document, separators=(",", ":")).encode(), 9)
    page, style, draws, script = parts.values()
    return (
        page.replace("/*style*/", style)
        .replace("/*script*/", draws + script)
        .replace("/*zoo*/", b64encode(packed).decode())
    )


_PARTS = ("page.html", "page.css", "draws.js", "page.js")


def _alpha(card: Card) -> float:
    return card.profile.heterogeneity.alpha.value


def _facts(card: Card) -> dict[str, Any]:
    """What the page says of a federation."""
    plain = ("title", "client", "category", "source", "date", "licence", "n_clients",
             "n_categories", "n_components", "sizes", "warnings")  # fmt: skip
    likeness = [
        (name, [f"{x:.2f}" for x in one.energy_null], f"{one.energy_ratio:.2f}", f"{one.auc:.2f}")
        for name, one in card.likeness.items()
    ]
    shown = f"{_alpha(card):.2g}".replace("inf", "∞")
    dispersion = f"{card.profile.dispersion:.3g}: {card.profile.in_words}"
    return {name: getattr(card, name) for name in plain} | {
        "alpha": shown, "dispersion": dispersion, "likeness": likeness,
    }  # fmt: skip


def _packed(mdm: MDM) -> dict[str, Any]:
    """A model as whole numbers; `unpacked` of draws.js reads them."""
    bins, splits = mdm.sizes.bins, None
    if mdm.splits is not None:
        splits = {
            "children": mdm.splits.tree.children.tolist(),
            "concentrations": _logs(mdm.splits.concentrations),
        }
        if mdm.splits.laws is not None:
            splits["knots"] = mdm.splits.laws.knots.tolist()
            splits["values"] = _whole(mdm.splits.laws.values, _STEPS)
    return {
        "weights": mdm.weights.round(5).tolist(),
        "alphas": _logs(mdm.alphas),
        "order": np.argsort(-mdm.mean(), kind="stable").tolist(),
        "widths": np.diff(bins.fine).tolist(),
        "bins": bins.bin_of_fine.tolist(),
        "profile": _whole(bins.shares, _PROFILE),
        "masses": _whole(mdm.sizes.masses, _MASSES),
        "splits": splits,
    }


def _whole(values: ArrayLike, steps: int) -> Any:
    return np.rint(np.asarray(values) * steps).astype(int).tolist()


def _logs(values: ArrayLike) -> Any:
    """Logarithms in steps, and None for what is next to nothing in its row."""
    given = np.asarray(values)
    there = given > _NO_SHARE * given.sum(axis=-1, keepdims=True)
    logs = np.rint(_STEPS * np.log(np.where(there, given, 1.0))).astype(int).astype(object)
    logs[~there] = None
    return logs.tolist()
