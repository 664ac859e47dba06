"""Attention: widths, keys that a query sees, weights.

Symbols of the papers: L n_layers, d d_model, h n_heads, k n_kv_heads, e head_dim, s seq_len, w attention_window.
Multi-head latent attention as in DeepSeek-V2 (arXiv 2405.04434, section 2.1).
"""

from __future__ import annotations

from tokenaxis.facts import FactStore
from tokenaxis.shapes.rule import Rule


def is_latent(facts: FactStore) -> bool:
    """Whether attention is multi-head latent attention (DeepSeek-V2, arXiv 2405.04434)."""
    return "kv_lora_rank" in facts


def causal_keys(windows: list[int], seq_len: int) -> float:
    """Mean number of keys that a query sees under a causal mask, summed over layers.

    Query i of s sees min(i, w) keys, i from 1; a window of 0 means s.
    """
    spans = (min(window, seq_len) if window else seq_len for window in windows)
    return sum(span * (span + 1) / 2 + (seq_len - span) * span for span in spans) / seq_len


def _has_value_width(facts: FactStore) -> bool:
    return "v_head_dim" in facts and not is_latent(facts)


def _plain_attention(facts: FactStore) -> bool:
    return not is_latent(facts) and "v_head_dim" not in facts


def _windows_listed(facts: FactStore) -> bool:
    return "attention_windows" in facts


def _one_window(facts: FactStore) -> bool:
    return "attention_window" in facts and not _windows_listed(facts)


def _some_windowed(facts: FactStore) -> bool:
    return _one_window(facts) and "n_window_layers" in facts


def _all_windowed(facts: FactStore) -> bool:
    return _one_window(facts) and "n_window_layers" not in facts


def _no_window(facts: FactStore) -> bool:
    return not _one_window(facts) and not _windows_listed(facts)


_WHOLE = "no window is stated: every layer sees the whole sequence"

