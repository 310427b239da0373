"""The numbers of `tdbg stats` against torch in float64, for what only torch writes: bfloat16, views, sparse and
quantised tensors."""
import math

import pytest

torch = pytest.importorskip("torch")


def stats(tdbg, tmp_path, tensor, **options):
    torch.save(tensor, tmp_path / "a.pth")
    return tdbg.json("stats", tmp_path / "a.pth", **options)["tensors"][0]


def check(got, dense):
    """`dense`: what torch makes of the tensor."""
    x = dense.abs() if dense.is_complex() else dense
    x = x.to(torch.float64).flatten()
    finite = x[torch.isfinite(x)]
    want = {
        "mean": finite.mean().item(),
        "std": finite.std().item(),
        "min": finite.min().item(),
        "max": finite.max().item(),
        "absmax": finite.abs().max().item(),
        "norm": finite.norm().item(),
    }
    assert got["count"] == x.numel()
    assert got["finite"] == finite.numel()
    assert got["nan"] == torch.isnan(x).sum().item()
    assert got["inf"] == torch.isinf(x).sum().item()
    assert got["zeros"] == (finite == 0).sum().item()
    for field, value in want.items():
        scale = max(abs(value), want["absmax"] / math.sqrt(finite.numel()) if field == "mean" else 0)
        assert abs(float(got[field]) - value) <= 1e-12 * scale, (field, got[field], value)


def randn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("offset", [0, 50])
def test_floats(tdbg, tmp_path, dtype, offset):
    x = (randn(333, 77) + offset).to(dtype)
    check(stats(tdbg, tmp_path, x), x)
    x[::5, 3:9] = -math.inf
    x[7] = math.nan
    check(stats(tdbg, tmp_path, x), x)


def test_every_bfloat16(tdbg, tmp_path):
    """All 65536 codes; the values span so much that only those of one size count in sum and spread."""
    x = torch.arange(-32768, 32768, dtype=torch.int32).to(torch.int16).view(torch.bfloat16)
    got = {cpu: stats(tdbg, tmp_path, x, env={"TDBG_CPU": cpu}) for cpu in ("scalar", "vector")}
    assert got["scalar"] == got["vector"] == stats(tdbg, tmp_path, x)
    check(got["scalar"], x)


@pytest.mark.parametrize("view", [
    lambda x: x.t(), lambda x: x[::3], lambda x: x[:, 5:60:2], lambda x: x.view(20, 30, 64).permute(2, 0, 1),
    lambda x: x.view(2, 10, 30, 64).permute(0, 2, 1, 3), lambda x: x[:, None, :].expand(-1, 11, -1),
    lambda x: x.as_strided((100, 50), (3, 1)),
], ids=["transposed", "rows", "columns", "permuted", "heads", "expanded", "overlapping"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_views(tdbg, tmp_path, view, dtype):
    x = view(randn(600, 64).to(dtype))
    check(stats(tdbg, tmp_path, x), x)


def test_an_expanded_tensor_is_answered_at_once(tdbg, tmp_path):
    x = randn(5).expand(10**6, 10**6, 5)
    got = stats(tdbg, tmp_path, x, timeout=10)
    assert got["count"] == 5 * 10**12
    assert got["mean"] == pytest.approx(x[0, 0].double().mean().item(), rel=1e-12)
    assert got["std"] == pytest.approx(x[0, 0].double().std(unbiased=False).item(), rel=1e-12)


def sparse_coo():
    index = torch.tensor([[0, 7, 3, 7, 9], [2, 5, 5, 5, 0]])
    return torch.sparse_coo_tensor(index, torch.tensor([1.5, 2.5, -3.5, 0.25, 8.0]), (10, 6))


@pytest.mark.parametrize("make", [
    sparse_coo,
    lambda: sparse_coo().coalesce(),
    lambda: torch.sparse_coo_tensor(torch.tensor([[3, 1, 3]]), randn(3, 4), (6, 4)),
    lambda: torch.sparse_coo_tensor(torch.tensor([[3, 1]]), randn(2, 4), (6, 4)).coalesce(),
    lambda: randn(30, 20).relu().to_sparse(),
    lambda: randn(30, 20).relu().to_sparse_csr(),
    lambda: torch.sparse_coo_tensor(torch.tensor([[0, 0]]), torch.tensor([256.0, 1.0]), (3,)).to(torch.bfloat16),
], ids=["repeated", "coalesced", "hybrid repeated", "hybrid", "many", "csr", "bfloat16 repeated"])
def test_sparse(tdbg, tmp_path, make):
    x = make()
    dense = x.to_dense()
    check(stats(tdbg, tmp_path, x), dense)
    shown = tdbg.json("show", "--count", x.numel(), tmp_path / "a.pth")["values"]
    assert torch.equal(torch.tensor(shown, dtype=dense.dtype).flatten(), dense.flatten())


@pytest.mark.parametrize("make", [
    lambda x: torch.quantize_per_tensor(x, 0.037, 5, torch.quint8),
    lambda x: torch.quantize_per_tensor(x, 0.037, -3, torch.qint8),
    lambda x: torch.quantize_per_tensor(x, 1e-6, 17, torch.qint32),
    lambda x: torch.quantize_per_channel(x, torch.linspace(0.01, 0.1, 40), torch.arange(40), 0, torch.qint8),
    lambda x: torch.quantize_per_channel(x, torch.linspace(0.01, 0.1, 30), torch.arange(30), 1, torch.quint8),
], ids=["quint8", "qint8", "qint32", "rows", "columns"])
def test_quantised(tdbg, tmp_path, make):
    x = make(randn(40, 30))
    check(stats(tdbg, tmp_path, x), x.dequantize())


def test_complex(tdbg, tmp_path):
    x = torch.complex(randn(50, 20).double(), randn(50, 20, seed=1).double())
    check(stats(tdbg, tmp_path, x), x)
    check(stats(tdbg, tmp_path, x.to(torch.complex64)), x.to(torch.complex64).to(torch.complex128))
