#!/usr/bin/env bash
# deps.sh GROUP…: makes sure the Debian packages of the groups (build, test, conformance, bench) are installed.
#
# The only list of system packages in the project. Installs what is missing as root or through `sudo -n`;
# where neither is possible it prints the command to run and fails. With everything there it is one
# dpkg-query, so that `make` can afford to ask each time. Other systems have other names: there we say what
# is needed and go on.
set -euo pipefail

build=(make gcc libc6-dev meson ninja-build pkg-config
    libarchive-dev libisal-dev liblzma-dev zlib1g-dev libjansson-dev
    libprotobuf-c-dev protobuf-c-compiler libonnx-dev libpcre2-dev
    libsqlite3-dev libmicrohttpd-dev nettle-dev libdw-dev libedit-dev libcairo2-dev)
test=(clang clang-format llvm libclang-rt-14-dev libcmocka-dev binutils isal xz-utils zstd bzip2
    python3 python3-pytest python3-numpy python3-torch python3-onnx python3-yaml python3-jsonschema chromium)
conformance=(python3 python3-venv)
bench=(wrk)
# Commands that make the page of `tdbg serve`. They often come from elsewhere than Debian, and its packages may
# conflict with those; a build without them lacks the page and nothing else.
declare -A page=([node]=nodejs [npm]=npm)

wanted=()
for group in "$@"; do
    case $group in
    build) wanted+=("${build[@]}") ;;
    test) wanted+=("${test[@]}") ;;
    conformance) wanted+=("${conformance[@]}") ;;
    bench) wanted+=("${bench[@]}") ;;
    *) echo "deps.sh: no group '$group'" >&2 && exit 2 ;;
    esac
done

if ! command -v dpkg-query >/dev/null; then
    echo "deps.sh: not a Debian system; what is needed, by its Debian names: ${wanted[*]}" >&2
    exit 0
fi

present=$(dpkg-query -W -f '${binary:Package} ${db:Status-Status}\n' "${wanted[@]}" 2>/dev/null |
    sed -n 's/^\([^: ]*\)\(:[^ ]*\)\? installed$/\1/p') || true
missing=()
for package in "${wanted[@]}"; do
    grep -qxF "$package" <<<"$present" || missing+=("$package")
done
optional=()
for command in "${!page[@]}"; do
    [[ " $* " != *" build "* ]] || command -v "$command" >/dev/null || optional+=("${page[$command]}")
done
[ $((${#missing[@]} + ${#optional[@]})) -eq 0 ] && exit 0

install=(env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends)
if [ "$(id -u)" -eq 0 ]; then
    sudo=()
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    sudo=(sudo -n)
elif [ ${#missing[@]} -eq 0 ]; then
    echo "deps.sh: without ${optional[*]} tdbg serve has no page" >&2
    exit 0
else
    echo "tdbg needs packages that are not installed, and cannot install them. Run:" >&2
    echo "    sudo apt-get install ${missing[*]} ${optional[*]}" >&2
    exit 1
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT

install_all() {
    [ $# -eq 0 ] && return
    echo "installing $*"
    { "${sudo[@]}" "${install[@]}" "$@" ||
        { "${sudo[@]}" apt-get update -q && "${sudo[@]}" "${install[@]}" "$@"; }; } >"$log" 2>&1
}
if ! install_all "${missing[@]}"; then
    tail -20 "$log" >&2
    exit 1
fi
install_all "${optional[@]}" || echo "deps.sh: ${optional[*]} cannot be installed: tdbg serve has no page" >&2
