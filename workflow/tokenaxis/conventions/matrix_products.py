"""Conventions that count the matrix products of a transformer one by one, from its shape.

Symbols: L n_layers, d d_model, h n_heads, k n_kv_heads, e head_dim, ff d_ff, V vocab_size, s seq_len, w window. A
product of an m x n by an n x p matrix takes 2 m n p FLOPs forward and twice that backward.
"""

from __future__ import annotations

from tokenaxis.conventions.registry import convention


@convention(
    formula="6 * (attention_params + latent_norm_params + d_model * mlp_matrices * active_ff"
    " + padded_vocab_size * d_model) + 6 * attention_width * n_layers * seq_len",
    counts="query, key, value and output matrices with grouped queries and free head widths; dense, top-k and shared "
    "experts; logits over the padded vocabulary; the causal half of attention",
    leaves_out="embedding look-ups; the router; windows; norms outside latent attention; recomputation",
    source="NVIDIA/Megatron-LM megatron/training/training.py num_floating_point_operations @d98e8a6",
)
def megatron(
    attention_params: float,
    latent_norm_params: float,
    d_model: float,
    mlp_matrices: float,
    active_ff: float,
    padded_vocab_size: float,
    attention_width: float,
    n_layers: float,
    seq_len: float,
) -> float:
    """Megatron-LM's own count.

    6 L [d (q + 2 kv) + q d] + 6 L q s + 6 d ff (3 SwiGLU | 2) L_dense + 6 d ff_moe topk (3 | 2) L_moe + shared experts
    + 6 d V_padded, with q = h e and kv = k e; multi-head latent attention by its ranks.
    NVIDIA/Megatron-LM megatron/training/training.py, num_floating_point_operations @d98e8a6.
    """
    matrices = attention_params + latent_norm_params + d_model * mlp_matrices * active_ff + padded_vocab_size * d_model
    return 6 * matrices + 6 * attention_width * n_layers * seq_len


@convention(
    formula="6 * (block_matmul_params + head_params) + 12 * attention_width * attention_keys",
    counts="weights of linear layers, the head among them; attention within the window, no causal mask",
    leaves_out="embedding look-ups; the causal half; norms and scalars",
    source="karpathy/nanochat nanochat/gpt.py estimate_flops",
)
def nanochat(block_matmul_params: float, head_params: float, attention_width: float, attention_keys: float) -> float:
    """nanochat: 6 (weights of linear layers) + sum over layers of 12 h e min(w, s).

    karpathy/nanochat nanochat/gpt.py estimate_flops. For GPT-2 124M this is nanoGPT's "exact" count (its
    transformer_sizing.ipynb): 874,944,921,600 FLOPs for a sequence of 1,024.
    """
    return 6 * (block_matmul_params + head_params) + 12 * attention_width * attention_keys


@convention(
    formula="3 * (2 * vocab_size * d_model + n_layers * (6 * d_model * n_heads * head_dim + 4 * seq_len * n_heads"
    " * head_dim + 3 * n_heads * seq_len + 2 * n_heads * head_dim * d_model) + 2 * d_model * mlp_matrices * active_ff"
    " + 2 * d_model * vocab_size)",
    counts="the embedding as a product, the head; query, key, value and output matrices as if no heads were shared; "
    "the full attention square and its softmax; feed-forward layers",
    leaves_out="the causal half; the saving of grouped queries; the router; windows",
    source="Hoffmann 2022 (arXiv 2203.15556), appendix F",
)
def chinchilla(
    vocab_size: float,
    d_model: float,
    n_layers: float,
    n_heads: float,
    head_dim: float,
    seq_len: float,
    mlp_matrices: float,
    active_ff: float,
) -> float:
    """Chinchilla: 3 {2sVd + L [6sd(he) + 4s^2(he) + 3hs^2 + 2s(he)d + 4sd ff] + 2sdV} / s.

    Hoffmann 2022 (arXiv 2203.15556), appendix F, forward times 3. The paper's feed-forward layer has two matrices;
    gated ones and experts enter here by the width that a token passes. Its table A4 leaves both vocabulary terms out.
    """
    attention = 6 * d_model * n_heads * head_dim + 4 * seq_len * n_heads * head_dim
    softmax_and_output = 3 * n_heads * seq_len + 2 * n_heads * head_dim * d_model
    feed_forward = 2 * d_model * mlp_matrices * active_ff
    return 3 * (4 * vocab_size * d_model + n_layers * (attention + softmax_and_output) + feed_forward)


@convention(
    formula="72 * n_layers * d_model**2 + 12 * n_layers * d_model * seq_len",
    counts="blocks with a feed-forward part of 8 d^2 weights; the full attention square",
    leaves_out="the head and the tables; every other shape of block; the causal half",
    source="DeepSeek LLM 2024 (arXiv 2401.02954), equation 2: M",
)
def deepseek(n_layers: float, d_model: float, seq_len: float) -> float:
    """DeepSeek LLM's M, non-embedding FLOPs per token: 72 L d^2 + 12 L d s. arXiv 2401.02954, equation 2."""
    return 72 * n_layers * d_model**2 + 12 * n_layers * d_model * seq_len


