#!/bin/sh
# Evaluates predictions and holds them against a gate. Ends with 0 pass, 1 fail, 2 inconclusive, anything else: not asked.
#   gate.sh PREDICTIONS MODEL:VERSION DATASET [BASELINE]
set -eu
predictions=$1 model=$2 dataset=$3 baseline=${4-}
exec prevail evaluate "$predictions" --model "$model" --dataset "$dataset" --split test \
  --gate "${GATE:-promotion}" ${baseline:+--baseline "$baseline"} \
  --junit gate.xml --markdown "${GITHUB_STEP_SUMMARY:-gate.md}"
