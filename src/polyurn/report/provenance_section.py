"""Where everything on a page came from: versions, seeds, commands, data, and the traffic on the wire.

Facts from the files, in words; nothing is measured here.
"""

from polyurn.report.material import Material
from polyurn.report.parts import Section
from polyurn.server.fit_results import Fit, Selection
from polyurn.storage.provenance import DataProvenance, Provenance
from polyurn.wire.traffic import Traffic
from polyurn.wording import counted


def provenance_section(material: Material) -> Section:
    """The last section of a page."""
    from polyurn import __version__

    facts = [("Page", f"written by polyurn {__version__}")]
    facts += _provenance_facts("Model", material.provenance)
    if material.provenance.rounds is not None or material.provenance.privacy is not None:
        facts.append(("Privacy: what is guaranteed", material.provenance.privacy_in_words))
    if material.provenance.rounds is not None:
        facts += _wire_facts(material.provenance.rounds, material.provenance.traffic)
    if material.style is not None:
        facts += _provenance_facts("Style", material.style.provenance)
        if material.style.provenance.privacy is not None:
            facts.append(("Style: what is guaranteed", material.style.provenance.privacy_in_words))
        if (traffic := material.style.provenance.traffic) is not None:
            text = "; ".join([traffic.line, *traffic.absences])
            facts.append(("Style: traffic on the wire", text))
    if material.comparison is not None:
        facts += _provenance_facts("Comparison", material.comparison_provenance)
        facts.append(("Comparison", material.comparison.standing))
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


def _provenance_facts(what: str, provenance: Provenance) -> list[tuple[str, str]]:
    facts = []
    if provenance.command is not None:
        facts.append((f"{what}: command", provenance.command))
    if provenance.seed is not None:
        facts.append((f"{what}: seed", str(provenance.seed)))
    if provenance.polyurn is not None:
        facts.append((f"{what}: version", f"polyurn {provenance.polyurn}"))
    if provenance.data is not None:
        facts.append((f"{what}: data", _data_fact(provenance.data)))
    if provenance.interrupted_after_round is not None:
        text = f"interrupted by hand after round {provenance.interrupted_after_round}"
        facts.append((f"{what}: rounds", text))
    return facts


def _data_fact(data: DataProvenance | str) -> str:
    if isinstance(data, str):
        return data
    return (
        f"{data.file}: {counted(data.n_clients, 'client')}, {counted(data.n_points, 'point')}, "
        f"{counted(data.n_categories, 'category')}"
    )


def _wire_facts(found: Fit | Selection, traffic: Traffic | None) -> list[tuple[str, str]]:
    """What a client sent, and how often."""
    sent = [one.n_numbers for one in found.rounds]
    what = (
        "sums over clients of addable statistics, never a client’s records or histogram"
        if traffic is None
        else f"{traffic.line}; the section of that name has the rest"
    )
    facts = [
        (
            "Privacy: traffic on the wire",
            what,
        ),
        (
            "Privacy: numbers per client",
            f"at most {max(sent):,} in a round, {sum(sent):,} in all rounds together",
        ),
        ("Privacy: rounds", _crowd(found)),
    ]
    if isinstance(found, Selection):
        facts.append(("Held out", f"{counted(found.n_held_out, 'client')} only scored"))
    return facts


def _crowd(found: Fit | Selection) -> str:
    """How often clients were asked, and over how many of them the sums are."""
    if found.fewest_clients == found.n_clients:
        return f"{found.n_rounds} with {counted(found.n_clients, 'client')} each"
    return (
        f"{found.n_rounds} with up to {counted(found.n_clients, 'client')}; the smallest sums are "
        f"over {found.fewest_clients:,} of them"
    )


def _sweep_fact(material: Material) -> str:
    runs = material.runs
    engines = ", ".join(sorted({run.engine for run in runs}))
    seeds = sorted({run.seed for run in runs})
    minutes = sum(run.seconds for run in runs) / 60
    return (
        f"{counted(len(runs), 'run')} on {len({run.population for run in runs})} populations, seeds "
        f"{', '.join(map(str, seeds))}, engine {engines}, {minutes:.1f} minutes of training"
    )


def _clients_fact(material: Material) -> str:
    parts = [
        f"{name}: {len(table):,} of {material.n_clients[name]:,} drawn"
        for name, table in material.clients.items()
    ]
    return "; ".join(parts)
