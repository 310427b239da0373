#!/usr/bin/env bash
# fuzz-campaign.sh TARGET MINUTES: fuzzes one target for that many minutes of CPU time, then shows the totals.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/fuzz.py --jobs 1 --cpu-minutes "$2" "$1" || status=$?
tools/fuzz.py --report
exit "${status:-0}"
