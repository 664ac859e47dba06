"""One planted case, analysed end to end with the default parameters: reader, token axis, fits, stability."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tokenaxis import readers, stability, targets
from tokenaxis.axis import TokenAxis, build_axis
from tokenaxis.declarations import Declaration
from tokenaxis.errors import TokenAxisError

#: the target fields of `expect` whose values are losses to ask for
TARGET_LISTS = ("not_reached", "below_at_start", "unreachable", "no_prediction_for")


@dataclass
class Outcome:
    """What came out of a case; `refused` instead of the rest where the log was refused."""

    refused: TokenAxisError | None = None
    axis: TokenAxis | None = None
    fits: dict[str, Any] | None = None
    sweep: dict[str, Any] | None = None
    said: list[str] = field(default_factory=list)

    def target(self, loss: float) -> dict[str, Any]:
        """The answer for one target."""
        assert self.fits is not None
        return next(answer for answer in self.fits["targets"] if answer["target"] == loss)

    def says(self, keywords: list[str]) -> bool:
        """Whether a warning or a reason holds one of the keywords, in any case."""
        return any(keyword.lower() in text for keyword in keywords for text in self.said)


def declaration_of(options: dict[str, Any]) -> Declaration:
    """What a case's caller declares."""
    schedule = options.get("batch_schedule")
    return Declaration(
        tokens_per_step=options.get("batch_size"),
        batch_schedule=schedule and tuple((float(a), float(b)) for a, b in (pair.split(":") for pair in schedule)),
        tokens_convention=options.get("tokens_are"),
        fit_start_step=options.get("fit_start_step"),
    )


def losses_asked(expect: dict[str, Any]) -> list[float]:
    """Every target that the truth says something about."""
    asked = [crossing["target"] for crossing in expect.get("crossings", [])]
    asked += [loss for name in TARGET_LISTS for loss in expect.get(name, [])]
    asked += [loss for loss, _ in expect.get("law_tokens", [])]
    return list(dict.fromkeys(asked))


def analyse(
    folder: Path, file: str, case: dict[str, Any], params: dict[str, Any], to_step: int | None = None
) -> Outcome:
    """Reader, axis, fits and stability for one file of a case.

    Args:
        folder: where the cases are.
        file: the log's path below it.
        case: its entry in truth.json.
        params: all sections of params.yaml.
        to_step: keep only the rows up to this step for the fit.
    """
    declaration, loss = declaration_of(case["options"]), case["options"].get("loss_col")
    try:
        raw = readers.read(str(folder / file), declaration)
        axis = build_axis(raw, declaration, file, params["token_axis"]["tokens_convention"])
    except TokenAxisError as error:
        return Outcome(refused=error, said=[str(error).lower()])
    outcome = Outcome(axis=axis, said=_messages(axis.meta["warnings"]))
    asked = losses_asked(case["expect"])
    fit_params = params["fits"] | {"targets": asked or "auto"} | ({"loss": loss} if loss else {})
    columns = axis.columns
    if to_step is not None:
        columns = {name: values[columns["step"] <= to_step] for name, values in columns.items()}
    chosen, reason = targets.choose_loss(columns, fit_params)
    series = targets.series_from(columns, axis.meta, declaration.as_dict(), chosen)
    outcome.fits = targets.answer(series, fit_params, reason).as_dict()
    outcome.sweep = stability.sweep(series, params["stability"], fit_params, outcome.fits).as_dict()
    outcome.said += _messages(outcome.fits["warnings"]) + _messages(outcome.sweep["warnings"])
    outcome.said += [str(answer["reason"]).lower() for answer in outcome.fits["targets"] if answer["reason"]]
    outcome.said += [verdict["reason"].lower() for verdict in outcome.sweep["verdicts"]]
    outcome.said.append(str(outcome.fits["fit_not_available"]).lower())
    return outcome


def _messages(warnings: list[dict[str, str]]) -> list[str]:
    return [warning["message"].lower() for warning in warnings]
