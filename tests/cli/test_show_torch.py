"""Slices of tensors that have no strides, and of torch's strided ones, against torch."""
import random

import numpy as np
import pytest

torch = pytest.importorskip("torch")


def random_slice(rng, shape):
    items = []
    for size in shape[: rng.randint(1, len(shape))]:
        if rng.random() < 0.3:
            items.append(str(rng.randint(-size, size - 1)))
        else:
            ends = [rng.choice(["", rng.randint(-size, size)]) for _ in range(2)]
            items.append(f"{ends[0]}:{ends[1]}:{rng.choice([1, 2, 3, -1, -2])}")
    return ", ".join(items)


@pytest.mark.filterwarnings("ignore")
def test_slices_of_every_encoding(tdbg, tmp_path):
    torch.manual_seed(1)
    x = torch.randn(6, 7, 8)
    scales = torch.rand(7) * 0.1 + 0.01
    tensors = {
        "per_tensor": torch.quantize_per_tensor(x, 0.05, 3, torch.quint8),
        "per_channel": torch.quantize_per_channel(x, scales, torch.zeros(7, dtype=torch.int64), 1, torch.qint8),
        "coo": torch.sparse_coo_tensor(torch.randint(0, 6, (2, 9)), torch.randn(9, 3), (6, 6, 3)),
        "csr": torch.randn(9, 5).relu().to_sparse_csr(),
        "bfloat16": torch.randn(5, 6).bfloat16().t(),
        "expanded": torch.arange(4.0).expand(3, 4),
    }
    torch.save(tensors, tmp_path / "a.pth")
    rng = random.Random(3)
    for name, tensor in tensors.items():
        dense = tensor.dequantize() if tensor.is_quantized else tensor
        dense = (dense if dense.layout == torch.strided else dense.to_dense()).float().numpy()
        for _ in range(12):
            text = random_slice(rng, dense.shape)
            expected = eval(f"dense[{text}]")
            got = tdbg.json("show", f"{tmp_path}/a.pth:{name}[{text}]")["values"]
            assert np.array_equal(np.array(got, np.float32).reshape(expected.shape), expected), (name, text)


def test_bfloat16_in_npy_is_float32(tdbg, tmp_path):
    tensor = torch.randn(3, 4).bfloat16()
    torch.save(tensor, tmp_path / "a.pth")
    done = tdbg.run("show", tmp_path / "a.pth", "--npy", tmp_path / "a.npy")
    assert done.stderr == f"wrote {tmp_path}/a.npy: float32 [3, 4] (numpy has no bfloat16)\n"
    assert np.array_equal(np.load(tmp_path / "a.npy"), tensor.float().numpy())
