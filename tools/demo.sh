#!/usr/bin/env bash
# demo.sh BUILD: the main job on a fresh machine: two implementations of one tiny transformer dump their tensors
# into demo/a and demo/b, and tdbg compares them: here, and in a browser until Ctrl-C.
#
# PORT is where (5000; 0: any that is free); DEMO_SERVE=0 leaves the browser out.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1
rm -rf demo
"$build/examples/tiny_transformer" demo

# 1 is an answer: the dumps differ, and they should.
show() {
    local word line="\$ tdbg"
    for word in "$@"; do
        [[ $word == *[\ \[]* ]] && word="'$word'" # as a shell wants it
        line+=" $word"
    done
    printf '\n%s\n' "$line"
    "$build/tdbg" "$@" || [ $? -eq 1 ]
}
show diff demo/a demo/b --only born
show stats demo/a:1_query.npy demo/b:1_query.safetensors
show show 'demo/a:1_query.npy[0, :2, :6]'
show show 'demo/b:1_query.safetensors[0, :2, 0, :6]'

[ "${DEMO_SERVE:-1}" = 0 ] && exit
echo
echo "\$ tdbg serve demo/a demo/b        (Ctrl-C ends it)"
exec "$build/tdbg" serve demo/a demo/b --port "${PORT:-5000}" --data demo/data
