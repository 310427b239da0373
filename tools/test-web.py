#!/usr/bin/env python3
"""Tests of the page. Writes JUnit files for tools/test.py.

    tools/test-web.py unit BUILD         types, and the logic that needs no browser
    tools/test-web.py browser BUILD [NAME…]   the page in chromium, through BUILD/tdbg; NAME: tests/browser/NAME.test.mjs,
                                              or =TITLE of a single test
    tools/test-web.py screenshots BUILD       takes the pictures of the README anew (docs/images)
    tools/test-web.py timing BUILD            how long a person waits, for bench/bench_page.py

BUILD is a build folder with the page in it. What npm installs goes there, never into the source tree.
"""
import importlib.util
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")

spec = importlib.util.spec_from_file_location("build_web", ROOT / "tools" / "build-web.py")
build_web = importlib.util.module_from_spec(spec)
spec.loader.exec_module(build_web)


def node_test(junit, files, env=None, cwd=ROOT, titles=()):
    """Both for people and as JUnit; links are followed as if the files lay in `cwd`, where the packages are. `titles`:
    of the tests to run, if not all."""
    command = ["node", "--preserve-symlinks", "--preserve-symlinks-main", "--test", "--test-reporter=spec", "--test-reporter-destination=stdout",
               "--test-reporter=junit", f"--test-reporter-destination={junit}",
               *(f"--test-name-pattern=^{re.escape(title)}$" for title in titles), *map(str, files)]
    return subprocess.run(command, cwd=cwd, env={**os.environ, **(env or {})}).returncode


def unit(build, _names):
    work = build / "src" / "serve" / "web"
    build_web.install(ROOT / "web", work)
    build_web.link(ROOT / "web" / "test", work / "test")
    subprocess.run(["node_modules/.bin/tsc", "-p", "."], cwd=work, check=True)
    tests = sorted(path.name for path in (ROOT / "web" / "test").glob("*.test.js"))
    subprocess.run(["node_modules/.bin/esbuild", *(f"test/{name}" for name in tests), "--bundle", "--platform=node", "--format=esm",
                    "--preserve-symlinks", "--log-level=warning", "--outdir=out-test", "--out-extension:.js=.mjs"], cwd=work, check=True)
    return node_test(build / "web.junit.xml", [f"out-test/{name[:-3]}.mjs" for name in tests], cwd=work)


def prepare_browser(build):
    """The folder in which what drives the browser runs, the files there, and their environment."""
    if not os.access(CHROMIUM, os.X_OK):
        sys.exit(f"test-web.py: no {CHROMIUM}: tools/deps.sh test installs it")
    work, tests = build / "browser", ROOT / "tests" / "browser"
    build_web.install_packages(tests, work)
    files = sorted(tests.glob("*.mjs"))
    for path in files:
        build_web.link(path, work / path.name)
    env = {"TDBG": str(build / "tdbg"), "TDBG_EXAMPLE": str(build / "examples" / "tiny_transformer"), "CHROMIUM": CHROMIUM,
           "TDBG_ROOT": str(ROOT)}
    return work, [path.name for path in files], env


def browser(build, names):
    work, files, env = prepare_browser(build)
    titles = [name[1:] for name in names if name.startswith("=")]
    names = [name for name in names if not name.startswith("=")]
    chosen = [name for name in files if name.endswith(".test.mjs") and (not names or name.split(".")[0] in names)]
    return node_test(build / "browser.junit.xml", chosen, env, cwd=work, titles=titles)


def drive(build, script, arguments):
    """Runs a script of tests/browser that is no test."""
    work, _, env = prepare_browser(build)
    command = ["node", "--preserve-symlinks", "--preserve-symlinks-main", script, *map(str, arguments)]
    return subprocess.run(command, cwd=work, env={**os.environ, **env}).returncode


def screenshots(build, _names):
    images = ROOT / "docs" / "images"
    images.mkdir(exist_ok=True)
    return drive(build, "screenshots.mjs", [images])


def timing(build, _names):
    return drive(build, "timing.mjs", [])


def main(args):
    commands = {"unit": unit, "browser": browser, "screenshots": screenshots, "timing": timing}
    if len(args) < 2 or args[0] not in commands:
        sys.exit(__doc__)
    if not (pathlib.Path(args[1]) / "build.ninja").exists():
        sys.exit(f"test-web.py: {args[1]} is no build folder")
    try:
        return commands[args[0]](pathlib.Path(args[1]).resolve(), args[2:])
    except build_web.NoPackages as error:
        sys.exit(f"test-web.py: npm ci: {error}")
    except subprocess.CalledProcessError as error:
        return error.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
