"""What the tests of pickles and torch files share: does tdbg list and read exactly what torch has?"""
import numpy as np
import torch


def as_torch(value):
    """The tensor that tdbg should show for a value: numpy arrays and Python scalars count too."""
    if isinstance(value, torch.Tensor):
        return value.detach()
    if isinstance(value, (np.ndarray, np.generic)):
        value = np.asarray(value)
        return torch.from_numpy(np.ascontiguousarray(value).astype(value.dtype.newbyteorder("="))).reshape(value.shape)
    kinds = {bool: torch.bool, int: torch.int64, float: torch.float64, complex: torch.complex128}
    return torch.tensor(value, dtype=kinds[type(value)])


def bits(tensor):
    """Doubles or integers as int64, every NaN the same."""
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    if tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    if not tensor.is_floating_point():
        return tensor.to(torch.int64).reshape(-1).tolist()
    flat = tensor.reshape(-1).double().numpy().copy()
    flat[np.isnan(flat)] = np.nan
    return flat.view(np.int64).tolist()


def flatten(values):
    if not isinstance(values, list):
        return [values]
    return [leaf for value in values for leaf in flatten(value)]


def shown_bits(document, dtype):
    """What was printed, read back as the type it was printed from."""
    values = flatten(document["values"])
    if not dtype.is_floating_point:
        return [int(value) for value in values]
    return bits(torch.tensor([float(value) for value in values], dtype=torch.float64).to(dtype))


def value_dtype(tensor):
    if tensor.is_quantized:
        return torch.float32
    return {torch.complex64: torch.float32, torch.complex128: torch.float64}.get(tensor.dtype, tensor.dtype)


def check(tdbg, path, expected, skipped=None, format="torch"):
    """`expected`: name -> tensor, array or scalar, in the order of the file; `skipped`: name -> reason."""
    listing = tdbg.json("ls", path)
    found = {tensor["name"]: tensor for tensor in listing["tensors"]}
    assert list(found) == list(expected)
    assert len(listing["tensors"]) == len(expected)
    for name, value in expected.items():
        tensor = as_torch(value)
        assert found[name]["dtype"] == str(tensor.dtype).removeprefix("torch."), name
        assert found[name]["shape"] == list(tensor.shape), name
        assert found[name]["format"] == format
        document = tdbg.json("show", f"{path}:{name}")
        assert shown_bits(document, value_dtype(tensor)) == bits(tensor), name
    if skipped is not None:
        assert {skip["name"]: skip["reason"] for skip in listing["skipped"]} == skipped
    return listing
