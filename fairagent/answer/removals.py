"""What a filter removed from each group, and warnings where a group lost significantly more than the others."""

from collections.abc import Mapping, Sequence

import numpy as np

from fairagent.collection.exposure import ExposureMeter
from fairagent.errors import DataError
from fairagent.types import UNKNOWN, FloatArray, Group, Removal, Verdict
from fairagent.types.common import GROUP_REMOVED, REMOVED, Alarm, without_verdict

LEVEL = 0.05
"""How likely a warning is, for one dimension, where the filter treats all groups alike."""


def removals(
    labels: Mapping[str, Sequence[str]], memberships: Mapping[str, FloatArray], verdicts: Sequence[Verdict]
) -> tuple[Removal, ...]:
    """What each group lost to a filter, a `Removal` for each dimension and label, unknown first.

    `labels` are the known labels of each dimension, `memberships` (k, 1 + g) its rows for the documents that were
    filtered, in the order of the `verdicts`. Raises DataError where the shapes do not fit.

    >>> verdicts = [Verdict("d1", True, True, None), Verdict("d2", False, False, False)]
    >>> rows = np.array([[0, 1, 0], [0, 0.5, 0.5]])
    >>> for removal in removals({"gender": ["female", "male"]}, {"gender": rows}, verdicts):
    ...     print(removal.group, f"{removal.share:.2f}")
    @UNKNOWN (gender) 0.00
    female (gender) 0.33
    male (gender) 1.00
    """
    gone = np.array([not verdict.kept for verdict in verdicts], dtype=np.float64)
    groups: list[Removal] = []
    for dimension, known in labels.items():
        rows = np.asarray(memberships[dimension], dtype=np.float64)
        expected = (len(verdicts), 1 + len(known))
        if rows.shape != expected:
            raise DataError(
                f"memberships of {dimension} have shape {rows.shape}, expected {expected}: a row a verdict, a column "
                "for unknown and for each label"
            )
        pairs = zip([UNKNOWN, *known], rows.sum(axis=0), gone @ rows, strict=True)
        groups += [Removal(Group(dimension, label), float(seen), float(lost)) for label, seen, lost in pairs]
    return tuple(groups)


def removal_warnings(run: Sequence[Removal]) -> tuple[str, ...]:
    """A sentence for each known group that lost more of its documents than chance explains.

    For each group, Fisher's exact test (one-sided, on counts rounded to whole documents) compares what it lost with
    what all other documents of the dimension lost; the level of 5 % is shared out among the groups seen (Bonferroni).
    Meant for a whole run: ten documents of one query rarely suffice. A document that comes up for several queries
    counts each time. A warning is a reason to look, no proof: a group's documents may really do more harm.

    >>> lost = [Removal(Group("gender", "female"), 50, 30), Removal(Group("gender", "male"), 100, 20)]
    >>> [warning] = removal_warnings(lost)
    >>> warning
    'the filter removed 60% of the documents of female (gender), 30 of 50, but 20% of all others, 20 of 100 (p < 0.001)'
    """
    # Here and not above: scipy.stats takes a while to load.
    from scipy.stats import fisher_exact

    warnings = []
    for dimension in dict.fromkeys(removal.group.dimension for removal in run):
        counts = {one.group: (round(one.removed), round(one.seen)) for one in run if one.group.dimension == dimension}
        all_gone, all_seen = np.sum(list(counts.values()), axis=0).tolist()
        known = [group for group, (_, seen) in counts.items() if group.label != UNKNOWN and seen]
        for group in known:
            gone, seen = counts[group]
            others_gone, others_seen = all_gone - gone, all_seen - seen
            table = np.array([[gone, seen - gone], [others_gone, others_seen - others_gone]])
            p = float(fisher_exact(table, alternative="greater").pvalue)
            if p < LEVEL / len(known):
                chance = "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
                warnings.append(
                    f"the filter removed {gone / seen:.0%} of the documents of {group}, {gone} of {seen}, but "
                    f"{others_gone / others_seen:.0%} of all others, {others_gone} of {others_seen} ({chance})"
                )
    return tuple(warnings)


def removed_by(verdicts: Sequence[Verdict], meter: ExposureMeter) -> tuple[Removal, ...]:
    """What each group that `meter` knows lost to a filter."""
    rows = meter.memberships([verdict.id for verdict in verdicts])
    labels = {target.dimension: target.labels for target in meter.targets}
    return removals(labels, dict(zip(labels, rows, strict=True)), verdicts)


def filter_alarms(verdicts: Sequence[Verdict], removed: Sequence[Removal] = ()) -> tuple[Alarm, ...]:
    """That a filter removed most documents, said nothing on most, or took far more of one group than of the others.

    >>> [str(alarm) for alarm in filter_alarms([Verdict("d1", False, False, False)])]
    ['most documents removed: the filter removed 1 of 1']
    """
    gone, missing = sum(not verdict.kept for verdict in verdicts), sum(verdict.fair is None for verdict in verdicts)
    most = [Alarm(REMOVED, f"the filter removed {gone} of {len(verdicts)}")] if 2 * gone > len(verdicts) else []
    groups = [Alarm(GROUP_REMOVED, warning) for warning in removal_warnings(removed)]
    return (*most, *without_verdict("filter", missing, len(verdicts)), *groups)
