#!/usr/bin/env bash
# demo.sh BUILD: the main job on a fresh machine: two implementations of one tiny transformer dump their tensors
# into demo/a and demo/b, and tdbg looks at both.
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
show ls demo/b
show stats demo/a:1_query.npy demo/b:1_query.safetensors
show show 'demo/a:1_query.npy[0, 0, :6]'
show show 'demo/b:1_query.safetensors[0, 0, 0, :6]'
