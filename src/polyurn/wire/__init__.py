"""Everything that is sent between server and clients: queries down, addable statistics up.

A query is a frozen value that says what the server wants to know. A client answers with a `Statistics`,
whose only operation is `+`; the server sees the sum over a cohort, never a summand. Both have a
flat-vector form for masking and noise, and one as bytes for transport.
"""

from polyurn.model.mdm import Parameters
from polyurn.wire.codec import decode_query, decode_statistics, encode_query, encode_statistics
from polyurn.wire.private_queries import (
    Bounded,
    BoundedStatistics,
    BoundedSurvey,
    Describe,
    Differences,
    InBlocks,
    Scaled,
    Shares,
    SizeMembership,
    Sketch,
    Spread,
    Standing,
    WhitenedScore,
)
from polyurn.wire.queries import (
    Affinity,
    AffinityStatistics,
    Batch,
    BatchStatistics,
    Contrast,
    ContrastStatistics,
    Divide,
    DivideStatistics,
    Expect,
    ExpectStatistics,
    Group,
    GroupStatistics,
    Initialise,
    Noised,
    Part,
    RecordColumn,
    Score,
    ScoreStatistics,
    StartStatistics,
    Survey,
    SurveyStatistics,
    Update,
    UpdateStatistics,
    node_bounds,
)
from polyurn.wire.query import Aggregator, Query, S, Statistics, check_answer, total
from polyurn.wire.style_queries import BoundedStyle, StyleMoments, StyleStatistics

__all__ = [
    "Affinity", "AffinityStatistics", "Aggregator", "Batch", "BatchStatistics", "Bounded",
    "BoundedStatistics", "BoundedStyle", "BoundedSurvey", "Contrast", "ContrastStatistics",
    "Describe", "Differences", "Divide", "DivideStatistics", "Expect", "ExpectStatistics", "Group",
    "GroupStatistics", "InBlocks", "Initialise", "Noised", "Parameters", "Part", "Query",
    "RecordColumn", "S", "Scaled", "Score", "ScoreStatistics", "Shares", "SizeMembership", "Sketch",
    "Spread", "Standing", "StartStatistics", "Statistics", "StyleMoments", "StyleStatistics",
    "Survey", "SurveyStatistics", "Update", "UpdateStatistics", "WhitenedScore", "check_answer",
    "decode_query", "decode_statistics", "encode_query", "encode_statistics", "node_bounds", "total",
]  # fmt: skip
