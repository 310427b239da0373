"""Writes gguf_golden.npz: random blocks of each GGUF block format and what the gguf package makes of them.

    python3 tests/data/make_gguf_golden.py        (needs the package gguf; the result is committed)

Scales are finite float16 of either sign, subnormal ones among them; all other bits are random.
"""
import pathlib

import gguf
import numpy as np

# Where the float16 scales lie in a block.
SCALES = {"q4_0": [0], "q4_1": [0, 2], "q5_0": [0], "q5_1": [0, 2], "q8_0": [0], "q2_k": [80, 82], "q3_k": [108],
          "q4_k": [0, 2], "q5_k": [0, 2], "q6_k": [208], "iq4_nl": [0], "iq4_xs": [0]}  # fmt: skip

random = np.random.default_rng(17)
golden = {}
for name, places in SCALES.items():
    kind = gguf.GGMLQuantizationType[name.upper()]
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    rows, columns = 2, 4 if elements == 32 else 1
    blocks = random.integers(0, 256, (rows, columns, size), dtype=np.uint8)
    for i, place in enumerate(places):
        scales = random.normal(0, 0.02, (rows, columns, 1)).astype(np.float16)
        scales[0, 0] = 3e-6 if i == 0 else -1.5
        blocks[:, :, place : place + 2] = scales.view(np.uint8)
    golden[f"{name}.blocks"] = blocks.reshape(rows, columns * size)
    golden[f"{name}.values"] = gguf.quants.dequantize(golden[f"{name}.blocks"], kind)
np.savez_compressed(pathlib.Path(__file__).parent / "gguf_golden.npz", **golden)
