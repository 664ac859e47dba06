"""tokenaxis: from raw training logs to tokens-to-target-loss, FLOPs and passports.

The package is light to import on purpose: no module loads pandas, scipy, matplotlib or torch when it is imported
(an interpreter that starts for one run must not pay for them), and the modules that run while the Snakefile is parsed
do not load numpy or pyarrow either.
"""

__version__ = "0.1.0"
