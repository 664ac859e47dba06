"""What the windows of a sweep are made of: sums over many windows, their covariances, memory between runs."""

from __future__ import annotations

import math
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tokenaxis import params as parameters
from tokenaxis import targets
from tokenaxis.laws import window_laws
from tokenaxis.laws.noise import doubt_of
from tokenaxis.laws.rate import rate_of
from tokenaxis.laws.symmetric import inverses
from tokenaxis.laws.window_rows import window_rows
from tokenaxis.laws.window_sums import BLOCK, Order
from tokenaxis.series import LossSeries

BATCH = 500_000.0


@pytest.fixture(scope="module")
def params(root: Path) -> dict:
    return parameters.load_yaml(root / "params.yaml")


def planted(rows: int) -> LossSeries:
    step = np.arange(1.0, rows + 1)
    tokens = (step - 1) * BATCH
    noise = 0.03 * np.random.default_rng(rows).standard_normal(rows)
    loss = 2 + 0.6 * (np.maximum(tokens, BATCH) / 1e9) ** -0.35 + noise
    return LossSeries("train_loss", step, tokens, loss, np.full(rows, BATCH), lr_schedule={"kind": "constant"})


@pytest.mark.parametrize("points", [1, BLOCK - 1, BLOCK, 5 * BLOCK + 3])
def test_sums_over_windows_are_the_sums_of_their_points(points):
    rng = np.random.default_rng(points)
    values = rng.standard_normal((3, points))
    starts = rng.integers(0, points, 40)
    ends = rng.integers(starts, points) + 1
    order = Order(points, points - starts, points - ends)
    found = order.windowed(np.concatenate([order.arranged(row) for row in values], axis=1))
    wanted = [[row[start:end].sum() for row in values] for start, end in zip(starts, ends, strict=True)]
    np.testing.assert_allclose(found, wanted, atol=1e-13 * points)  # rounding of sums of numbers of order 1


@pytest.mark.parametrize("rows", [300, 6000])  # fewer points than are grouped, and more
def test_a_windows_standard_error_is_that_of_all_of_its_points(params, rows):
    series, fit_params = planted(rows), params["fits"] | {"targets": [2.2]}
    fits = targets.answer(series, fit_params).as_dict()
    laws = window_laws.window_laws(series, params["stability"], fit_params, fits)
    axis = rate_of(series).weighted_tokens
    points = window_rows(series, axis, 300, fit_params["start_fraction"], params["stability"], fit_params)
    for i in range(0, len(laws.step), 20):
        some = slice(points.begin[i], points.end[i])
        ln_x, weight = points.ln_x[some], points.bins.rows[some]
        power = np.exp(-laws.exponent[i] * ln_x)
        slope = -laws.coefficient[i] * laws.exponent[i] * power * ln_x
        jacobian = np.stack([np.ones_like(power), power, slope])
        hessian = (jacobian * weight) @ jacobian.T / (laws.residual_sd[i] ** 2 * laws.inflation)
        hessian[2, 2] += fit_params["prior_exponent_sd"] ** -2
        wanted = np.sqrt(np.diag(np.linalg.inv(hessian)))
        # 64 parts of a window: their second-order error is below 1e-3; every point where there are few: rounding alone
        tolerance = 2e-3 if rows == 6000 else 1e-6
        np.testing.assert_allclose(np.sqrt(np.diag(laws.covariance[i])), wanted, rtol=tolerance)


def test_inverses_are_inverses_and_pseudo_inverses_of_singular_matrices():
    rows = np.random.default_rng(3).standard_normal((50, 3, 6)) * np.array([1.0, 1e-4, 1e3])[:, None]
    regular = rows @ rows.transpose(0, 2, 1)
    np.testing.assert_allclose(inverses(regular), np.linalg.inv(regular), rtol=1e-9)  # conditions up to 1e4 once scaled
    singular = np.array([[[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 4.0]]])
    np.testing.assert_allclose(inverses(singular)[0], np.linalg.pinv(singular[0]), atol=1e-12)


def test_the_doubt_about_many_fits_is_the_doubt_about_each():
    rows = np.array([5.0, 12.0, 50.0, 3000.0])
    many = doubt_of(rows, 1.3)
    for i, count in enumerate(rows):
        alone = doubt_of(float(count), 1.3)
        assert many.half_width(0.9, 2.0)[i] == alone.half_width(0.9, 2.0)
        assert math.isfinite(alone.half_width(0.9, 2.0))


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has limits that adapt")
def test_memory_of_freed_arrays_is_kept():
    code = (
        "import resource, numpy as np\n"
        "from tokenaxis.memory import keep_freed\n"
        "keep_freed()\n"
        "np.ones(1 << 17)\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n"
        "for _ in range(50): np.ones(1 << 17)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 1000  # one array has 256 pages; all 50 would have to be fetched 12,800 times
