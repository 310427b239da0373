#!/usr/bin/env python3
"""Runs the parts of the test suite and adds up what they say.

    tools/test.py [PART…]      default: all of `make test`
    tools/test.py --list

Every part runs, whatever became of the one before. Counts come from the JUnit files that the test runners write; a
build, the lint, a fuzz target or an installation counts as one test. A part that does not get as far as counting has
one failure.

The machines that run this are shared, and now and then one stands still for seconds. So what failed runs once more
by itself; what passes then is counted as passed and named as unstable: it wants mending all the same.

At the end every failed and every unstable test is named. The last line is `N passed, N failed`; exit status 1 when any
failed.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
SYSTEM_PYTHON = "/usr/bin/python3"  # Debian's torch, numpy and onnx belong to it
VENV = ROOT / ".venv-conformance"
FUZZ_SECONDS = 15
PATIENCE = 10  # times longer a test may take under a sanitizer
JOBS = str(os.cpu_count() or 1)
MOST_AGAIN = 5  # tests that fail together have a cause: they do not run once more
RUNNER = ("", "the test runner itself")

remarks = []  # what failed and what is unstable, for the end


class Failed(Exception):
    """A step that did not do its work; the message is its output."""


def command(*args, env=None, timeout=2700):
    """Output of a program that must succeed."""
    try:
        done = subprocess.run([str(a) for a in args], cwd=ROOT, env={**os.environ, **(env or {})}, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              errors="replace", timeout=timeout)
    except subprocess.TimeoutExpired as late:
        raise Failed(f"{args[0]}: not done after {late.timeout:.0f} s") from None
    except OSError as error:
        raise Failed(f"{args[0]}: {error.strerror}") from None
    if done.returncode:
        raise Failed(done.stdout)
    return done.stdout


def outcomes(junit):
    """How many tests of a JUnit file passed, and which failed, as (class, name)."""
    passed, failed = 0, []
    if not junit.exists():
        return passed, failed
    for case in xml.etree.ElementTree.parse(junit).iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            failed.append((case.get("classname", ""), case.get("name", "")))
        elif case.find("skipped") is None:
            passed += 1
    return passed, failed


def run_tests(junit, args, env):
    """Runs a test runner that writes `junit`: (passed, failed tests). A runner in trouble of its own is a failed test."""
    junit = ROOT / junit
    junit.unlink(missing_ok=True)
    trouble = []
    try:
        command(*args, env=env)
    except Failed as failure:
        print(failure)
        trouble = [RUNNER]
    passed, failed = outcomes(junit)
    return passed, failed or trouble


def counted(junit, args, again=None, env=None):
    """(passed, failed) of a test runner. `again` makes of failed tests the command that runs them alone."""
    passed, failed = run_tests(junit, args, env)
    still = failed
    if again and 0 < len(failed) <= MOST_AGAIN and RUNNER not in failed:
        print(f"once more: {', '.join(name for _, name in failed)}", flush=True)
        mended, still = run_tests(junit, again(failed), env)
        if mended + len(still) != len(failed):  # it did not run just these
            still = failed
    remarks.extend(f"{'failed' if test in still else 'unstable'}: {' '.join(test)}" for test in failed)
    return passed + len(failed) - len(still), len(still)


def build(folder, compiler, *options):
    """Configures (once) and builds `folder`."""
    if not (ROOT / folder / "build.ninja").exists():
        command("meson", "setup", folder, *options, env={"CC": compiler})
    command("ninja", "-C", folder, "-j", JOBS, "--quiet")
    return folder


def meson_tests(folder, patience=2, env=None):
    return counted(f"{folder}/meson-logs/testlog.junit.xml",
                   ["meson", "test", "-C", folder, "--print-errorlogs", "--timeout-multiplier", patience], env=env)


def pytest(folder, *args, python=SYSTEM_PYTHON, env=None):
    junit = f"{folder}/pytest.junit.xml"
    runner = [python, "-m", "pytest", "-c", "tests/pytest.ini", "-q", f"--junitxml={junit}"]
    return counted(junit, [*runner, *args],
                   lambda failed: [*runner, *(f"tests/{module.replace('.', '/')}.py::{name}" for module, name in failed)],
                   env={"TDBG": str(ROOT / folder / "tdbg"), "PYTHONDONTWRITEBYTECODE": "1", **(env or {})})


def total(*results):
    return tuple(map(sum, zip(*results)))


def leak_options(folder):
    """LeakSanitizer stops the process to look at it; where ptrace is forbidden it must be off."""
    done = subprocess.run([ROOT / folder / "tdbg", "--version"], capture_output=True, text=True)
    if "LeakSanitizer has encountered a fatal error" not in done.stderr:
        return {}
    print("ptrace is forbidden here: leaks are not looked for")
    return {"ASAN_OPTIONS": "detect_leaks=0"}


def sanitized_tests(folder, sanitizers, *select, env=None):
    # Shared libraries leave the sanitizer's symbols to the program, hence b_lundef=false.
    build(folder, "clang", f"-Db_sanitize={sanitizers}", "-Db_lundef=false", "-Dwerror=true", "-Dweb=disabled")
    env = {**(env or {}), **leak_options(folder), "TDBG_TEST_PATIENCE": str(PATIENCE)}
    return total((1, 0), meson_tests(folder, PATIENCE, env),
                 pytest(folder, "tests/cli", "tests/server", "-m", "not native", *select, env=env))


# --- The parts. Each returns (passed, failed). ---------------------------------------------------------------------

def part_gcc():
    """gcc, warnings are errors: unit, kernel, CLI and server tests"""
    folder = build("build-gcc", "gcc", "-Dwerror=true")
    return total((1, 0), meson_tests(folder), pytest(folder, "tests/cli", "tests/server"))


def part_clang():
    """clang, warnings are errors: unit and kernel tests"""
    return total((1, 0), meson_tests(build("build-clang", "clang", "-Dwerror=true", "-Dweb=disabled")))


def part_python():
    """the Python module over the library, with Debian's torch, or with that of the Python that TDBG_TORCH_PYTHON names"""
    return pytest(build("build-gcc", "gcc", "-Dwerror=true"), "tests/python",
                  python=os.environ.get("TDBG_TORCH_PYTHON", SYSTEM_PYTHON))


