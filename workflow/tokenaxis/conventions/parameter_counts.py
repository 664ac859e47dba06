"""Conventions that start from a parameter count: 6 FLOPs per parameter and token, and perhaps attention.

6 = 2 (a multiplication and an addition) x 3 (forward, and backward for inputs and for weights).
Symbols: N n_params, E embedding tables, L n_layers, d d_model, s seq_len, h heads, e head width.
"""

from __future__ import annotations

from tokenaxis.conventions.registry import convention


@convention(
    formula="6 * (n_params - lookup_params - inactive_params) + 12 * attention_width * attention_keys",
    counts="weights that a token passes (top-k experts, router, shared experts, head; a tied table as the head); the "
    "full attention square, within the window where there is one",
    leaves_out="embedding look-ups; the causal half; recomputation",
    source="pytorch/torchtitan torchtitan/models/utils.py quadratic_attention_flops_per_token, "
    "get_nparams_and_active_nparams @b5bcd76",
)
def titan(
    n_params: float, lookup_params: float, inactive_params: float, attention_width: float, attention_keys: float
) -> float:
    """TorchTitan: 6(N - E) + 6 L h (e_qk + e_v) s, which is 6(N - E) + 12 L d s where h e = d.

    pytorch/torchtitan torchtitan/models/utils.py @b5bcd76. N counts routed experts by their active share, E is what is
    only looked up (a tied token table stays in N). Causal sparsity is not counted, sliding windows are (since PR 4300).
    Equal to trainmeter's `titan`, 6(N-E) + 12LdT, where h e = d, nothing is tied and there are no windows or experts.
    """
    return 6 * (n_params - lookup_params - inactive_params) + 12 * attention_width * attention_keys


@convention(
    formula="6 * (n_params - n_embedding_params) + 6 * n_layers * d_model * seq_len",
    counts="all parameters but embedding tables; the causal half of attention",
    leaves_out="embedding look-ups; head widths other than d_model / n_heads, windows; all experts are counted",
    source="trainmeter 0.0.2 flops.py, `megatron`",
)
def megatron_simple(
    n_params: float, n_embedding_params: float, n_layers: float, d_model: float, seq_len: float
) -> float:
    """The seed's short form of Megatron: 6(N - E) + 6 L d s. trainmeter 0.0.2 flops.py calls it `megatron`.

    E is the number of embedding parameters as stated. Causal attention is halved. No knowledge of grouped queries,
    windows or experts.
    """
    return 6 * (n_params - n_embedding_params) + 6 * n_layers * d_model * seq_len


@convention(
    formula="6 * (n_params - table_params)",
    counts="all parameters outside embedding tables, all experts; padding tokens",
    leaves_out="attention scores; embedding tables, and with them a tied head",
    source="huggingface/transformers Trainer.floating_point_ops 5.24.0 (total_flos)",
)
def hf(n_params: float, table_params: float) -> float:
    """Hugging Face Trainer's total_flos: 6 (N - tables) per token, attention not counted.

    huggingface/transformers 5.24.0, Trainer.floating_point_ops -> num_parameters(exclude_embeddings=True). A tied head
    is dropped with its table. Equal to trainmeter's `hf`, 6(N-E), where no table is known to be tied.
    """
    return 6 * (n_params - table_params)


@convention(
    formula="6 * n_params + 12 * n_layers * d_model * seq_len",
    counts="all parameters, embedding tables as if they were matrix products; the full attention square",
    leaves_out="the causal half; head widths other than d_model / n_heads, windows; all experts are counted",
    source="trainmeter 0.0.2 flops.py, `all_params`",
)
def all_params(n_params: float, n_layers: float, d_model: float, seq_len: float) -> float:
    """The seed's upper end: 6 N + 12 L d s, every table counted. trainmeter 0.0.2 flops.py, `all_params`."""
    return 6 * n_params + 12 * n_layers * d_model * seq_len


@convention(
    formula="6 * (n_params - n_position_params) + 12 * attention_width * n_layers * seq_len",
    counts="all parameters but learned positions, the token table as if it were a matrix product; the full attention "
    "square",
    leaves_out="the position table; the causal half; windows; all experts are counted",
    source="karpathy/nanoGPT model.py estimate_mfu @0011cd4; PaLM (arXiv 2204.02311) appendix B",
)
def nanogpt(
    n_params: float, n_position_params: float, attention_width: float, n_layers: float, seq_len: float
) -> float:
    """nanoGPT and PaLM: 6 N + 12 L h e s, N without the position table.

    karpathy/nanoGPT model.py estimate_mfu, after PaLM (Chowdhery 2022, arXiv 2204.02311), appendix B. GPT-2 124M
    without biases: 875,062,886,400 FLOPs for a sequence of 1,024 (nanoGPT transformer_sizing.ipynb).
    """
    return 6 * (n_params - n_position_params) + 12 * attention_width * n_layers * seq_len


@convention(
    formula="6 * n_params_nonembedding",
    counts="parameters outside tables and head",
    leaves_out="attention scores; embedding tables; the head",
    source="Kaplan 2020 (arXiv 2001.08361), section 2.1: C = 6N",
)
def kaplan(n_params_nonembedding: float) -> float:
    """Kaplan's C = 6 N, N without vocabulary and position tables. Kaplan 2020 (arXiv 2001.08361), section 2.1."""
    return 6 * n_params_nonembedding


@convention(
    formula="6 * n_params_nonembedding + 6 * n_layers * seq_len * attention_width",
    counts="parameters outside tables and head; masked attention",
    leaves_out="embedding tables; the head",
    source="Kaplan 2020 (arXiv 2001.08361), table 1: C_forward = 2N + 2 n_layer n_ctx d_attn, times 3",
)
def kaplan_context(n_params_nonembedding: float, n_layers: float, seq_len: float, attention_width: float) -> float:
    """Kaplan with the context term: 3 (2N + 2 L s d_attn). Kaplan 2020 (arXiv 2001.08361), table 1."""
    return 6 * n_params_nonembedding + 6 * n_layers * seq_len * attention_width


@convention(
    formula="6 * n_params - 2 * lookup_params + 12 * n_layers * d_model * seq_len",
    counts="forward all parameters but look-up tables, backward all parameters; the full attention square",
    leaves_out="the causal half; the forward look-up",
    source="allenai/OLMo olmo/model.py num_fwd_flops + num_bck_flops (logged as throughput/total_training_Gflops)",
)
def olmo_ladder(n_params: float, lookup_params: float, n_layers: float, d_model: float, seq_len: float) -> float:
    """The first OLMo trainer: 2 (N - E) forward, 4 N backward, and 12 L d s.

    allenai/OLMo olmo/model.py, num_fwd_flops and num_bck_flops; checked against the logs of allenai/OLMo-ladder: its
    190M model (N 267,424,512 with an untied table of 100,352 rows, L 12, d 768, s 4,096) logs 1,903,391,232 FLOPs per
    token.
    """
    return 6 * n_params - 2 * lookup_params + 12 * n_layers * d_model * seq_len
