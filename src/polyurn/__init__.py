"""Learn what your federation looks like, then simulate it.

The names below are the public interface; each is loaded when it is first used, so that
`import polyurn` costs nothing.
"""

from importlib import import_module

__version__ = "0.2.0"

TYPE_CHECKING = False  # as in `typing`, which takes longer to load than all of this

if TYPE_CHECKING:
    from polyurn import zoo as zoo
    from polyurn.aggregate.dask import DaskAggregator as DaskAggregator
    from polyurn.aggregate.local import LocalAggregator as LocalAggregator
    from polyurn.aggregate.replay import ReplayAggregator as ReplayAggregator
    from polyurn.aggregate.shard_aggregator import ShardAggregator as ShardAggregator
    from polyurn.client.answers import answer as answer
    from polyurn.client.bins import Bins as Bins
    from polyurn.client.counting import Histograms as Histograms
    from polyurn.client.counting import histogram as histogram
    from polyurn.client.counting import histograms as histograms
    from polyurn.client.crossing import crossed as crossed
    from polyurn.client.record_tables import table_records as table_records
    from polyurn.client.records import Records as Records
    from polyurn.client.tables import table_histograms as table_histograms
    from polyurn.comparison.client_splits import ClientSplit as ClientSplit
    from polyurn.comparison.client_splits import split_clients as split_clients
    from polyurn.comparison.comparison_results import Comparison as Comparison
    from polyurn.comparison.likeness import compare as compare
    from polyurn.comparison.parameters import compare_parameters as compare_parameters
    from polyurn.comparison.style_comparison import style_dispersion as style_dispersion
    from polyurn.comparison.summaries import Heterogeneity as Heterogeneity
    from polyurn.comparison.summaries import concentration as concentration
    from polyurn.comparison.summaries import fitted_dirichlet as fitted_dirichlet
    from polyurn.comparison.summaries import heterogeneity as heterogeneity
    from polyurn.counts import drop_empty as drop_empty
    from polyurn.integrations.fit_tables import fit as fit
    from polyurn.integrations.frames import TableFeatures as TableFeatures
    from polyurn.integrations.frames import table_features as table_features
    from polyurn.model.mdm import MDM as MDM
    from polyurn.model.mdm import dirichlet_multinomial_logpmf as dirichlet_multinomial_logpmf
    from polyurn.model.opponents import Pathological as Pathological
    from polyurn.model.opponents import QuantitySkew as QuantitySkew
    from polyurn.model.opponents import Shards as Shards
    from polyurn.model.populations import IID as IID
    from polyurn.model.populations import Dirichlet as Dirichlet
    from polyurn.model.populations import Oracle as Oracle
    from polyurn.model.populations import Population as Population
    from polyurn.model.populations import Styled as Styled
    from polyurn.model.sizes import SizeBins as SizeBins
    from polyurn.model.sizes import Sizes as Sizes
    from polyurn.model.splits import Laws as Laws
    from polyurn.model.splits import Splits as Splits
    from polyurn.model.style import Style as Style
    from polyurn.model.style_coordinates import StyleSpace as StyleSpace
    from polyurn.model.style_coordinates import style_space as style_space
    from polyurn.model.trees import Tree as Tree
    from polyurn.partitioning.assign import cover as cover
    from polyurn.partitioning.assign import held_categories as held_categories
    from polyurn.partitioning.assign import partition as partition
    from polyurn.partitioning.result import Partition as Partition
    from polyurn.privacy.ledger import PrivacyLedger as PrivacyLedger
    from polyurn.privacy.private_aggregator import PrivateAggregator as PrivateAggregator
    from polyurn.privacy.statement import Guarantee as Guarantee
    from polyurn.report.page import report_on as report_on
    from polyurn.server.feature_choice import FeatureDifference as FeatureDifference
    from polyurn.server.feature_choice import feature_differences as feature_differences
    from polyurn.server.feature_choice import recommend_feature as recommend_feature
    from polyurn.server.fit_results import Fit as Fit
    from polyurn.server.fit_results import Round as Round
    from polyurn.server.paper import fit_paper as fit_paper
    from polyurn.server.private.private_fit import fit_private as fit_private
    from polyurn.server.style_fit import fit_style as fit_style
    from polyurn.storage.journal import Journal as Journal
    from polyurn.storage.ledger_file import open_ledger as open_ledger
    from polyurn.storage.models import load as load
    from polyurn.storage.models import save as save
    from polyurn.storage.packing import pack_shards as pack_shards
    from polyurn.storage.partitions import load_partition as load_partition
    from polyurn.storage.partitions import save_partition as save_partition
    from polyurn.storage.run_log import FinishedRun as FinishedRun
    from polyurn.storage.run_log import read_runs as read_runs
    from polyurn.storage.table_files import read_table as read_table
    from polyurn.storage.table_files import write_histograms as write_histograms
    from polyurn.sweeps.choice_of_settings import BestSettings as BestSettings
    from polyurn.sweeps.choice_of_settings import best_settings as best_settings
    from polyurn.sweeps.grid import Sweep as Sweep
    from polyurn.sweeps.grid import sweep_trainer as sweep_trainer
    from polyurn.sweeps.optuna_search import OptunaSearch as OptunaSearch
    from polyurn.sweeps.own_engines import sweep as sweep
    from polyurn.sweeps.trainable import FailedRun as FailedRun
    from polyurn.sweeps.trainers import CommandTrainer as CommandTrainer
    from polyurn.sweeps.verdict import Verdict as Verdict
    from polyurn.sweeps.verdict import compare_sweeps as compare_sweeps
    from polyurn.training.examples import Examples as Examples
    from polyurn.training.fedavg import FedAvg as FedAvg
    from polyurn.training.federated import Run as Run
    from polyurn.training.federated import train as train
    from polyurn.training.losses import weighted as weighted

