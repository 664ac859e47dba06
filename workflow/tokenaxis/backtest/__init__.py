"""How good would the answers have been? Hide the end of runs that are known, predict it, and compare.

A trial cuts a series, asks for a target that the hidden part did reach, and keeps the error, the intervals and the
verdict. `summarise` counts them by law and horizon; `calibrate` turns the errors of other runs into an interval.
"""

from tokenaxis.backtest.runs import Run, constant_stretch, cut, run_of, true_loss, with_plan_of_the_log
from tokenaxis.backtest.summary import Summary, calibrate, calibrated_coverage, summarise
from tokenaxis.backtest.trials import Trial, hidden_trials, horizon_trials

__all__ = [
    "Run",
    "Summary",
    "Trial",
    "calibrate",
    "calibrated_coverage",
    "constant_stretch",
    "cut",
    "hidden_trials",
    "horizon_trials",
    "run_of",
    "summarise",
    "true_loss",
    "with_plan_of_the_log",
]
