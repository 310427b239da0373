"""Statistics on the threads of torch: the same bits as on one, and only where torch itself uses several."""
import ctypes
import os
import signal
import threading

import pytest
import runs
import tdbg
import torch
from tdbg import threads
from tdbg._library import OpenMP, library

STATISTICS = "SELECT name, count, finite, nan, inf, zeros, mean, std, min, max, absmax, norm FROM tensor ORDER BY id"
BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
REGION = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)
PART = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int)


@pytest.fixture
def regions(monkeypatch):
    """The parallel regions that recording begins; torch has two threads. On a busy machine they may be few: where OpenMP's
    threads do not come in time, they are not asked for a while."""
    begun, before = [], torch.get_num_threads()
    begin = REGION(threads.OPENMP.GOMP_parallel)

    @REGION
    def counted(*arguments):
        begun.append(arguments)
        begin(*arguments)

    spied = OpenMP.from_buffer_copy(threads.OPENMP)
    spied.GOMP_parallel = ctypes.cast(counted, ctypes.c_void_p)
    monkeypatch.setattr(threads, "OPENMP", spied)
    monkeypatch.setenv("TDBG_THREADS", "2")
    torch.set_num_threads(2)
    yield begun
    torch.set_num_threads(before)


class Model(torch.nn.Module):
    """Outputs of all sorts: odd sizes, turned, expanded, with values that are not finite."""

    def __init__(self):
        super().__init__()
        self.wide, self.kinds = torch.nn.Linear(61, 1013), Kinds()

    def forward(self, x):
        return self.kinds(self.wide(x)).sum()


class Kinds(torch.nn.Module):
    def forward(self, x):
        holes = x.masked_fill(x > 2, float("inf")).masked_fill(x < -2, float("nan"))
        self.others = [x.detach().t(), x.detach()[:, ::2], holes.detach(), x.detach()[:, :1].expand(-1, 500), x.detach() + 1e6,
                       *(x.detach().to(dtype) for dtype in (torch.float64, torch.bfloat16, torch.int32, torch.bool))]
        return x * 2


def record(run, **options):
    """The statistics of a forward and a backward pass."""
    torch.manual_seed(7)
    model = Model()
    with tdbg.record(model, run, stats_only=True, **options) as recording:
        model(torch.randn(307, 61)).backward()
        for i, value in enumerate(model.kinds.others):
            recording.tensor(f"other.{i}", value)
    return runs.query(run, STATISTICS)


def test_statistics_are_the_same_bits(tmp_path, regions, monkeypatch):
    shared = record(tmp_path / "shared")
    assert regions and len(shared) > 12
    regions.clear()
    monkeypatch.setenv("TDBG_THREADS", "1")
    assert record(tmp_path / "alone") == shared
    assert not regions


def test_one_thread_of_torch_is_no_other_thread_of_ours(tmp_path, regions):
    torch.set_num_threads(1)
    assert len(record(tmp_path / "run")) > 12
    assert not regions


def test_the_number_of_threads_may_change_while_recording(tmp_path, regions):
    x = torch.randn(100000)
    with tdbg.record(None, tmp_path / "run", stats_only=True) as recording:
        for count in (2, 1, 3, 2):
            torch.set_num_threads(count)
            recording.tensor(f"x{count}", x)
    assert regions
    assert len({row[1:] for row in runs.query(tmp_path / "run", STATISTICS)}) == 1


def test_a_thread_that_has_computed_nothing_yet_uses_as_many_as_torch_would(tmp_path, regions):
    torch.set_num_threads(1)
    x = torch.randn(100000)
    with tdbg.record(None, tmp_path / "run", stats_only=True) as recording:
        thread = threading.Thread(target=recording.tensor, args=("x", x))
        thread.start()
        thread.join()
    assert not regions


def test_threads_that_record_at_the_same_time(tmp_path, regions):
    x, together = torch.randn(4, 200000), threading.Barrier(4)

    def work(i):
        together.wait()
        for _ in range(20):
            recording.tensor(f"x{i}", x[i])
        together.wait()

    with tdbg.record(None, tmp_path / "run", stats_only=True) as recording:
        workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    assert regions
    rows = runs.query(tmp_path / "run", STATISTICS)
    assert len({(name.partition("#")[0], *rest) for name, *rest in rows}) == 4


def test_values_are_copied_without_them(tmp_path, regions):
    with tdbg.record(None, tmp_path / "run") as recording:
        recording.tensor("x", torch.randn(100000))
    assert not regions


def test_a_forked_child_waits_for_no_thread(tmp_path, regions):
    """OpenMP's threads are not in the child; who began a region there would wait for them for good."""
    x = torch.randn(100000)
    with tdbg.record(None, tmp_path / "run", stats_only=True) as recording:
        recording.tensor("x", x)
        handle = recording.run
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            recording.run = handle  # what the module forgets at a fork: the library must do without, too
            recording.write(b"y", x)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    assert len(regions) == 1
    assert [row[0] for row in runs.query(tmp_path / "run", STATISTICS)] == ["x"]


def test_within_a_parallel_region_each_thread_does_its_own(regions):
    done = []
    part = PART(lambda context, index: done.append((threading.get_ident(), index)))
    share = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, PART, ctypes.c_void_p)(("tdbg_openmp_parallel", library))

    @BODY
    def body(_):
        share(ctypes.addressof(threads.OPENMP), 5, part, None)

    REGION(threads.OPENMP.GOMP_parallel)(ctypes.cast(body, ctypes.c_void_p), None, 2, 0)
    assert len(regions) == 1
    assert sorted(done) == sorted((thread, i) for thread in {t for t, _ in done} for i in range(5)) and len(done) == 10


def test_another_parallel_backend_lends_nothing(monkeypatch):
    monkeypatch.setattr(torch.__config__, "parallel_info", lambda: "ATen parallel backend: native thread pool\n")
    assert threads.openmp() is None
    monkeypatch.setattr(threads, "OPENMP", None)
    assert threads.lent() == {}
