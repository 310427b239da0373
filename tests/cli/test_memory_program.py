"""`tdbg memory -- PROGRAM`: what a program holds, watched by the allocator shim."""
import json
import os
import re
import shutil
import signal
import subprocess
import time

import pytest
from built import BINARY, PATIENCE, ROOT


@pytest.fixture(scope="session")
def program(tmp_path_factory, data):
    binary = tmp_path_factory.mktemp("memory") / "memory_program"
    subprocess.run(["cc", "-g", "-O1", "-o", binary, data / "memory_program.c", "-lpthread"], check=True)
    return binary


def watch(tdbg, tmp_path, *args, status=0, options=()):
    """The report of a run, and what the program wrote."""
    report = tmp_path / "report.json"
    done = tdbg.run("memory", "--json", "-o", report, *options, "--", *args)
    assert status is None or done.returncode == status, done.stderr
    assert done.stderr == ""
    return json.loads(report.read_text())["memory"], done.stdout


@pytest.mark.skipif(not shutil.which("c++"), reason="no C++ compiler")
@pytest.mark.parametrize("how", ["-O0", "-O2"])
def test_templates_of_the_cxx_library_are_not_blamed(tdbg, tmp_path, how):
    source = tmp_path / "program.cpp"
    source.write_text('''#include <map>
#include <vector>
struct Cache { std::map<int, std::vector<double>> rows; void put(int i) { rows[i].resize(1000); } };
static Cache *cache = new Cache;
int main() { for (int i = 0; i < 64; i++) cache->put(i); }''')
    subprocess.run(["c++", "-g", how, "-o", tmp_path / "program", source], check=True)
    (story,), _ = watch(tdbg, tmp_path, tmp_path / "program", status=None)
    largest = story["peak"]["owners"][0]
    assert largest["bytes"] >= 64 * 8000
    assert re.match(r"(Cache::put\(int\)|put) \(program\.cpp:3\)", largest["owner"]) and "std::" not in largest["owner"]
    assert any("allocate" in frame for frame in largest["stack"])


def names(rows):
    return [row["owner"] for row in rows]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_peak_is_that_of_a_reference_counter(tdbg, tmp_path, program, seed):
    """The bar is 2 %; but for the few blocks of the C library itself there is no difference at all."""
    (story,), out = watch(tdbg, tmp_path, program, "reference", seed, status=None)
    reference = int(out)
    assert reference > 5_000_000
    assert abs(story["peak"]["bytes"] - reference) <= 0.002 * reference
    assert story["held"]["bytes"] < 5000
    assert max(point["bytes"] for point in story["timeline"]) == story["peak"]["bytes"]
    assert sum(row["bytes"] for row in story["peak"]["owners"]) <= story["peak"]["bytes"]


def test_leak_is_found_located_and_told_from_a_cache(tdbg, tmp_path, program):
    (story,), _ = watch(tdbg, tmp_path, program, "leak", status=1)
    assert story["held"]["leaks"] == 1
    leak, held = story["held"]["owners"][:2]
    assert re.fullmatch(r"wrapper \(memory_program\.c:\d+\) < lose \(memory_program\.c:\d+\) < leak \(memory_program\.c:\d+\)", leak["owner"])
    assert (leak["blocks"], leak["bytes"], leak["grows"]) == (1000, 700_000, True)
    assert leak["bytes_per_second"] > 0
    assert "fill_cache" in held["owner"]
    assert (held["blocks"], held["bytes"], held["grows"]) == (50, 1_000_000, False)
    assert not any("work" in name for name in names(story["held"]["owners"]))
    assert [frame.split(" ")[0] for frame in leak["stack"]] == ["wrapper", "lose", "leak", "main"]


@pytest.mark.parametrize("size", [200, 1000, 30000])
def test_fragmentation_is_found_and_located(tdbg, tmp_path, program, size):
    (story,), _ = watch(tdbg, tmp_path, program, "fragment", size, status=1)
    peak, worst, end = story["fragmentation"]
    assert [view["moment"] for view in story["fragmentation"]] == ["peak", "worst", "end"]
    assert worst["fragmented"] and not peak["fragmented"] and not end["fragmented"]
    assert 0.4 < worst["free"] / worst["span"] < 0.7
    assert worst["largest_hole"] < 3 * size
    assert "make_kept" in worst["pinned_by"][0]["owner"]
    assert worst["pinned_by"][0]["bytes"] > 0.9 * worst["free"]
    assert story["held"]["leaks"] == 0


