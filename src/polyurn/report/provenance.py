"""Where everything on a page came from: versions, seeds, commands, data, and what crossed the wire.

Facts from the records, in words; nothing is measured here.
"""

from collections.abc import Mapping
from typing import Any

from polyurn.report.material import Material
from polyurn.report.parts import Section


def provenance_section(material: Material) -> Section:
    """The last section of a page."""
    from polyurn import __version__

    facts = [("Page", f"written by polyurn {__version__}")]
    if material.made:
        facts += _made_facts("Model", material.made)
        facts += _wire_facts(material.made)
    if material.comparison is not None:
        facts += _made_facts("Comparison", material.comparison.get("made", {}))
        facts.append(("Comparison", str(material.comparison["standing"])))
    if material.runs:
        facts.append(("Sweep", _sweep_fact(material)))
    if material.clients:
        facts.append(("Clients", _clients_fact(material)))
    return Section(
        name="provenance",
        title="Where this came from",
        lead="Enough to make the same page again, and to say what clients gave away for it.",
        facts=(*facts, *material.notes),
    )


def _made_facts(what: str, made: Mapping[str, Any]) -> list[tuple[str, str]]:
    facts = []
    if "command" in made:
        facts.append((f"{what}: command", str(made["command"])))
    if "seed" in made:
        facts.append((f"{what}: seed", str(made["seed"])))
    if "polyurn" in made:
        facts.append((f"{what}: version", f"polyurn {made['polyurn']}"))
    if "data" in made:
        data = made["data"]
        text = (
            f"{data['file']}: {data['n_clients']:,} clients, {data['n_points']:,} points, "
            f"{data['n_categories']:,} categories"
        )
        facts.append((f"{what}: data", text))
    if "interrupted_after_round" in made:
        text = f"interrupted by hand after round {made['interrupted_after_round']}"
        facts.append((f"{what}: rounds", text))
    return facts


def _wire_facts(made: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What a client sent, and how often."""
    record = made.get("fit") or made.get("selection")
    if record is None:
        return []
    total = sum(record["n_numbers_by_round"])
    facts = [
        (
            "Privacy: what crossed the wire",
            "sums over clients of addable statistics, never a client’s records or histogram; no "
            "noise was added unless the command above says so",
        ),
        (
            "Privacy: numbers per client",
            f"at most {record['n_numbers']:,} in a round, {total:,} in all rounds together",
        ),
        ("Privacy: rounds", _crowd(record)),
    ]
    if "n_held_out" in record:
        facts.append(("Held out", f"{record['n_held_out']:,} clients only scored"))
    return facts


def _crowd(record: Mapping[str, Any]) -> str:
    """How often clients were asked, and over how many of them the sums are."""
    fewest = record.get("fewest_clients", record["n_clients"])  # older files do not say
    if fewest == record["n_clients"]:
        return f"{record['n_rounds']} with {fewest:,} clients each"
    return (
        f"{record['n_rounds']} with up to {record['n_clients']:,} clients; the smallest sums are over "
        f"{fewest:,} of them"
    )


def _sweep_fact(material: Material) -> str:
    runs = material.runs
    engines = ", ".join(sorted({run.engine for run in runs}))
    seeds = sorted({run.seed for run in runs})
    minutes = sum(run.seconds for run in runs) / 60
    return (
        f"{len(runs):,} runs on {len({run.population for run in runs})} populations, seeds "
        f"{', '.join(map(str, seeds))}, engine {engines}, {minutes:.1f} minutes of training"
    )


def _clients_fact(material: Material) -> str:
    parts = [
        f"{name}: {len(table):,} of {material.n_clients[name]:,} drawn"
        for name, table in material.clients.items()
    ]
    return "; ".join(parts)
