"""Learn what your federation looks like, then simulate it.

The names below are the public interface; each is loaded when it is first used, so that
`import polyurn` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from polyurn.aggregate.local import LocalAggregator as LocalAggregator
    from polyurn.aggregate.recorded import RecordedAggregator as RecordedAggregator
    from polyurn.client.answer import answer as answer
    from polyurn.client.bins import Bins as Bins
    from polyurn.client.histogram import Histograms as Histograms
    from polyurn.client.histogram import histogram as histogram
    from polyurn.client.histogram import histograms as histograms
    from polyurn.client.tables import table_histograms as table_histograms
    from polyurn.comparison.parameters import compare_parameters as compare_parameters
    from polyurn.comparison.populations import compare as compare
    from polyurn.comparison.results import Comparison as Comparison
    from polyurn.comparison.results import Likeness as Likeness
    from polyurn.comparison.single_dirichlet import concentration as concentration
    from polyurn.comparison.splits import ClientSplit as ClientSplit
    from polyurn.comparison.splits import split_clients as split_clients
    from polyurn.comparison.summaries import Heterogeneity as Heterogeneity
    from polyurn.comparison.summaries import heterogeneity as heterogeneity
    from polyurn.counts import drop_empty as drop_empty
    from polyurn.files import load as load
    from polyurn.files import read_table as read_table
    from polyurn.files import save as save
    from polyurn.files import write_histograms as write_histograms
    from polyurn.journal import Journal as Journal
    from polyurn.mdm import MDM as MDM
    from polyurn.mdm import dirichlet_multinomial_logpmf as dirichlet_multinomial_logpmf
    from polyurn.partition_files import load_partition as load_partition
    from polyurn.partition_files import save_partition as save_partition
    from polyurn.partitioning import cover as cover
    from polyurn.partitioning import partition as partition
    from polyurn.partitions import Partition as Partition
    from polyurn.partitions import PartitionReport as PartitionReport
    from polyurn.populations import dirichlet_counts as dirichlet_counts
    from polyurn.populations import iid_counts as iid_counts
    from polyurn.populations import oracle_counts as oracle_counts
    from polyurn.report.page import html_report as html_report
    from polyurn.server.fit import Fit as Fit
    from polyurn.server.fit import Round as Round
    from polyurn.server.fit import fit as fit
    from polyurn.server.select import select as select
    from polyurn.server.selection import Selection as Selection
    from polyurn.sizes import SizeBins as SizeBins
    from polyurn.sizes import Sizes as Sizes
    from polyurn.training.examples import Examples as Examples
    from polyurn.training.federated import Run as Run
    from polyurn.training.federated import train as train
    from polyurn.training.records import RunRecord as RunRecord
    from polyurn.training.records import read_runs as read_runs
    from polyurn.training.settings import FedAvg as FedAvg
    from polyurn.training.settings import Search as Search
    from polyurn.training.sweeps import Sweep as Sweep
    from polyurn.training.sweeps import sweep as sweep
    from polyurn.training.verdict import Verdict as Verdict
    from polyurn.training.verdict import compare_sweeps as compare_sweeps

_HOME = {
    "LocalAggregator": "aggregate.local",
    "RecordedAggregator": "aggregate.recorded",
    "answer": "client.answer",
    "Bins": "client.bins",
    "Histograms": "client.histogram",
    "histogram": "client.histogram",
    "histograms": "client.histogram",
    "table_histograms": "client.tables",
    "concentration": "comparison.single_dirichlet",
    "Heterogeneity": "comparison.summaries",
    "heterogeneity": "comparison.summaries",
    "compare_parameters": "comparison.parameters",
    "compare": "comparison.populations",
    "Comparison": "comparison.results",
    "Likeness": "comparison.results",
    "ClientSplit": "comparison.splits",
    "split_clients": "comparison.splits",
    "drop_empty": "counts",
    "load": "files",
    "read_table": "files",
    "save": "files",
    "write_histograms": "files",
    "Journal": "journal",
    "MDM": "mdm",
    "dirichlet_multinomial_logpmf": "mdm",
    "load_partition": "partition_files",
    "save_partition": "partition_files",
    "cover": "partitioning",
    "partition": "partitioning",
    "Partition": "partitions",
    "PartitionReport": "partitions",
    "dirichlet_counts": "populations",
    "iid_counts": "populations",
    "oracle_counts": "populations",
    "html_report": "report.page",
    "Fit": "server.fit",
    "Round": "server.fit",
    "fit": "server.fit",
    "Selection": "server.selection",
    "select": "server.select",
    "SizeBins": "sizes",
    "Sizes": "sizes",
    "Examples": "training.examples",
    "Run": "training.federated",
    "train": "training.federated",
    "RunRecord": "training.records",
    "read_runs": "training.records",
    "FedAvg": "training.settings",
    "Search": "training.settings",
    "Sweep": "training.sweeps",
    "sweep": "training.sweeps",
    "Verdict": "training.verdict",
    "compare_sweeps": "training.verdict",
}

__all__ = sorted(_HOME)  # noqa: PLE0605


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'polyurn' has no attribute {name!r}")
    value = getattr(import_module(f"polyurn.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
