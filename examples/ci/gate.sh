#!/bin/sh
# Evaluates predictions and holds them against a gate. Ends with 0 pass, 1 fail, 2 inconclusive, anything else: not asked.
#   gate.sh PREDICTIONS MODEL:VERSION DATASET [BASELINE]
# Writes gate.md, the text for a pull request, and gate.xml, the rules as test cases.
set -eu
predictions=$1 model=$2 dataset=$3 baseline=${4-} code=0
rm -f gate.md gate.xml  # of an earlier run
prevail evaluate "$predictions" --model "$model" --dataset "$dataset" --split "${SPLIT:-test}" \
  --gate "${GATE:-promotion}" ${baseline:+--baseline "$baseline"} --junit gate.xml --markdown gate.md || code=$?
if [ -n "${GITHUB_STEP_SUMMARY-}" ] && [ -f gate.md ]; then cat gate.md >> "$GITHUB_STEP_SUMMARY"; fi
exit "$code"
