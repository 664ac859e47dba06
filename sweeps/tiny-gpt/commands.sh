#!/usr/bin/env bash
# Reproduces the logs of this sweep, one run after the other, on one core; run it from the repository root:
#     bash sweeps/tiny-gpt/commands.sh [OUT_DIR]
# Needs torch (pip install '.[torch]'). The runs that are killed on purpose are followed by "|| true".
set -euo pipefail
out=${1:-sweeps/tiny-gpt}
scratch=$(mktemp -d)  # checkpoints and whatever else is not a log
trap 'rm -r "$scratch"' EXIT
train() { nice -n 5 "${PYTHON:-python}" scripts/train_tiny_gpt.py --tokens 8000000 "$@"; }

# Four batch sizes: peak lr goes with the square root of the batch.
train --out "$out/gpt_2Kbs.csv" --batch-tokens 2000 --lr 3e-3 --warmup-steps 160 --val-every 50 --seed 1
train --out "$out/gpt_4Kbs.csv" --batch-tokens 4000 --lr 4.2e-3 --warmup-steps 100 --val-every 50 --seed 1
train --out "$out/gpt_8Kbs.csv" --batch-tokens 8000 --lr 6e-3 --warmup-steps 64 --val-every 25 --seed 1
train --out "$out/gpt_16Kbs.csv" --batch-tokens 16000 --lr 8.5e-3 --warmup-steps 40 --val-every 25 --seed 1

# The batch grows during the run, at a constant lr.
train --out "$out/gpt_growing.csv" --batch-schedule 0:2000 1600000:4000 4000000:8000 \
  --lr 4.2e-3 --warmup-steps 160 --val-every 50 --seed 2

# Killed after step 1180, resumed from the checkpoint before step 1000: steps 1000 to 1180 are in the log twice.
train --out "$out/gpt_resumed_4Kbs.csv" --batch-tokens 4000 --lr 4.2e-3 --warmup-steps 100 --val-every 50 --seed 3 \
  --checkpoint "$scratch/resumed.pt" --checkpoint-every 500 --stop-after-step 1180 || true
train --out "$out/gpt_resumed_4Kbs.csv" --batch-tokens 4000 --lr 4.2e-3 --warmup-steps 100 --val-every 50 --seed 3 \
  --resume "$scratch/resumed.pt"

# train_loss every 10th step only, val_loss every 50th.
train --out "$out/gpt_sparse_8Kbs.csv" --batch-tokens 8000 --lr 6e-3 --warmup-steps 64 --log-every 10 --val-every 50 \
  --seed 4

# Stopped (killed) early, after 600 of 4000 steps.
train --out "$out/gpt_short_2Kbs.csv" --batch-tokens 2000 --lr 3e-3 --warmup-steps 160 --val-every 10 --seed 5 \
  --stop-after-step 599 || true

# Cosine decay of the lr; the only log with a tokens column.
train --out "$out/gpt_cosine_8Kbs.csv" --batch-tokens 8000 --lr 6e-3 --warmup-steps 64 --schedule cosine \
  --val-every 25 --log-tokens --seed 6

# A run killed after its first step, its log cut off two bytes into the first row ("0,"): no loss is left in it.
train --out "$scratch/aborted.csv" --batch-tokens 4000 --seed 7 --stop-after-step 0 || true
head -c $(($(head -n 1 "$scratch/aborted.csv" | wc -c) + 2)) "$scratch/aborted.csv" > "$out/gpt_broken.csv"