# The public names of each module.
_NAMES = {
    "aggregate.dask": "DaskAggregator",
    "aggregate.local": "LocalAggregator",
    "aggregate.replay": "ReplayAggregator",
    "aggregate.shard_aggregator": "ShardAggregator",
    "client.answers": "answer",
    "client.bins": "Bins",
    "client.counting": "Histograms histogram histograms",
    "client.crossing": "crossed",
    "client.record_tables": "table_records",
    "client.records": "Records",
    "client.tables": "table_histograms",
    "comparison.client_splits": "ClientSplit split_clients",
    "comparison.comparison_results": "Comparison",
    "comparison.likeness": "compare",
    "comparison.parameters": "compare_parameters",
    "comparison.style_comparison": "style_dispersion",
    "comparison.summaries": "Heterogeneity concentration fitted_dirichlet heterogeneity",
    "counts": "drop_empty",
    "integrations.fit_tables": "fit",
    "integrations.frames": "TableFeatures table_features",
    "model.mdm": "MDM dirichlet_multinomial_logpmf",
    "model.opponents": "Pathological QuantitySkew Shards",
    "model.populations": "Dirichlet IID Oracle Population Styled",
    "model.sizes": "SizeBins Sizes",
    "model.splits": "Laws Splits",
    "model.style": "Style",
    "model.style_coordinates": "StyleSpace style_space",
    "model.trees": "Tree",
    "partitioning.assign": "cover held_categories partition",
    "partitioning.result": "Partition",
    "privacy.ledger": "PrivacyLedger",
    "privacy.private_aggregator": "PrivateAggregator",
    "privacy.statement": "Guarantee",
    "report.page": "report_on",
    "server.feature_choice": "FeatureDifference feature_differences recommend_feature",
    "server.fit_results": "Fit Round",
    "server.paper": "fit_paper",
    "server.private.private_fit": "fit_private",
    "server.style_fit": "fit_style",
    "storage.journal": "Journal",
    "storage.ledger_file": "open_ledger",
    "storage.models": "load save",
    "storage.packing": "pack_shards",
    "storage.partitions": "load_partition save_partition",
    "storage.run_log": "FinishedRun read_runs",
    "storage.table_files": "read_table write_histograms",
    "sweeps.choice_of_settings": "BestSettings best_settings",
    "sweeps.grid": "Sweep sweep_trainer",
    "sweeps.optuna_search": "OptunaSearch",
    "sweeps.own_engines": "sweep",
    "sweeps.trainable": "FailedRun",
    "sweeps.trainers": "CommandTrainer",
    "sweeps.verdict": "Verdict compare_sweeps",
    "training.examples": "Examples",
    "training.fedavg": "FedAvg",
    "training.federated": "Run train",
    "training.losses": "weighted",
}
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = sorted(_HOME)  # noqa: PLE0605


def __getattr__(name: str) -> object:
    if name == "zoo":  # a room, whose module import_module binds to this name
        return import_module("polyurn.zoo")
    if name not in _HOME:
        raise AttributeError(f"module 'polyurn' has no attribute {name!r}")
    value = getattr(import_module(f"polyurn.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__", "zoo"]
