"""Everything that crosses between server and clients: queries down, addable statistics up.

A query is a frozen value that says what the server wants to know. A client answers with a `Statistics`,
whose only operation is `+`; the server sees the sum over a cohort, never a summand. Both have a
flat-vector form for masking and noise, and one as bytes for transport.
"""

from polyurn.wire.bounded import (
    Bounded as Bounded,
)
from polyurn.wire.bounded import (
    BoundedSurvey as BoundedSurvey,
)
from polyurn.wire.bounded import (
    Differences as Differences,
)
from polyurn.wire.bounded import (
    Shares as Shares,
)
from polyurn.wire.bounded import (
    SizeMembership as SizeMembership,
)
from polyurn.wire.bounded import (
    Sketch as Sketch,
)
from polyurn.wire.bounded import (
    WhitenedScore as WhitenedScore,
)
from polyurn.wire.bounds import (
    answer_bounds as answer_bounds,
)
from polyurn.wire.bounds import (
    check_answer as check_answer,
)
from polyurn.wire.bounds import (
    node_bounds as node_bounds,
)
from polyurn.wire.codec import (
    decode_query as decode_query,
)
from polyurn.wire.codec import (
    decode_statistics as decode_statistics,
)
from polyurn.wire.codec import (
    encode_query as encode_query,
)
from polyurn.wire.codec import (
    encode_statistics as encode_statistics,
)
from polyurn.wire.queries import (
    Aggregator as Aggregator,
)
from polyurn.wire.queries import (
    Batch as Batch,
)
from polyurn.wire.queries import (
    Contrast as Contrast,
)
from polyurn.wire.queries import (
    Expect as Expect,
)
from polyurn.wire.queries import (
    Group as Group,
)
from polyurn.wire.queries import (
    Initialise as Initialise,
)
from polyurn.wire.queries import (
    Noised as Noised,
)
from polyurn.wire.queries import (
    Parameters as Parameters,
)
from polyurn.wire.queries import (
    Part as Part,
)
from polyurn.wire.queries import (
    Query as Query,
)
from polyurn.wire.queries import (
    Score as Score,
)
from polyurn.wire.queries import (
    Survey as Survey,
)
from polyurn.wire.queries import (
    Update as Update,
)
from polyurn.wire.scaled import (
    Scaled as Scaled,
)
from polyurn.wire.statistics import (
    BatchStatistics as BatchStatistics,
)
from polyurn.wire.statistics import (
    BoundedStatistics as BoundedStatistics,
)
from polyurn.wire.statistics import (
    ContrastStatistics as ContrastStatistics,
)
from polyurn.wire.statistics import (
    Dimensions as Dimensions,
)
from polyurn.wire.statistics import (
    ExpectStatistics as ExpectStatistics,
)
from polyurn.wire.statistics import (
    GroupStatistics as GroupStatistics,
)
from polyurn.wire.statistics import (
    S as S,
)
from polyurn.wire.statistics import (
    ScoreStatistics as ScoreStatistics,
)
from polyurn.wire.statistics import (
    StartStatistics as StartStatistics,
)
from polyurn.wire.statistics import (
    Statistics as Statistics,
)
from polyurn.wire.statistics import (
    SurveyStatistics as SurveyStatistics,
)
from polyurn.wire.statistics import (
    UpdateStatistics as UpdateStatistics,
)
from polyurn.wire.statistics import (
    total as total,
)
from polyurn.wire.styles import (
    BoundedStyle as BoundedStyle,
)
from polyurn.wire.styles import (
    StyleMoments as StyleMoments,
)
from polyurn.wire.styles import (
    StyleStatistics as StyleStatistics,
)
