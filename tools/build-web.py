#!/usr/bin/env python3
"""Bundles the page and writes it as C tables, so that the program carries it along.

    tools/build-web.py WEB WORK OUT.c DEPFILE HEADER [--required]     WEB: the folder with package.json
    tools/build-web.py --empty OUT.c HEADER                           no page in this build

WORK, in the build folder, gets what npm installs and links to the sources: the source tree stays clean. Packages
are installed again only when the lock file has changed. Where they cannot be installed (no network) the table is
empty, which the server says to whoever opens it; with --required that is an error. A fault of the sources is
always one. DEPFILE tells ninja what the bundle was made of.
"""
import hashlib
import json
import pathlib
import shutil
import subprocess
import sys

PER_LINE = 32
TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
         ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}


class NoPackages(Exception):
    pass


def link(source, target):
    if target.is_symlink():
        target.unlink()
    target.symlink_to(source.resolve())


def install(web, work):
    """A place to build the page: its packages, and links to its sources."""
    install_packages(web, work)
    for name in ("src", "tsconfig.json"):
        link(web / name, work / name)


def install_packages(source, work):
    """node_modules in `work`, as the lock file of `source` wants it."""
    work.mkdir(parents=True, exist_ok=True)
    lock, stamp = source / "package-lock.json", work / "node_modules" / ".lock-installed"
    if stamp.exists() and stamp.read_bytes() == lock.read_bytes():
        return
    for name in ("package.json", "package-lock.json", ".npmrc"):
        shutil.copy(source / name, work / name)
    try:
        done = subprocess.run(["npm", "ci"], cwd=work, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoPackages(str(error)) from None
    if done.returncode:
        raise NoPackages(done.stderr.strip())
    stamp.write_bytes(lock.read_bytes())


def bundle(work):
    """{asset path: bytes}, what the page begins with, and the sources of all. What it needs only later is in scripts of
    its own. Names tell the content, so that a browser need not ask again."""
    meta, out = work / "meta.json", work / "out"
    shutil.rmtree(out, ignore_errors=True)
    subprocess.run(["node_modules/.bin/esbuild", "app=src/main.tsx", "--bundle", "--splitting", "--minify", "--preserve-symlinks",
                    "--format=esm", "--target=es2022", "--jsx=automatic", "--jsx-import-source=preact", "--charset=utf8",
                    "--log-level=warning", "--entry-names=[name]-[hash]", f"--outdir={out.name}", f"--metafile={meta.name}"], cwd=work, check=True)
    made = json.loads(meta.read_text())
    inputs = [path for path in made["inputs"] if path.startswith("src/")]
    entry, = (path for path, output in made["outputs"].items() if output.get("entryPoint") == "src/main.tsx")
    begins = {"app.js": entry, "app.css": made["outputs"][entry]["cssBundle"],
              "first": [part["path"] for part in made["outputs"][entry]["imports"] if part["kind"] == "import-statement"]}
    return {f"/assets/{path.name}": path.read_bytes() for path in sorted(out.iterdir())}, begins, inputs


def index(web, begins):
    """The page, which asks for all that it begins with at once."""
    def address(path):
        return f"/assets/{pathlib.PurePath(path).name}"

    text = (web / "index.html").read_text()
    for name in ("app.js", "app.css"):
        text = text.replace(f"/assets/{name}", address(begins[name]))
    links = "".join(f'<link rel="modulepreload" href="{address(path)}">\n' for path in begins["first"])
    return text.replace("</head>", links + "</head>").encode()


def table(assets, header, lasting=()):
    parts = [f"/* Made by tools/build-web.py. */\n#include \"{header}\"\n\n#include <stddef.h>\n"]
    rows = []
    for number, (path, data) in enumerate(assets.items()):
        lines = [",".join(map(str, data[i:i + PER_LINE])) for i in range(0, len(data), PER_LINE)]
        parts.append(f"static const unsigned char bytes_{number}[] = {{\n" + ",\n".join(lines) + "};\n")
        etag = hashlib.sha256(data).hexdigest()[:16]
        rows.append(f'    {{"{path}", "{TYPES[pathlib.PurePath(path).suffix]}", bytes_{number}, {len(data)}, "\\"{etag}\\"", '
                    f'{str(path in lasting).lower()}}},')
    rows.append("    {NULL, NULL, NULL, 0, NULL, false},")
    return "\n".join(parts) + "\nconst struct td_asset td_assets[] = {\n" + "\n".join(rows) + "\n};\n"


def build(web, work, out, depfile, header, required):
    try:
        install(web, work)
    except NoPackages as error:
        if required:
            sys.exit(f"build-web.py: npm ci: {error}")
        print(f"build-web.py: npm cannot install the packages of the page; this build has none\n{error}", file=sys.stderr)
        out.write_text(table({}, header))
        depfile.write_text("")
        return
    bundled, begins, inputs = bundle(work)
    page = {"/index.html": index(web, begins), "/assets/icon.svg": (web / "icon.svg").read_bytes()}
    out.write_text(table({**page, **bundled}, header, bundled))
    sources = [*inputs, "index.html", "icon.svg", "package.json", "package-lock.json", "tsconfig.json"]
    depfile.write_text(f"{out}: " + " ".join(str((web / name).resolve()).replace(" ", "\\ ") for name in sources) + "\n")


def main(args):
    if args[0] == "--empty":
        pathlib.Path(args[1]).write_text(table({}, args[2]))
        return
    web, work, out, depfile = map(pathlib.Path, args[:4])
    try:
        build(web, work, out, depfile, args[4], "--required" in args)
    except subprocess.CalledProcessError:
        sys.exit(1)  # esbuild has said why


if __name__ == "__main__":
    main(sys.argv[1:])
