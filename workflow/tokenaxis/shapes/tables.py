"""Embedding tables, the vocabulary head, and the totals that leave them out."""

from __future__ import annotations

from tokenaxis.facts import FactStore
from tokenaxis.shapes.rule import Rule


def _tied(facts: FactStore) -> bool:
    return facts.value("tied_embeddings") is True


def _looked_up_positions(facts: FactStore) -> bool:
    return bool(facts.value("position_embedding") == "learned")


def _counted_with_tied_table(facts: FactStore) -> bool:
    """The given count of embedding parameters holds a tied token table too (trainmeter 0.0.2 counted so)."""
    if facts.value("tied_embeddings") is not True:
        return False
    rows = facts.value("padded_vocab_size") or facts.value("vocab_size")
    known = rows is not None and "d_model" in facts and "n_embedding_params" in facts
    return known and facts.value("n_embedding_params") >= rows * facts.value("d_model")


def _counted_without(facts: FactStore) -> bool:
    return "n_embedding_params" in facts and not _counted_with_tied_table(facts)


def _not_counted(facts: FactStore) -> bool:
    return "n_embedding_params" not in facts


def _untied_or_unsaid(facts: FactStore) -> bool:
    return facts.value("tied_embeddings") is not True


def _head_unsaid(facts: FactStore) -> bool:
    """Nothing tells what the vocabulary head is made of."""
    return "tied_embeddings" not in facts or "d_model" not in facts or _no_vocabulary(facts)


def _no_vocabulary(facts: FactStore) -> bool:
    return "vocab_size" not in facts and "padded_vocab_size" not in facts


RULES: tuple[Rule, ...] = (
    Rule("padded_vocab_size", ("vocab_size",), "vocab_size", lambda vocab: vocab, note="no padding is stated"),
    Rule("head_params", ("padded_vocab_size", "d_model"), "padded_vocab_size * d_model", lambda vocab, d: vocab * d),
    Rule(
        "n_position_params",
        ("max_positions", "d_model"),
        "max_positions * d_model",
        lambda rows, d_model: rows * d_model,
        when=lambda facts: _looked_up_positions(facts) and "max_positions" in facts,
    ),
    Rule(
        "n_position_params",
        ("seq_len", "d_model"),
        "seq_len * d_model",
        lambda rows, d_model: rows * d_model,
        when=lambda facts: _looked_up_positions(facts) and "max_positions" not in facts,
        assumes="the position table has one row per token of a sequence",
    ),
    Rule(
        "n_position_params",
        ("position_embedding",),
        "0",
        lambda kind: 0,
        when=lambda facts: not _looked_up_positions(facts),
        note="positions are not learned",
    ),
    Rule(
        "lookup_params",
        ("n_embedding_params", "head_params"),
        "n_embedding_params - head_params",
        lambda tables, head: tables - head,
        when=_counted_with_tied_table,
        note="the tied token table serves the head's product and is no mere look-up",
    ),
    Rule("lookup_params", ("n_embedding_params",), "n_embedding_params", lambda tables: tables, when=_counted_without),
    Rule(
        "lookup_params",
        ("n_position_params",),
        "n_position_params",
        lambda positions: positions,
        when=lambda facts: _not_counted(facts) and _tied(facts),
        note="the tied token table serves the head's product and is no mere look-up",
    ),
    Rule(
        "lookup_params",
        ("tied_embeddings", "head_params", "n_position_params"),
        "head_params + n_position_params",
        lambda tied, table, positions: table + positions,
        when=lambda facts: _not_counted(facts) and _untied_or_unsaid(facts),
        note="an untied token table is as large as the head",
    ),
    Rule("n_embedding_params", ("lookup_params",), "lookup_params", lambda lookup: lookup, when=_not_counted),
    Rule(
        "table_params",
        ("lookup_params", "head_params"),
        "lookup_params + head_params",
        lambda lookup, head: lookup + head,
        when=_tied,
        note="all embedding tables, the tied token table among them",
    ),
    Rule(
        "table_params",
        ("lookup_params",),
        "lookup_params",
        lambda lookup: lookup,
        when=_untied_or_unsaid,
        note="all embedding tables; none is known to be tied",
    ),
    Rule(
        "table_params",
        ("lookup_params",),
        "lookup_params",
        lambda lookup: lookup,
        when=lambda facts: _tied(facts) and _no_vocabulary(facts),
        assumes="the size of the tied token table is unknown, and it is left out",
    ),
    Rule(
        "n_params_nonembedding",
        ("n_params", "table_params", "head_params"),
        "n_params - table_params - head_params",
        lambda total, tables, head: total - tables - head,
        when=lambda facts: not _head_unsaid(facts) and facts.value("tied_embeddings") is False,
        note="without the vocabulary head",
    ),
    Rule(
        "n_params_nonembedding",
        ("n_params", "table_params"),
        "n_params - table_params",
        lambda total, tables: total - tables,
        when=lambda facts: not _head_unsaid(facts) and _tied(facts),
    ),
    Rule(
        "n_params_nonembedding",
        ("n_params", "n_embedding_params"),
        "n_params - n_embedding_params",
        lambda total, tables: total - tables,
        when=_head_unsaid,
        note="an untied head, if there is one, is still in it",
    ),
    Rule(
        "n_params",
        ("n_params_nonembedding", "table_params", "head_params"),
        "n_params_nonembedding + table_params + head_params",
        lambda body, tables, head: body + tables + head,
        when=lambda facts: "n_params_nonembedding" in facts and facts.value("tied_embeddings") is False,
    ),
    Rule(
        "n_params",
        ("n_params_nonembedding", "table_params"),
        "n_params_nonembedding + table_params",
        lambda body, tables: body + tables,
        when=lambda facts: "n_params_nonembedding" in facts and _tied(facts),
    ),
)