def test_honest_program_has_no_findings(tdbg, tmp_path, program):
    (story,), _ = watch(tdbg, tmp_path, program, "threads", 1)
    assert story["held"]["leaks"] == 0
    assert not any(view["fragmented"] for view in story["fragmentation"])


@pytest.mark.parametrize("threads", [2, 16])
def test_threads_that_free_each_others_blocks(tdbg, tmp_path, program, threads):
    """Were events out of order, a block would be freed before it is there: unknown releases, blocks left over."""
    (story,), _ = watch(tdbg, tmp_path, program, "threads", threads, status=None)
    assert story["unknown_releases"] == 0
    assert story["allocations"] >= 20000 * threads
    assert not any("thread (" in name for name in names(story["held"]["owners"]))


def test_fork_gives_each_process_its_own_account(tdbg, tmp_path, program):
    stories, _ = watch(tdbg, tmp_path, program, "fork")
    child, parent = stories
    assert child["title"].startswith("memory_program (pid ")
    assert 1_000_000 <= child["peak"]["bytes"] < 1_010_000
    assert 300_000 <= parent["peak"]["bytes"] < 310_000
    assert parent["held"]["bytes"] < 5000


def test_exec_starts_a_new_account(tdbg, tmp_path, program):
    stories, out = watch(tdbg, tmp_path, program, "exec", program, "reference", 1, status=None)
    assert abs(stories[0]["peak"]["bytes"] - int(out)) <= 0.002 * int(out)
    assert len(stories) == 2


def test_a_shell_and_its_children(tdbg, tmp_path, program):
    stories, out = watch(tdbg, tmp_path, "sh", "-c", f"echo one; {program} leak; echo two >&1", status=1)
    assert out == "one\ntwo\n"
    assert stories[0]["title"].startswith("memory_program")
    assert len(stories) == 2


@pytest.mark.parametrize("status", [0, 3, 200])
def test_exit_status_is_passed_on(program, status):
    done = subprocess.run([BINARY, "memory", "-q", "--", program, "status", str(status)], capture_output=True)
    assert done.returncode == status


def test_input_and_output_are_the_programs(tdbg, tmp_path):
    report = tmp_path / "report"
    done = subprocess.run([BINARY, "memory", "-o", report, "--", "cat"], input=b"a\0b\n", capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"a\0b\n", b"")
    assert report.read_text().startswith("cat (pid ")


@pytest.mark.native
def test_killed_program(tmp_path, program):
    report = tmp_path / "report.json"
    process = subprocess.Popen([BINARY, "memory", "--json", "-o", report, "--", program, "hold", "5000000"], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"holding\n"
    children = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=True).stdout.split()
    os.kill(int(children[0]), signal.SIGKILL)
    assert process.wait(20 * PATIENCE) == 128 + signal.SIGKILL
    (story,) = json.loads(report.read_text())["memory"]
    assert story["peak"]["bytes"] >= 5_000_000
    assert story["note"] == "killed by signal 9 (Killed): what it held then is no leak"
    assert "hold (memory_program.c" in story["held"]["owners"][0]["owner"]
    assert story["held"]["leaks"] == 0


def await_file(path):
    """What is in the file, once there is something."""
    for _ in range(int(200 * PATIENCE)):
        if path.exists() and path.read_text():
            return path.read_text()
        time.sleep(0.1)
    raise AssertionError(f"no {path}")


@pytest.mark.native
def test_program_outlives_a_killed_tdbg(tmp_path, program):
    """Nobody empties the ring any more: the program must notice and go on alone."""
    script = f"echo > {tmp_path}/begun; while [ ! -e {tmp_path}/alone ]; do sleep 0.1; done; {program} million; echo survived > {tmp_path}/mark"
    process = subprocess.Popen([BINARY, "memory", "--", "sh", "-c", script], stdout=subprocess.DEVNULL)
    await_file(tmp_path / "begun")
    process.kill()
    process.wait()
    (tmp_path / "alone").touch()
    assert await_file(tmp_path / "mark") == "survived\n"


