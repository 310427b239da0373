#!/bin/sh
# The name under which programs load a shared library: tools/soname.sh FILE.so
name=$(readelf -d "$1" | sed -n 's/.*(SONAME).*\[\(.*\)\].*/\1/p')
[ -n "$name" ] || { echo "soname.sh: $1 has no soname" >&2; exit 1; }
echo "$name"
