"""What the sweep says, in sentences: who is first at each target, by how much, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence

from tokenaxis.comparison.answers import Answer, Answers, ratio
from tokenaxis.comparison.batch_size import TradeOff
from tokenaxis.comparison.hindsight import Hindsight
from tokenaxis.comparison.model import Sweep
from tokenaxis.comparison.quantities import error, flop, interval, percent, plural, short, times, times_interval, whole
from tokenaxis.comparison.quantities import target as target_text
from tokenaxis.comparison.scaling import Scaling
from tokenaxis.comparison.tables import Table, flops_field

#: a prediction this many times beyond what its run has seen is not spoken of as "the last"
FAR = 3.0


def sentences(
    sweep: Sweep,
    answers: Answers,
    conventions: Table,
    found: list[TradeOff],
    past: Sequence[Hindsight],
    scaling: Scaling,
    most_targets: int,
) -> list[str]:
    """The sentences, most important first: targets from the lowest loss (at most `most_targets`; the table has all),
    trust, batch size, scaling, compute, refused files."""
    if not sweep.runs:
        return ["The sweep has no run that can be compared."] + _refused(sweep)
    if not answers.targets:
        return ["No run was asked for a target loss: set fits.targets in params.yaml."] + _refused(sweep)
    answered = [target for target in reversed(answers.targets) if answers.ranking(target)]
    answered.sort(key=lambda target: len(answers.leading(target)) < 2)  # what one run alone was asked for comes last
    text = [_target_sentence(answers, target) for target in answered[:most_targets]]
    unanswered = [target for target in answers.targets if not answers.ranking(target)]
    if unanswered:
        text.append(_unanswered_sentence(answers, unanswered))
    text += _trust(answers) + _past(past) + _batch(found) + _scaling(scaling) + _compute(answers, conventions)
    return text + _refused(sweep)


def _target_sentence(answers: Answers, target: float) -> str:
    first, *others = answers.leading(target)
    verb = "reaches" if first.status == "reached" else "is predicted to reach"
    place = " first" if others else ""
    after = f"after {short(first.tokens)} tokens {interval(first.low, first.high)}".rstrip()
    steps = f" and {whole(first.step)} steps" if first.step else ""
    which = f" of {(first.loss or '').replace('_', ' ')}" if answers.mixed else ""
    text = f"{first.run} {verb} {target_text(target)} nats per token{which}{place}, {after}{steps}"
    if first.status == "predicted" and first.horizon:
        text += f" ({times(first.horizon).rstrip('×')} times what it has seen)"
    return text + (_lead(first, others) if others else "") + "."


def _lead(first: Answer, others: list[Answer]) -> str:
    second = others[0]
    value, low, high = ratio(second, first)
    if value is None:
        return ""
    if low is not None and low <= 1:
        text = f"; {second.run} is next with {short(second.tokens)} tokens, and the intervals do not tell the two apart"
    else:
        bounds = f" {times_interval(low, high)}" if low is not None else ""
        text = f", {times(value).rstrip('×')} times{bounds} fewer than {second.run}, the next"
    near = [cell for cell in others if cell.status == "reached" or (cell.horizon or FAR) < FAR]
    if len(near) > 1 and near[-1].tokens and first.tokens:
        factor = near[-1].tokens / first.tokens
        among = "" if len(near) == len(others) else f" of those within {FAR:g} times what they have seen"
        text += f"; the last{among}, {near[-1].run}, needs {times(factor).rstrip('×')} times as many"
    return text


def _unanswered_sentence(answers: Answers, targets: list[float]) -> str:
    named = ", ".join(target_text(target) for target in targets[:8]) + (", …" if len(targets) > 8 else "")
    counts = [answers.counts(target) for target in targets]
    never, unknown = (sum(count[status] for count in counts) for status in ("unreachable", "not_available"))
    return (
        f"No run reaches or is predicted to reach {named} nats per token "
        f"({plural(never, 'answer')} “unreachable”, {unknown} without an answer)."
    )


def _trust(answers: Answers) -> list[str]:
    predicted = [cell for cell in answers.cells.values() if cell.status == "predicted"]
    if not predicted:
        return []
    settled = sum(cell.verdict == "CONVERGED" for cell in predicted)
    level = next((cell.level for cell in predicted if cell.level is not None), None)
    text = f"Of {plural(len(predicted), 'prediction')}, {settled} " + ("has" if settled == 1 else "have") + " converged"
    text += f" (intervals hold {percent(level)} of the time, nominally)." if level else "."
    return [text]


def _past(past: Sequence[Hindsight]) -> list[str]:
    """The horizon with most predictions speaks, of equals the farther one."""
    entry = max(past, key=lambda entry: (entry.predictions, entry.horizon), default=None)
    if entry is None or entry.median_error is None:
        return []
    text = f"In hindsight, predictions made when a target lay at {times(entry.horizon).rstrip('×')} times the tokens "
    text += f"seen erred by {error(entry.median_error)} in the median ({plural(entry.predictions, 'prediction')}"
    return [text + (f"; {entry.held} of {entry.intervals} intervals held)." if entry.intervals else ").")]


def _batch(found: list[TradeOff]) -> list[str]:
    """Only where it is known from both sides; the table has the rest."""
    fitted = [
        entry
        for entry in found
        if entry.critical.reason is None and entry.critical.low is not None and entry.critical.high is not None
    ]
    if not fitted:
        return []
    entry = min(fitted, key=lambda entry: (-entry.critical.points, entry.target))
    critical = entry.critical
    return [
        f"At {target_text(entry.target)} nats per token the critical batch size is {short(critical.batch)} tokens per "
        f"step {interval(critical.low, critical.high)}: it needs twice the fewest tokens and twice the fewest steps."
    ]


def _scaling(scaling: Scaling) -> list[str]:
    if scaling.fit is None or scaling.caution:
        return []
    value, low, high = scaling.parameters["allocation"]
    budget = max((budget for budget in scaling.budgets if budget.beyond <= 1), key=lambda budget: budget.flop)
    tokens, n_params = budget.tokens, budget.n_params
    return [
        f"By the scaling law of {plural(len(scaling.used), 'run')}, the best size grows as compute to the power "
        f"{value:.2f} [{low:.2f}, {high:.2f}]; {flop(budget.flop)} FLOP are best spent on {short(n_params[0])} "
        f"parameters {interval(*n_params[1:])} and {short(tokens[0])} tokens {interval(*tokens[1:])}."
    ]


def _compute(answers: Answers, conventions: Table) -> list[str]:
    orders = orders_by_convention(conventions, answers.focus)
    if len(orders) < 2 or answers.focus is None or len(next(iter(orders.values()))) < 2:
        return []
    firsts = {order[0] for order in orders.values()}
    goal = f"by FLOP until {target_text(answers.focus)} nats per token"
    if len({tuple(order) for order in orders.values()}) == 1:
        return [f"The ranking {goal} is the same under all {len(orders)} conventions of counting."]
    if len(firsts) == 1:
        return [
            f"{firsts.pop()} is first {goal} under every convention; the ranking behind it depends on the convention."
        ]
    under: dict[str, list[str]] = {}
    for name, order in sorted(orders.items()):
        under.setdefault(order[0], []).append(name)
    each = "; ".join(
        f"{run} under {_some(names)}" for run, names in sorted(under.items(), key=lambda item: -len(item[1]))
    )
    return [f"Which run is first {goal} depends on the convention: {each}."]


def _some(names: list[str], most: int = 4) -> str:
    listed = ", ".join(names[:most])
    return listed if len(names) <= most else f"{len(names)} conventions ({listed}, …)"


def orders_by_convention(conventions: Table, target: float | None) -> dict[str, list[str]]:
    """Convention -> runs by FLOP to `target`, fewest first; only runs that every convention has a number for."""
    if target is None:
        return {}
    key = flops_field(target)
    numbers: dict[str, dict[str, float]] = {}
    for row in conventions.rows:
        if row.get(key):
            numbers.setdefault(row["convention"], {})[row["run"]] = row[key]
    common = set.intersection(*(set(found) for found in numbers.values())) if numbers else set()
    return {
        name: sorted(common, key=lambda run: (found[run], run)) for name, found in numbers.items() if common
    }  # fmt: skip


def _refused(sweep: Sweep) -> list[str]:
    if not sweep.refused:
        return []
    names = ", ".join(str(entry.get("name")) for entry in sweep.refused[:3]) + (", …" if len(sweep.refused) > 3 else "")
    return [f"{plural(len(sweep.refused), 'file')} could not be used ({names}): reasons and remedies are below."]