@pytest.mark.slow
def test_million_allocations_are_all_seen(tdbg, tmp_path, program):
    (story,), _ = watch(tdbg, tmp_path, program, "million")
    assert 1_000_000 <= story["allocations"] <= 1_000_010
    assert story["unknown_releases"] == 0
    assert story["peak"]["bytes"] < 64 * 520 + 5000
    assert len(story["timeline"]) <= 256


def test_named_snapshots_and_their_difference(tdbg, tmp_path, program):
    (story,), _ = watch(tdbg, tmp_path, program, "snapshots", options=["--snapshot", "one", "--snapshot", "two"])
    assert [mark["name"] for mark in story["snapshots"]] == ["one", "two", "three"]
    one, two, three = (mark["bytes"] for mark in story["snapshots"])
    assert two - one == 50000 and three < one
    (row,) = story["difference"]["owners"]
    assert (row["bytes"], row["blocks"], row["from_bytes"]) == (50000, 1, 0)
    assert "snapshots (memory_program.c" in row["owner"]


def test_difference_of_the_first_and_last_snapshot_is_the_default(tdbg, tmp_path, program):
    (story,), _ = watch(tdbg, tmp_path, program, "snapshots")
    assert (story["difference"]["from"], story["difference"]["to"]) == ("one", "three")
    assert [row["bytes"] for row in story["difference"]["owners"]] == [-1000]


def test_peak_and_end_are_snapshots_too(tdbg, tmp_path, program):
    (story,), _ = watch(tdbg, tmp_path, program, "leak", status=1, options=["--snapshot", "peak", "--snapshot", "end"])
    assert story["difference"]["from"] == "peak"
    assert not any("lose" in name for name in names(story["difference"]["owners"]))


def test_text_report(tdbg, program):
    out = tdbg.text("memory", "--", program, "leak", status=1, env={"COLUMNS": "100"})
    for part in ["peak: ", "still held at the end: ", "address space", "leak: 683.6 KiB in 1000 blocks", "      at lose (memory_program.c:"]:
        assert part in out
    assert max(map(len, out.splitlines())) <= 100
    quiet = tdbg.text("memory", "-q", "--", program, "leak", status=1)
    assert "peak" not in quiet and "leak: " in quiet


def test_trouble(tdbg, tmp_path, program):
    assert tdbg.fails("memory", "--", "/no/such/program") == "tdbg: /no/such/program: cannot start: No such file or directory"
    assert tdbg.fails("memory") == "tdbg: memory: no PATH and no program given (see 'tdbg memory --help')"
    assert tdbg.fails("memory", "--") == "tdbg: memory: no program after -- (see 'tdbg memory --help')"
    assert tdbg.fails("memory", "a", "--", "b") == "tdbg: memory: a PATH and a program are too much (see 'tdbg memory --help')"
    assert "given twice" in tdbg.fails("memory", "--snapshot", "x", "--", program, "status")
    assert tdbg.fails("memory", "--snapshot", "x", "--snapshot", "y", "--", program, "status") == "tdbg: no memory snapshot 'x'"


def test_the_example_of_the_documentation(tdbg, tmp_path):
    """docs/memory.md shows a program and its report; times differ from run to run, the rest must not."""
    page = (ROOT / "docs" / "memory.md").read_text()
    source = re.search(r"^    #include.*?^    }\n(?=\n    \$ cc)", page, re.M | re.S).group(0)
    (tmp_path / "engine.c").write_text(re.sub(r"^    ", "", source, flags=re.M))
    subprocess.run(["gcc", "-g", "-O2", "-o", "engine", "engine.c"], cwd=tmp_path, check=True)
    out = tdbg.text("memory", "--top", "4", "--", "./engine", status=1, cwd=tmp_path, env={"COLUMNS": "96"})
    shown = page.split("    $ tdbg memory --top 4 -- ./engine\n")[1].split("\n- **peak**")[0]
    telling = re.compile(r"^(?:\d.*  need \(|leak: |\s+at |\s+\d+ blocks, )")
    expected = [line for line in re.sub(r"^    ", "", shown, flags=re.M).splitlines() if telling.match(line)]
    assert len(expected) >= 10

    def steady(line):
        """Without the rate, and without the middle of the stack that is cut to make room for it."""
        return re.sub(r"grows [\d.]+ \w+/s +(need \().*(< main)", r"\1…\2", line)

    printed = [steady(line) for line in out.splitlines()]
    for line in expected:
        assert steady(line) in printed
