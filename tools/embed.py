#!/usr/bin/env python3
"""Text files as C constants, so that the program carries them along.

    tools/embed.py OUT.c HEADER NAME=FILE...

Each FILE becomes `const char NAME[]`, NUL-terminated, and `const char NAME_sha256[]`: the digest of its bytes
in base64, as a Content-Security-Policy wants it. HEADER declares them.
"""
import base64
import hashlib
import pathlib
import sys

PER_LINE = 24


def define(name, data):
    # Numbers rather than a string literal: C promises no more than 4095 characters of one.
    numbers = [str(byte) for byte in data + b"\0"]
    lines = [", ".join(numbers[i:i + PER_LINE]) for i in range(0, len(numbers), PER_LINE)]
    digest = base64.b64encode(hashlib.sha256(data).digest()).decode()
    return f"const char {name}[] = {{\n" + ",\n".join(lines) + f"}};\nconst char {name}_sha256[] = \"{digest}\";\n"


def main():
    out, header, *entries = sys.argv[1:]
    parts = [f"/* Made by tools/embed.py. */\n#include \"{header}\"\n"]
    for entry in entries:
        name, _, path = entry.partition("=")
        data = pathlib.Path(path).read_bytes()
        if max(data, default=0) > 127:
            sys.exit(f"embed.py: {path}: only ASCII, so that every char fits")
        parts.append(define(name, data))
    pathlib.Path(out).write_text("\n".join(parts))


if __name__ == "__main__":
    main()
