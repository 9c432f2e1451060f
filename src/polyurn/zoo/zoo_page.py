"""The zoo page: one HTML file that lays rounded models over any labels; its scripts draw as `like`."""

import json
import zlib
from base64 import b64encode
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from polyurn.model.mdm import MDM
from polyurn.typed.json_form import to_json
from polyurn.zoo.federations import card, load, names

# Steps of 3 % of concentrations, 7 % of a law, 0.1 % of a mass and 0.2 % of a profile.
_STEPS, _LAW_STEPS, _MASSES, _PROFILE = 30, 15, 1_000, 500
# A smaller share of a component's concentration gives no point to a client of a million.
_NO_SHARE = 1e-7


def zoo_page() -> str:
    """The page, to be written to a file that ends in .html."""
    from polyurn import __version__

    part = {path.name: path.read_text("utf-8") for path in files("polyurn.zoo").iterdir()
            if path.name.endswith((".html", ".css", ".js"))}  # fmt: skip
    cards = sorted(map(card, names()), key=lambda one: one.profile.heterogeneity.alpha.value)
    found = {
        one.name: {
            "warnings": one.warnings,
            "words": one.profile.in_words,
            "card": json.loads(
                json.dumps(to_json(one)), parse_float=lambda text: float(f"{float(text):.3g}")
            ),
        }
        | _packed(load(one.name))
        for one in cards
    }
    document = json.dumps({"version": __version__, "federations": found}, separators=(",", ":"))
    page = part["page.html"].replace("/*style*/", part["page.css"])
    page = page.replace("/*script*/", part["draws.js"] + part["page.js"])
    return page.replace("/*zoo*/", b64encode(zlib.compress(document.encode(), 9)).decode())


def _packed(mdm: MDM) -> dict[str, Any]:
    """A model as whole numbers; `unpacked` of draws.js reads them."""
    bins, splits, laws = mdm.sizes.bins, mdm.splits, mdm.splits and mdm.splits.laws
    return {
        "weights": mdm.weights.round(5).tolist(),
        "alphas": _logs(mdm.alphas),
        "order": np.argsort(-mdm.mean(), kind="stable").tolist(),
        "widths": np.diff(bins.fine).tolist(),
        "bins": bins.bin_of_fine.tolist(),
        "profile": _whole(bins.shares, _PROFILE),
        "masses": _whole(mdm.sizes.masses, _MASSES),
        "splits": splits and {
            "children": splits.tree.children.tolist(),
            "concentrations": _logs(splits.concentrations),
            "knots": laws and laws.knots.tolist(),
            "values": laws and _whole(laws.values, _LAW_STEPS),
        },
    }  # fmt: skip


def _whole(values: ArrayLike, steps: int) -> Any:
    return np.rint(np.asarray(values) * steps).astype(int).tolist()


def _logs(values: ArrayLike) -> Any:
    """Logarithms in steps, and None for what is next to nothing in its row."""
    given = np.asarray(values)
    there = given > _NO_SHARE * given.sum(axis=-1, keepdims=True)
    logs = np.rint(_STEPS * np.log(np.where(there, given, 1.0))).astype(int).astype(object)
    logs[~there] = None
    return logs.tolist()
