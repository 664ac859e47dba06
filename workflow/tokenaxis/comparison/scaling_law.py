"""The scaling law in model size and tokens, its uncertainty, and how it would spend a budget of compute.

L(N, D) = E + A/N^alpha + B/D^beta (Hoffmann et al. 2022, arXiv:2203.15556, section 3.3), fitted as there: Huber's loss
with delta = 1e-3 on ln L - LSE(ln A - alpha ln N, ln B - beta ln D, ln E), summed over the points. The public points
of that paper and the optimum on them: Besiroglu et al. 2024 (arXiv:2404.10102).

Vectors of parameters hold (ln E, ln A', ln B', alpha, beta), with A' and B' at the geometric means of N and D: about
those the five are far less correlated than at N = D = 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

#: exponents that are looked at; steeper or flatter ones were never published
EXPONENTS = (1e-3, 5.0)
#: places per exponent of the grid that finds the starts, and how many starts are followed
GRID, STARTS = 24, 8
#: most steps of a descent, and the relative gain below which it has arrived
MOST_STEPS, ARRIVED = 400, 1e-10
#: for a resample, whose own spread is a thousand times coarser
RESAMPLE_STEPS, RESAMPLE_ARRIVED = 60, 1e-6
#: numbers of a chunk of resamples: bounds memory
CHUNK = 4_000_000
PARAMETERS = 5
#: a term below this share of the lowest loss says nothing about its own exponent
NEARLY_NOTHING = 0.01


@dataclass(frozen=True)
class ScalingLaw:
    """L(N, D) in nats per token, N in parameters, D in tokens.

    Attributes:
        irreducible_loss: E. size_coefficient, size_exponent: A, alpha. token_coefficient, token_exponent: B, beta.
    """

    irreducible_loss: float
    size_coefficient: float
    size_exponent: float
    token_coefficient: float
    token_exponent: float

    def loss(self, n_params: np.ndarray | float, tokens: np.ndarray | float) -> np.ndarray:
        """Nats per token, arrays broadcast."""
        import numpy as np

        size = self.size_coefficient * np.asarray(n_params, dtype=np.float64) ** -self.size_exponent
        return self.irreducible_loss + size + self.token_coefficient * np.asarray(tokens) ** -self.token_exponent

    def tokens_to(self, target: float, n_params: np.ndarray) -> np.ndarray:
        """Tokens to `target` (nats per token) for each size; NaN where the size never gets there."""
        import numpy as np

        left = target - self.irreducible_loss - self.size_coefficient * np.asarray(n_params) ** -self.size_exponent
        return np.where(left > 0, (self.token_coefficient / np.where(left > 0, left, 1)) ** (1 / self.token_exponent),
                        np.nan)  # fmt: skip

    def optimum(self, flop: float, flop_per_parameter_token: float = 6.0) -> tuple[float, float]:
        """(N, D) of the lowest loss with C = k·N·D FLOP: N = G (C/k)^(beta/(alpha+beta)), D = C/(k·N).

        G = (alpha A / (beta B))^(1/(alpha+beta)) (Hoffmann et al. 2022, equation 4); k = 6 is their convention.
        """
        total = self.size_exponent + self.token_exponent
        log_ratio = math.log(self.size_exponent * self.size_coefficient) - math.log(
            self.token_exponent * self.token_coefficient
        )
        product = flop / flop_per_parameter_token
        n_params = math.exp((log_ratio + self.token_exponent * math.log(product)) / total)
        return n_params, product / n_params

    @property
    def allocation(self) -> float:
        """How the best N grows with compute: N ~ C^allocation; D ~ C^(1 - allocation)."""
        return self.token_exponent / (self.size_exponent + self.token_exponent)


@dataclass(frozen=True)
class ScalingFit:
    """A fitted law and its resamples.

    Attributes:
        law: the fit. objective: summed Huber loss. residual: float64 (points,), ln(observed / fitted).
        resamples: laws fitted to resampled points, as they are used for every interval.
        at_bounds: names of what the points do not determine ("irreducible_loss", "size_exponent", "token_exponent").
    """

    law: ScalingLaw
    objective: float
    residual: np.ndarray
    resamples: tuple[ScalingLaw, ...]
    at_bounds: tuple[str, ...]


def fit(
    n_params: np.ndarray, tokens: np.ndarray, loss: np.ndarray, *, huber: float, resamples: int, seed: int
) -> ScalingFit:
    """The law of least summed Huber loss, found from a grid of both exponents.

    Args:
        n_params, tokens, loss: float64 (points,), positive; at least six points.
        huber: residuals of ln(loss) beyond this count linearly.
        resamples: number of bootstrap fits; points are drawn with replacement (Besiroglu et al. 2024), within each
            size where sizes have three points or more on average, so that no draw loses a size.
        seed: of the resampling.

    Raises:
        ValueError: fewer than six points.
    """
    import numpy as np

    if len(loss) <= PARAMETERS:
        raise ValueError(f"{len(loss)} points do not determine {PARAMETERS} parameters")
    axes = np.log(n_params), np.log(tokens)
    centre = float(axes[0].mean()), float(axes[1].mean())
    places = _Places(axes[0] - centre[0], axes[1] - centre[1], np.log(loss), huber)
    best = _polished(places, _descend(places, _starts(places), np.ones((1, len(loss))), MOST_STEPS, ARRIVED))
    drawn = _resampled(places, best, n_params, resamples, seed)
    return ScalingFit(
        law=_law(best, centre),
        objective=float(places.objective(best[None], np.ones((1, len(loss))))[0]),
        residual=places.residual(best[None])[0],
        resamples=tuple(_law(vector, centre) for vector in drawn),
        at_bounds=_at_bounds(best, float(loss.min())),
    )


@dataclass(frozen=True)
class _Places:
    """The points: centred ln N, centred ln D and ln L, float64 (points,)."""

    size: np.ndarray
    tokens: np.ndarray
    loss: np.ndarray
    huber: float

    def terms(self, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(residual (laws, points), shares of E, A and B in the loss (laws, points, 3))."""
        import numpy as np

        log_e, log_a, log_b, alpha, beta = (vectors[:, index, None] for index in range(PARAMETERS))
        logs = np.stack(np.broadcast_arrays(log_e, log_a - alpha * self.size, log_b - beta * self.tokens), axis=-1)
        top = logs.max(axis=-1, keepdims=True)
        shares = np.exp(logs - top)
        total = shares.sum(axis=-1, keepdims=True)
        return self.loss - (top + np.log(total))[..., 0], shares / total

    def residual(self, vectors: np.ndarray) -> np.ndarray:
        return self.terms(vectors)[0]

    def objective(self, vectors: np.ndarray, weights: np.ndarray) -> np.ndarray:
        return (_huber(self.residual(vectors), self.huber) * weights).sum(axis=1)

    def slopes(self, shares: np.ndarray) -> np.ndarray:
        """Derivatives of the fitted ln L, (laws, points, 5)."""
        import numpy as np

        return np.concatenate(
            [shares, -self.size[:, None] * shares[..., 1:2], -self.tokens[:, None] * shares[..., 2:3]], axis=-1
        )


