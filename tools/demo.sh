#!/usr/bin/env bash
# demo.sh BUILD: the main job on a fresh machine: two implementations of one tiny transformer dump their tensors
# into demo/, and tdbg looks at both.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1
rm -rf demo
"$build/examples/tiny_transformer" demo
show() {
    echo
    echo "\$ tdbg $*"
    "$build/tdbg" "$@"
}
for dump in demo/*; do
    show ls "$dump"
    show stats "$dump"
done