RULES: tuple[Rule, ...] = (
    Rule(
        "head_dim",
        ("d_model", "n_heads"),
        "d_model / n_heads",
        lambda d_model, n_heads: d_model // n_heads if d_model % n_heads == 0 else d_model / n_heads,
        when=lambda facts: not is_latent(facts),
        assumes="the heads together are as wide as the model",
    ),
    Rule(
        "n_kv_heads",
        ("n_heads",),
        "n_heads",
        lambda n_heads: n_heads,
        when=lambda facts: not is_latent(facts),
        assumes="every query head has its own keys and values",
    ),
    Rule(
        "attention_width",
        ("n_heads", "head_dim", "v_head_dim"),
        "n_heads * (head_dim + v_head_dim) / 2",
        lambda n_heads, head_dim, v_head_dim: n_heads * (head_dim + v_head_dim) / 2,
        note="width of the two attention products, all heads; the mean of the key and the value side",
    ),
    Rule(
        "attention_width",
        ("n_heads", "head_dim"),
        "n_heads * head_dim",
        lambda n_heads, head_dim: n_heads * head_dim,
        when=lambda facts: "v_head_dim" not in facts and "head_dim" in facts,
        note="width of the two attention products, all heads",
    ),
    Rule(
        "attention_width",
        ("d_model",),
        "d_model",
        lambda d_model: d_model,
        when=lambda facts: "v_head_dim" not in facts and ("head_dim" not in facts or "n_heads" not in facts),
        assumes="the heads together are as wide as the model",
    ),
    Rule(
        "attention_keys",
        ("attention_windows", "seq_len"),
        "sum(min(window, seq_len) if window else seq_len for window in attention_windows)",
        lambda windows, seq_len: sum(min(window, seq_len) if window else seq_len for window in windows),
        when=_windows_listed,
        note="keys per query, summed over layers, no causal mask",
    ),
    Rule(
        "attention_keys",
        ("n_window_layers", "attention_window", "n_layers", "seq_len"),
        "n_window_layers * min(attention_window, seq_len) + (n_layers - n_window_layers) * seq_len",
        lambda windowed, window, layers, seq_len: windowed * min(window, seq_len) + (layers - windowed) * seq_len,
        when=_some_windowed,
        note="keys per query, summed over layers, no causal mask",
    ),
    Rule(
        "attention_keys",
        ("n_layers", "attention_window", "seq_len"),
        "n_layers * min(attention_window, seq_len)",
        lambda layers, window, seq_len: layers * min(window, seq_len),
        when=_all_windowed,
        note="keys per query, summed over layers, no causal mask; every layer has the window",
    ),
    Rule(
        "attention_keys",
        ("n_layers", "seq_len"),
        "n_layers * seq_len",
        lambda layers, seq_len: layers * seq_len,
        when=_no_window,
        note=f"keys per query, summed over layers, no causal mask; {_WHOLE}",
    ),
    Rule(
        "causal_keys",
        ("attention_windows", "seq_len"),
        "sum(min(i, window or seq_len) for window in attention_windows for i in range(1, seq_len + 1)) / seq_len",
        lambda windows, seq_len: causal_keys(list(windows), seq_len),
        when=_windows_listed,
        note="keys per query under the causal mask, mean over the sequence, summed over layers",
    ),
    Rule(
        "causal_keys",
        ("n_window_layers", "attention_window", "n_layers", "seq_len"),
        "(n_window_layers * sum(min(i, attention_window) for i in range(1, seq_len + 1))"
        " + (n_layers - n_window_layers) * seq_len * (seq_len + 1) / 2) / seq_len",
        lambda windowed, window, layers, seq_len: (
            windowed * causal_keys([window], seq_len) + (layers - windowed) * causal_keys([0], seq_len)
        ),
        when=_some_windowed,
        note="keys per query under the causal mask, mean over the sequence, summed over layers",
    ),
    Rule(
        "causal_keys",
        ("n_layers", "attention_window", "seq_len"),
        "n_layers * sum(min(i, attention_window) for i in range(1, seq_len + 1)) / seq_len",
        lambda layers, window, seq_len: layers * causal_keys([window], seq_len),
        when=_all_windowed,
        note="keys per query under the causal mask, mean over the sequence, summed over layers",
    ),
    Rule(
        "causal_keys",
        ("n_layers", "seq_len"),
        "n_layers * (seq_len + 1) / 2",
        lambda layers, seq_len: layers * (seq_len + 1) / 2,
        when=_no_window,
        note=f"keys per query under the causal mask, mean over the sequence, summed over layers; {_WHOLE}",
    ),
    Rule(
        "attention_params",
        ("n_layers", "d_model", "head_dim", "n_heads", "n_kv_heads"),
        "2 * n_layers * d_model * head_dim * (n_heads + n_kv_heads)",
        lambda layers, d_model, head_dim, n_heads, n_kv_heads: 2 * layers * d_model * head_dim * (n_heads + n_kv_heads),
        when=_plain_attention,
        note="query, key, value and output matrices, no biases",
    ),
    Rule(
        "attention_params",
        ("n_layers", "d_model", "head_dim", "v_head_dim", "n_heads", "n_kv_heads"),
        "n_layers * d_model * (head_dim + v_head_dim) * (n_heads + n_kv_heads)",
        lambda layers, d_model, head_dim, v_head_dim, n_heads, n_kv_heads: (
            layers * d_model * (head_dim + v_head_dim) * (n_heads + n_kv_heads)
        ),
        when=_has_value_width,
        note="query, key, value and output matrices, no biases",
    ),
    Rule(
        "attention_params",
        ("n_layers", "d_model", "n_heads", "head_dim", "v_head_dim", "q_lora_rank", "kv_lora_rank", "qk_rope_head_dim"),
        "n_layers * (q_lora_rank * (d_model + n_heads * head_dim) + d_model * (kv_lora_rank + qk_rope_head_dim)"
        " + kv_lora_rank * n_heads * (head_dim - qk_rope_head_dim + v_head_dim) + n_heads * v_head_dim * d_model)",
        lambda layers, d_model, n_heads, head_dim, v_head_dim, q_rank, kv_rank, rope: (
            layers
            * (
                q_rank * (d_model + n_heads * head_dim)
                + d_model * (kv_rank + rope)
                + kv_rank * n_heads * (head_dim - rope + v_head_dim)
                + n_heads * v_head_dim * d_model
            )
        ),
        when=lambda facts: is_latent(facts) and "q_lora_rank" in facts,
        note="multi-head latent attention, no biases",
    ),
    Rule(
        "attention_params",
        ("n_layers", "d_model", "n_heads", "head_dim", "v_head_dim", "kv_lora_rank", "qk_rope_head_dim"),
        "n_layers * (d_model * n_heads * head_dim + d_model * (kv_lora_rank + qk_rope_head_dim)"
        " + kv_lora_rank * n_heads * (head_dim - qk_rope_head_dim + v_head_dim) + n_heads * v_head_dim * d_model)",
        lambda layers, d_model, n_heads, head_dim, v_head_dim, kv_rank, rope: (
            layers
            * (
                d_model * n_heads * head_dim
                + d_model * (kv_rank + rope)
                + kv_rank * n_heads * (head_dim - rope + v_head_dim)
                + n_heads * v_head_dim * d_model
            )
        ),
        when=lambda facts: is_latent(facts) and "q_lora_rank" not in facts,
        note="multi-head latent attention, queries not compressed, no biases",
    ),
    Rule(
        "latent_norm_params",
        ("n_layers", "q_lora_rank", "kv_lora_rank"),
        "n_layers * (q_lora_rank + kv_lora_rank)",
        lambda layers, q_rank, kv_rank: layers * (q_rank + kv_rank),
        when=lambda facts: is_latent(facts) and "q_lora_rank" in facts,
    ),
    Rule(
        "latent_norm_params",
        ("n_layers", "kv_lora_rank"),
        "n_layers * kv_lora_rank",
        lambda layers, kv_rank: layers * kv_rank,
        when=lambda facts: is_latent(facts) and "q_lora_rank" not in facts,
    ),
    Rule("latent_norm_params", (), "0", lambda: 0, when=lambda facts: not is_latent(facts)),
)
