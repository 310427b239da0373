"""Files of the gguf package, and its de-quantisation, bit for bit."""
import gguf
import numpy as np
import pytest

from tensorfiles import same, values

RANDOM = np.random.default_rng(23)
BLOCKS = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS"]
QUANTISED = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0"]  # those the package can write too


def write(path, tensors, **options):
    """tensors: {name: array, or (bytes as uint8 rows, type)}"""
    writer = gguf.GGUFWriter(path, "llama", **options)
    writer.add_block_count(2)
    writer.add_token_list(["<s>", "the", "▁"])
    writer.add_token_scores([0.0, 1.0, 2.0])
    for name, tensor in tensors.items():
        array, kind = tensor if isinstance(tensor, tuple) else (tensor, None)
        writer.add_tensor(name, array, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_plain_types(tdbg, tmp_path):
    shapes = {"f64": (4, 3), "f32": (2, 3, 4), "f16": (7,), "i64": (2, 2), "i32": (1, 5), "i16": (6,), "i8": (3, 3)}
    arrays = {k: np.frombuffer(RANDOM.bytes(int(np.prod(s)) * int(k[1:]) // 8), f"<{k[0]}{int(k[1:]) // 8}").reshape(s)
              for k, s in shapes.items()}  # fmt: skip
    path = tmp_path / "a.gguf"
    write(path, arrays)
    for name, array in arrays.items():
        assert same(values(tdbg, path, name), array), name


@pytest.mark.parametrize("name", BLOCKS)
def test_random_blocks(tdbg, tmp_path, name):
    """Any bits at all, infinite and NaN scales included."""
    kind = gguf.GGMLQuantizationType[name]
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = RANDOM.integers(0, 256, (16, 4 * size), dtype=np.uint8)
    path = tmp_path / "a.gguf"
    write(path, {"x": (blocks, kind)})
    with np.errstate(all="ignore"):
        expected = gguf.quants.dequantize(blocks, kind)
    assert expected.shape == (16, 4 * elements)
    assert same(values(tdbg, path, "x"), expected)


@pytest.mark.parametrize("name", QUANTISED)
def test_quantised_weights(tdbg, tmp_path, name):
    kind = gguf.GGMLQuantizationType[name]
    blocks = gguf.quants.quantize(RANDOM.normal(0, 0.02, (8, 256)).astype(np.float32), kind)
    path = tmp_path / "a.gguf"
    write(path, {"x": (blocks, kind)})
    assert same(values(tdbg, path, "x"), gguf.quants.dequantize(blocks, kind))


def test_bfloat16(tdbg, tmp_path):
    kind = gguf.GGMLQuantizationType.BF16
    data = gguf.quants.quantize(RANDOM.normal(0, 1, (4, 32)).astype(np.float32), kind)
    path = tmp_path / "a.gguf"
    write(path, {"x": (data, kind)})
    assert tdbg.json("ls", path)["tensors"][0]["dtype"] == "bfloat16"
    assert same(values(tdbg, path, "x"), gguf.quants.dequantize(data, kind))


def test_big_endian(tdbg, tmp_path):
    array = RANDOM.normal(0, 1, (3, 5)).astype(np.float32)
    path = tmp_path / "a.gguf"
    write(path, {"x": array.copy()}, endianess=gguf.GGUFEndian.BIG)
    assert same(values(tdbg, path, "x"), array)


def test_every_type_has_a_name(tdbg, tmp_path):
    """A type of the package that tdbg does not read is skipped by its name, not as unknown."""
    path = tmp_path / "a.gguf"
    for kind in gguf.GGMLQuantizationType:
        elements, size = gguf.GGML_QUANT_SIZES[kind]
        write(path, {"x": (np.zeros((1, size), np.uint8), kind)})
        answer = tdbg.json("ls", path)
        for skipped in answer["skipped"]:
            assert skipped["reason"] == f"block format {kind.name.lower()} is not supported"
        assert len(answer["tensors"]) + len(answer["skipped"]) == 1