def _huber(residual: np.ndarray, delta: float) -> np.ndarray:
    import numpy as np

    size = np.abs(residual)
    return np.where(size <= delta, 0.5 * size**2, delta * (size - 0.5 * delta))


def _starts(places: _Places) -> np.ndarray:
    """The best cells of a grid of both exponents, with E, A', B' by least squares of relative errors, (STARTS, 5)."""
    import numpy as np

    exponents = np.geomspace(0.05, 2.0, GRID)
    alpha, beta = (grid.ravel() for grid in np.meshgrid(exponents, exponents))
    loss = np.exp(places.loss)
    size, tokens = np.exp(-alpha[:, None] * places.size), np.exp(-beta[:, None] * places.tokens)
    columns = np.stack([np.ones_like(size), size, tokens], axis=-1) / loss[:, None]
    square = np.einsum("kni,knj->kij", columns, columns) + 1e-10 * np.eye(3)
    linear = np.linalg.solve(square, columns.sum(axis=1)[..., None])[..., 0]
    linear = np.log(np.maximum(linear, 1e-3 * loss.min()))  # a negative share has no logarithm: nearly none of it
    vectors = np.column_stack([linear, alpha, beta])
    order = np.argsort(places.objective(vectors, np.ones((1, len(loss)))), kind="stable")
    return vectors[order[:STARTS]]


def _descend(places: _Places, vectors: np.ndarray, weights: np.ndarray, steps: int, arrived: float) -> np.ndarray:
    """Damped, reweighted Gauss-Newton steps for all `vectors` together; `weights` (laws or 1, points) count points."""
    import numpy as np

    vectors = vectors.copy()
    weights = np.broadcast_to(weights, (len(vectors), len(places.loss)))
    damping = np.full(len(vectors), 1e-3)
    value = places.objective(vectors, weights)
    going = np.arange(len(vectors))
    still = np.zeros(len(vectors), dtype=int)
    for _ in range(steps):
        residual, shares = places.terms(vectors[going])
        slopes = places.slopes(shares)
        pull = weights[going] * np.minimum(1.0, places.huber / np.maximum(np.abs(residual), 1e-300))
        square = np.einsum("kni,kn,knj->kij", slopes, pull, slopes)
        aim = np.einsum("kni,kn->ki", slopes, pull * residual)
        scale = np.einsum("kii->ki", square) + 1e-12 * np.einsum("kii->k", square)[:, None]
        square = square + (damping[going, None] * scale)[..., None] * np.eye(PARAMETERS)
        tried = vectors[going] + np.linalg.solve(square, aim[..., None])[..., 0]
        tried[:, 3:] = np.clip(tried[:, 3:], *EXPONENTS)
        found = places.objective(tried, weights[going])
        better = found < value[going]
        gain = (value[going] - found) / np.maximum(value[going], 1e-300)
        vectors[going[better]], value[going[better]] = tried[better], found[better]
        damping[going] = np.clip(np.where(better, damping[going] / 4, damping[going] * 8), 1e-9, 1e9)
        still[going] = np.where(better & (gain > arrived), 0, still[going] + 1)
        going = going[still[going] < 8]
        if not len(going):
            break
    return vectors


