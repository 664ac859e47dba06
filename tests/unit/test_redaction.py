"""Secrets, hosts, users and directories leave a command line; what only sounds like a secret stays."""

from __future__ import annotations

import pytest

from tokenaxis.redaction import HIDDEN, HOST, USER, is_secret, redact_command, redact_line, redact_text

SECRET = "S3cr3t"

# each holds SECRET once; the first eleven are those that trainmeter 0.0.7 let through
LEAKS = [
    ["-p", SECRET],
    ["--auth", SECRET],
    ["--bearer", SECRET],
    [f"--pat={SECRET}"],
    [f"wandb.api_key={SECRET}"],
    [f"+secret={SECRET}"],
    [f"https://u:{SECRET}@h"],
    ["--env", f"TOKEN={SECRET}"],
    ["--password", f"-{SECRET}"],
    ["--keys", "1", SECRET],
    ["--auth", "-p", SECRET],
    ["--token", SECRET],
    [f"--hf-token={SECRET}"],
    ["--apiKey", SECRET],
    [f"++logger.wandb.apiKey={SECRET}"],
    [f"WANDB_API_KEY={SECRET}"],
    ["-e", f"HF_TOKEN={SECRET}"],
    [f"-p{SECRET}"],
    [f"-p={SECRET}"],
    ["--passwords", "a", "b", SECRET],
    ["--tokens", SECRET],
    ["--db", f"postgres://{SECRET}@db/x"],
    ["-H", f"Authorization: Bearer {SECRET}"],
    ["-H", f"X: y, authorization: {SECRET}"],
    ["--config", f'{{"api_key": "{SECRET}", "lr": 1}}'],
    ["--url", f"https://h/x?step=1&token={SECRET}&y=2"],
    [f"--overrides=a=1,db.password={SECRET}"],
    ["--note", f"bearer {SECRET}{SECRET}"],
    ["--aws-secret-access-key", SECRET],
    ["--x", f"hf_{SECRET}AAAAAAAAAAAAAAAA"],
    ["--x", f"ghp_{SECRET}AAAAAAAAAAAAAAAA"],
    [f"password:={SECRET}"],
    ["--pin", SECRET],
]


@pytest.mark.parametrize("arguments", LEAKS, ids=" ".join)
def test_secrets_are_hidden(arguments: list[str]) -> None:
    shown = redact_command(["train.py", *arguments, "--lr", "3e-4"])
    assert not any(SECRET in argument for argument in shown)
    assert any(HIDDEN in argument for argument in shown)
    assert shown[0] == "train.py"
    assert shown[-2:] == ["--lr", "3e-4"], "what follows a secret stays"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--monkey", "banana"],
        ["--tokens", "512"],
        ["--token-budget", "5"],
        ["--max-tokens", "1e9"],
        ["--max-tokens=10B"],
        ["--tokens", "512", "1024"],
        ["train.max_tokens=524_288"],
        ["--tokens-per-step", "524288"],
        ["--pad-token", "<pad>"],
        ["--eos_token=</s>"],
        ["--text-key", "content"],
        ["--keyboard", "qwerty"],
        ["--compass", "north"],
        ["--passes", "3"],
        ["--author", "anyone"],
        ["--tokenizer", "gpt2"],
        ["--use-auth-cache", "--steps", "3"],
        ["--revision", "0123456789abcdef0123456789abcdef01234567"],
        ["--lr=-3e-4"],
        ["--config", "configs/run.yaml"],
        ["-print"],
        ["--schedule", "0:8,60000:16"],
    ],
    ids=" ".join,
)
def test_what_only_sounds_like_a_secret_stays(arguments: list[str]) -> None:
    assert redact_command(["train.py", *arguments]) == ["train.py", *arguments]


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (["/home/user/venv/bin/python3", "/srv/x/train.py"], ["python3", "train.py"]),
        (["--data=/mnt/disk 1/tokens.bin"], ["--data=tokens.bin"]),
        (["--out", "~/runs/a"], ["--out", "a"]),
        (["--out", "C:\\Users\\me\\runs"], ["--out", "runs"]),
        (["--paths", "a:/data/x/b.bin"], ["--paths", "a:b.bin"]),
        (["see", "file:///home/me/x.log"], ["see", "x.log"]),
        (["https://h/a/b/c.json"], ["https://h/a/b/c.json"]),
        (["--master_addr", "node-0"], ["--master_addr", HOST]),
        (["--master_addr=node-0"], [f"--master_addr={HOST}"]),
        (["--rdzv_endpoint=node-0:29400"], [f"--rdzv_endpoint={HOST}"]),
        (["--user", "me"], ["--user", USER]),
        (["--copy-to", "me@node-0:/data/x"], ["--copy-to", f"{USER}@{HOST}:x"]),
        (["wandb", "login", "0123456789abcdef0123456789abcdef01234567"], ["wandb", "login", HIDDEN]),
        (["https://u:p@host/x"], [f"https://{HIDDEN}@host/x"]),
        (["--keys", "1", "x", "--lr", "1"], ["--keys", HIDDEN, HIDDEN, "--lr", "1"]),
    ],
)
def test_paths_hosts_and_users_are_replaced(given: list[str], shown: list[str]) -> None:
    assert redact_command(given) == shown


def test_a_command_in_one_string_is_split_like_a_shell_does() -> None:
    assert (
        redact_line("python '/a b/train.py' --token 'x y' --steps 3") == f"python train.py --token {HIDDEN} --steps 3"
    )
    assert SECRET not in redact_line(f"python train.py --token {SECRET} 'unbalanced")


def test_text_keeps_its_words_and_loses_paths_and_secrets() -> None:
    text = "read /home/user/lm/config.json: n_layers = d_model / 64, tokens/step; password=abc in https://x:y@h/z"
    assert redact_text(text) == (
        f"read config.json: n_layers = d_model / 64, tokens/step; password={HIDDEN} in https://{HIDDEN}@h/z"
    )


def test_redacting_twice_changes_nothing() -> None:
    for arguments in LEAKS:
        once = redact_command(arguments)
        assert redact_command(once) == once


def test_a_name_is_judged_by_its_last_word() -> None:
    assert is_secret("--wandb.apiKey")
    assert not is_secret("key_size")
    assert not is_secret("--")
    assert not is_secret("tokens", "1_000")
    assert is_secret("tokens", "abc")


@pytest.mark.parametrize(
    "unit", ["/", "/a", "a=", "a@", "a.", "a\\", "'a'", "a:", "a-", "a+", "a", "~", "a://", "bearer "]
)
def test_no_text_takes_quadratic_time(unit: str) -> None:
    import time

    text = unit * (30_000 // len(unit))
    start = time.process_time()
    redact_text(text)
    redact_command([text, f"--x={text}"])
    assert time.process_time() - start < 1  # 0.01 s where every word is tried once, 4 to 24 s where it was not