def part_web():
    """the page: types, and the logic that needs no browser"""
    folder = build("build-gcc", "gcc", "-Dwerror=true")
    return total((1, 0), counted(f"{folder}/web.junit.xml", ["tools/test-web.py", "unit", folder]))


def part_browser():
    """the page in chromium, through the real server"""
    folder = build("build-gcc", "gcc", "-Dwerror=true")
    runner = ["tools/test-web.py", "browser", folder]
    return counted(f"{folder}/browser.junit.xml", runner, lambda failed: [*runner, *(f"={name}" for _, name in failed)])


def part_lint():
    """layers, habits, sizes, format, exported symbols"""
    build("build-gcc", "gcc", "-Dwerror=true")
    print(command("tools/lint.py", "build-gcc"), end="")
    return 1, 0


def part_asan():
    """AddressSanitizer and UBSan: unit, kernel, CLI and server tests"""
    return sanitized_tests("build-asan", "address,undefined")


def part_ubsan():
    """UBSan alone: unit, kernel, CLI and server tests"""
    return sanitized_tests("build-ubsan", "undefined")


def part_tsan():
    """ThreadSanitizer: unit and kernel tests, statistics on two threads and the recorder through the CLI, the server"""
    return sanitized_tests("build-tsan", "thread", "-k", "stats or server or record", "-m", "not native and not slow",
                           env={"TDBG_THREADS": "2"})


def part_fuzz():
    """each fuzz target for a short while"""
    try:
        output = command("tools/fuzz.py", "--seconds", FUZZ_SECONDS, "--jobs", JOBS)
    except Failed as failure:
        output = str(failure)
    print(output, end="")
    result = re.search(r"^fuzz: (\d+) targets clean, (\d+) with findings$", output, re.M)
    return (int(result.group(1)), int(result.group(2))) if result else (0, 1)


def part_install():
    """make install, then a program built against it with pkg-config"""
    with tempfile.TemporaryDirectory() as prefix:
        print(command("tools/test-install.sh", prefix), end="")
    return 1, 0


def part_demo():
    """make run, and what it serves"""
    print(command("make", "--no-print-directory", "run", env={"DEMO_SERVE": "0"}), end="")
    demo = subprocess.Popen(["tools/demo.sh", "build"], cwd=ROOT, env={**os.environ, "PORT": "0"}, text=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    try:
        url = next((line.strip() for line in demo.stdout if line.startswith("http://")), None)
        if not url:
            raise Failed("the demo serves nothing")
        page = urllib.request.Request(url, headers={"Accept": "text/html"})
        with urllib.request.urlopen(page, timeout=60) as answer:
            print(f"{url}: {answer.status}")
    except OSError as error:
        raise Failed(f"the demo does not answer: {error}") from None
    finally:
        demo.terminate()
        status = demo.wait(60)
    return (2, 0) if status == 0 else (1, 1)


def part_conformance():
    """against the formats' own libraries from the package registry, and transformers' models against ports of ours"""
    requirements = [ROOT / "tests/conformance" / name for name in ("requirements.txt", "requirements-no-deps.txt")]
    wanted = "".join(path.read_text() for path in requirements)
    stamp = VENV / "requirements.txt"
    if not stamp.exists() or stamp.read_text() != wanted:
        shutil.rmtree(VENV, ignore_errors=True)
        command(SYSTEM_PYTHON, "-m", "venv", VENV)
        install = [VENV / "bin/pip", "install", "--quiet", "--disable-pip-version-check"]
        command(*install, "-r", requirements[0])
        command(*install, "--no-deps", "-r", requirements[1])
        stamp.write_text(wanted)
    build("build", "cc")
    return pytest("build", "tests/conformance", "tests/ports", python=VENV / "bin/python")


PARTS = {name[len("part_"):]: function for name, function in list(globals().items()) if name.startswith("part_")}
DEFAULT = ["gcc", "clang", "lint", "python", "web", "browser", "asan", "tsan", "fuzz", "install", "demo"]


def main(names):
    if names == ["--list"]:
        for name, part in PARTS.items():
            print(f"{name:12} {part.__doc__}")
        return 0
    unknown = set(names) - set(PARTS)
    if unknown:
        sys.exit(f"test.py: no part {' '.join(sorted(unknown))}; there are {' '.join(PARTS)}")
    results = []
    for name in names or DEFAULT:
        print(f"== {name}: {PARTS[name].__doc__}", flush=True)
        start = time.monotonic()
        try:
            passed, failed = PARTS[name]()
        except Failed as failure:
            print(failure)
            remarks.append(f"failed: {name}")
            passed, failed = 0, 1
        print(f"-- {name}: {passed} passed, {failed} failed, {time.monotonic() - start:.0f} s", flush=True)
        results.append((passed, failed))
    print(*remarks, sep="\n", end="\n" if remarks else "")
    passed, failed = total(*results)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
