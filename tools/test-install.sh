#!/usr/bin/env bash
# test-install.sh PREFIX: installs there, then builds and runs a program against what was installed, as a user would.
set -euo pipefail
cd "$(dirname "$0")/.."
prefix=$(realpath "$1")
make --no-print-directory install PREFIX="$prefix" >/dev/null

pc=$(dirname "$(find "$prefix" -name tdbg.pc)")
export PKG_CONFIG_PATH=$pc LD_LIBRARY_PATH=${pc%/pkgconfig}
cc -std=c11 -Wall -Wextra -Werror examples/stats.c -o "$prefix/stats" $(pkg-config --cflags --libs tdbg)
"$prefix/bin/tdbg" --version

# A .npy of four float32 written by hand: the program and the tool must agree on its mean.
{
    printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }"
    printf '\000\000\200\077\000\000\000\100\000\000\100\100\000\000\300\100'
} >"$prefix/four.npy"
said=$("$prefix/stats" "$prefix/four.npy")
[ "$said" = "four.npy float32 mean 3" ] || { echo "stats said: $said" && exit 1; }

stray=$(nm -D --defined-only "$LD_LIBRARY_PATH/libtdbg.so" | awk '{print $NF}' | grep -v '^tdbg_' || true)
[ -z "$stray" ] || { echo "libtdbg.so exports $stray" && exit 1; }