def _polished(places: _Places, vectors: np.ndarray) -> np.ndarray:
    """The best of `vectors` after a quasi-Newton descent: reweighted steps slow down where the loss is nearly |r|."""
    import numpy as np
    from scipy.optimize import minimize

    def value_and_slope(vector: np.ndarray) -> tuple[float, np.ndarray]:
        residual, shares = places.terms(vector[None])
        pull = np.clip(residual, -places.huber, places.huber)
        slope = -np.einsum("kni,kn->ki", places.slopes(shares), pull)[0]
        # in units of delta the minimiser's own thresholds fit
        return float(_huber(residual, places.huber).sum() / places.huber), slope / places.huber

    order = np.argsort(places.objective(vectors, np.ones((1, len(places.loss)))), kind="stable")
    bounds = [(None, None)] * 3 + [EXPONENTS] * 2
    found = [
        minimize(value_and_slope, start, jac=True, method="L-BFGS-B", bounds=bounds,
                 options={"maxiter": 2000, "ftol": 1e-15, "gtol": 1e-10, "maxcor": 20})
        for start in vectors[order[:3]]
    ]  # fmt: skip
    return np.array(min(found, key=lambda result: result.fun).x)


def _resampled(places: _Places, best: np.ndarray, n_params: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Bootstrap vectors (count, 5), spread about the fit as `_widening` says."""
    import numpy as np

    points = len(places.loss)
    weights = _counts(n_params, count, np.random.default_rng(seed))
    each = max(1, CHUNK // (points * PARAMETERS))
    drawn = [np.empty((0, PARAMETERS))]
    for first in range(0, count, each):
        part = weights[first : first + each]
        drawn.append(_descend(places, np.tile(best, (len(part), 1)), part, RESAMPLE_STEPS, RESAMPLE_ARRIVED))
    spread = best + _widening(points) * (np.concatenate(drawn) - best)
    spread[:, 3:] = np.clip(spread[:, 3:], *EXPONENTS)
    return spread


def _widening(points: int) -> float:
    """What a bootstrap of few points lacks: the degrees of freedom that the fit took, and Student's tails."""
    from scipy.special import stdtrit

    freedom = points - PARAMETERS
    return math.sqrt(points / freedom) * float(stdtrit(freedom, 0.95)) / NormalDist().inv_cdf(0.95)


def _counts(n_params: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """How often each resample draws each point, float64 (count, points)."""
    import numpy as np

    _, group = np.unique(n_params, return_inverse=True)
    if len(n_params) < 3 * (group.max() + 1):
        group = np.zeros(len(n_params), dtype=int)
    weights = np.zeros((count, len(n_params)))
    for number in range(group.max() + 1):
        rows = np.flatnonzero(group == number)
        weights[:, rows] = rng.multinomial(len(rows), np.full(len(rows), 1 / len(rows)), size=count)
    return weights


def _law(vector: np.ndarray, centre: tuple[float, float]) -> ScalingLaw:
    log_e, log_a, log_b, alpha, beta = (float(value) for value in vector)
    # exp overflows past 709: a resample that far out is as good as unbounded
    size, tokens = (math.exp(min(value, 700.0)) for value in (log_a + alpha * centre[0], log_b + beta * centre[1]))
    return ScalingLaw(math.exp(min(log_e, 700.0)), size, alpha, tokens, beta)


def _at_bounds(vector: np.ndarray, lowest: float) -> tuple[str, ...]:
    """What the points do not determine: E of nearly nothing, exponents at a bound or of a term of nearly nothing."""
    log_e, log_a, log_b, alpha, beta = (float(value) for value in vector)
    low, high = EXPONENTS
    found = ["irreducible_loss"] if math.exp(log_e) < NEARLY_NOTHING * lowest else []
    for name, exponent, log_share in (("size_exponent", alpha, log_a), ("token_exponent", beta, log_b)):
        if not low * 1.01 < exponent < high * 0.99 or math.exp(log_share) < NEARLY_NOTHING * lowest:
            found.append(name)
    return tuple(found)