@convention(
    formula="72 * n_layers * d_model**2",
    counts="blocks with a feed-forward part of 8 d^2 weights",
    leaves_out="attention scores; the head and the tables",
    source="DeepSeek LLM 2024 (arXiv 2401.02954), equation 2: 6 N1",
)
def deepseek_6n1(n_layers: float, d_model: float) -> float:
    """DeepSeek LLM's 6 N1 = 72 L d^2 (non-embedding parameters). arXiv 2401.02954, equation 2."""
    return 72 * n_layers * d_model**2


@convention(
    formula="72 * n_layers * d_model**2 + 6 * vocab_size * d_model",
    counts="blocks with a feed-forward part of 8 d^2 weights; the head",
    leaves_out="attention scores; embedding look-ups",
    source="DeepSeek LLM 2024 (arXiv 2401.02954), equation 2: 6 N2",
)
def deepseek_6n2(n_layers: float, d_model: float, vocab_size: float) -> float:
    """DeepSeek LLM's 6 N2 = 72 L d^2 + 6 V d (complete parameters). arXiv 2401.02954, equation 2."""
    return 72 * n_layers * d_model**2 + 6 * vocab_size * d_model


@convention(
    formula="6 * (block_matmul_params + head_params) + 12 * attention_width * attention_keys",
    counts="weights that a token passes in attention, feed-forward layers (router, top-k and shared experts) and head; "
    "attention within the window, no causal mask",
    leaves_out="embedding look-ups; the causal half; norms and biases (there, those inside attention count)",
    source="allenai/OLMo-core src/olmo_core/nn num_flops_per_token @004aeff, before it counted causal pairs",
)
def olmo(block_matmul_params: float, head_params: float, attention_width: float, attention_keys: float) -> float:
    """OLMo-core as most of its logs have it: 6 per parameter of a module, and 12 h e min(w, s) a layer.

    allenai/OLMo-core src/olmo_core/nn (attention, feed_forward, moe, lm_head), each module's num_flops_per_token.
    """
    return 6 * (block_matmul_params + head_params) + 12 * attention_width * attention_keys


@convention(
    formula="6 * (block_matmul_params + head_params) + 12 * attention_width * causal_keys",
    counts="weights that a token passes; the pairs of query and key that the causal mask and the window leave",
    leaves_out="embedding look-ups; masked pairs; block norms",
    source="allenai/OLMo-core src/olmo_core/nn/attention num_flops_per_token, since it counts causal pairs",
)
def olmo_causal(block_matmul_params: float, head_params: float, attention_width: float, causal_keys: float) -> float:
    """OLMo-core's newer count: as `olmo`, with exactly the pairs that the mask leaves.

    allenai/OLMo-core src/olmo_core/nn/attention/__init__.py (its own note: attention terms of older logs are about
    twice as large). A full layer's query sees (s + 1) / 2 keys on average.
    """
    return 6 * (block_matmul_params + head_params) + 12 * attention_width * causal_keys


@convention(
    formula="3 * (2 * d_model * mlp_matrices * active_ff + 2 * router_params + n_layers * (2 * d_model * (d_model"
    " + 2 * n_kv_heads * d_model / n_heads) + 2 * d_model**2 + 4 * seq_len * d_model + 3 * seq_len * n_heads)"
    " + 2 * d_model * vocab_size)",
    counts="gated layers, grouped queries, top-k and shared experts, the router; the full attention square with mask "
    "and softmax (3 s h); the head",
    leaves_out="embedding look-ups; the causal half; head widths other than d_model / n_heads; windows",
    source="stanford-crfm/levanter src/levanter/utils/flop_utils.py lm_flops_per_token @03c45fe, forward times 3",
)
def levanter(
    d_model: float,
    mlp_matrices: float,
    active_ff: float,
    router_params: float,
    n_layers: float,
    n_kv_heads: float,
    n_heads: float,
    seq_len: float,
    vocab_size: float,
) -> float:
    """Levanter: 3 x forward, the head width taken as d / h.

    stanford-crfm/levanter (now marin-community) src/levanter/utils/flop_utils.py, lm_flops_per_token @03c45fe.
    """
    feed_forward = 2 * d_model * mlp_matrices * active_ff + 2 * router_params
    projections = 2 * d_model * (d_model + 2 * n_kv_heads * d_model / n_heads) + 2 * d_model**2
    scores = 4 * seq_len * d_model + 3 * seq_len * n_heads
    return 3 * (feed_forward + n_layers * (projections + scores) + 2 * d_model * vocab_size)
