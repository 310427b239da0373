"""What the tests of `tdbg diff` share: numbers of every type, files of them, and what numpy says of a pair.

The expected metrics are computed in long double from the exact values of the stored elements, so that a
disagreement of more than 1e-12 is never numpy's rounding.
"""
import json

import numpy as np

import tensorfiles

# --- types that numpy does not have ------------------------------------------------------------------------

# name: exponent bits, mantissa bits, bias, "fnuz": one NaN (0x80), no infinities, no negative zero
FLOAT8 = {
    "float8_e4m3fn": (4, 3, 7, False),
    "float8_e5m2": (5, 2, 15, False),
    "float8_e4m3fnuz": (4, 3, 8, True),
    "float8_e5m2fnuz": (5, 2, 16, True),
}
SAFETENSORS = {
    "bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2",
    "float8_e4m3fnuz": "F8_E4M3FNUZ", "float8_e5m2fnuz": "F8_E5M2FNUZ",
}  # fmt: skip
NUMPY = ["float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8",
         "bool", "complex64", "complex128"]  # fmt: skip
TYPES = NUMPY + list(SAFETENSORS)


def float8_table(name):
    exponent_bits, mantissa_bits, bias, fnuz = FLOAT8[name]
    values = np.empty(256)
    for bits in range(256):
        sign = -1.0 if bits & 0x80 else 1.0
        exponent, mantissa = (bits & 0x7F) >> mantissa_bits, bits & ((1 << mantissa_bits) - 1)
        whole = 1.0 if exponent else 0.0
        value = sign * (whole + mantissa / (1 << mantissa_bits)) * 2.0 ** (max(exponent, 1) - bias)
        if fnuz and bits == 0x80:
            value = np.nan
        elif name == "float8_e4m3fn" and bits & 0x7F == 0x7F:
            value = np.nan
        elif name == "float8_e5m2" and exponent == 31:
            value = sign * np.inf if mantissa == 0 else np.nan
        values[bits] = value
    return values


class Typed:
    """Elements as stored (`bits`), and their exact values as float64 or complex128 (`values`)."""

    def __init__(self, dtype, array):
        self.dtype = dtype
        if dtype == "bfloat16":
            wide = np.ascontiguousarray(array, np.float32).view(np.uint32)
            self.bits = (((wide + 0x7FFF + ((wide >> 16) & 1)) >> 16).astype(np.uint16)).reshape(np.shape(array))
            self.values = (self.bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
        elif dtype in FLOAT8:
            table = float8_table(dtype)
            finite = np.where(np.isfinite(table))[0]
            order = finite[np.argsort(table[finite], kind="stable")]
            flat = np.asarray(array, np.float64).reshape(-1)
            place = np.clip(np.searchsorted(table[order], flat), 0, len(order) - 1)
            self.bits = order[place].astype(np.uint8).reshape(np.shape(array))
            self.values = table[self.bits]
        else:
            with np.errstate(all="ignore"):
                self.bits = np.asarray(array).astype(dtype)
            wide = np.complex128 if self.bits.dtype.kind == "c" else np.float64
            self.values = self.bits.astype(wide)

    def save(self, folder, stem):
        """Writes the file; returns the name tdbg has for the tensor in this folder."""
        folder.mkdir(parents=True, exist_ok=True)
        if self.dtype in NUMPY:
            np.save(folder / f"{stem}.npy", self.bits)
            return f"{stem}.npy"
        entry = (SAFETENSORS[self.dtype], list(self.bits.shape), self.bits.tobytes())
        (folder / f"{stem}.safetensors").write_bytes(tensorfiles.safetensors({stem: entry}))
        return f"{stem}.safetensors:{stem}"


# --- what numpy says -----------------------------------------------------------------------------------------

MANTISSA_TYPES = {"float32": np.int32, "float16": np.int16, "bfloat16": np.int16}


def ordinals(typed):
    """Neighbouring floats have neighbouring numbers; both zeros are 0."""
    kind = MANTISSA_TYPES[typed.dtype]
    bits = np.ascontiguousarray(typed.bits).view(kind)
    magnitude = (bits & np.iinfo(kind).max).astype(np.int64)
    return np.where(bits < 0, -magnitude, magnitude)


def expected(a, b):
    """The metrics of two Typed of one shape."""
    x, y = a.values.reshape(-1), b.values.reshape(-1)
    both = np.isfinite(x) & np.isfinite(y)
    wide = np.clongdouble if x.dtype.kind == "c" or y.dtype.kind == "c" else np.longdouble
    p, q = x[both].astype(wide), y[both].astype(wide)
    with np.errstate(all="ignore"):
        d, size = np.abs(p - q), np.abs(p)
        relative = d / (size + np.longdouble(1e-8))
        n = max(len(p), 1)
        aa, bb, dd = (size**2).sum(), (np.abs(q) ** 2).sum(), (d**2).sum()
        ab = (p * np.conj(q)).real.sum()
        out = {
            "max_abs": d.max() if len(d) else 0, "mean_abs": d.sum() / n,
            "max_rel": relative.max() if len(d) else 0, "mean_rel": relative.sum() / n,
            "mse": dd / n, "rmse": np.sqrt(dd / n),
            "cosine": 1 if aa == 0 and bb == 0 else 0 if aa == 0 or bb == 0 else ab / np.sqrt(aa) / np.sqrt(bb),
            "rel_l2": 0 if dd == 0 else np.sqrt(dd) / np.sqrt(aa),
            "snr_db": np.inf if dd == 0 else 20 * (np.log10(np.sqrt(aa)) - np.log10(np.sqrt(dd))),
        }  # fmt: skip
    out["count"] = x.size
    for name, side in ("a", x), ("b", y):
        out[f"nan_{name}"] = int(np.isnan(side).sum())
        out[f"inf_{name}"] = int((np.isinf(side) & ~np.isnan(side)).sum())
    out["argmax"] = None
    if len(d):
        out["argmax"] = [int(i) for i in np.unravel_index(np.flatnonzero(both)[np.argmax(d)], a.values.shape)]
    if a.dtype == b.dtype and a.dtype in MANTISSA_TYPES:
        apart = np.abs(ordinals(a).reshape(-1) - ordinals(b).reshape(-1))[both]
        out["max_ulp"] = int(max(apart, default=0))
    elif a.dtype != b.dtype:
        out["max_ulp"] = None
    return out


def number(value):
    return float(value) if isinstance(value, str) else value


def check_metrics(metrics, a, b, what=""):
    want = expected(a, b)
    for key, value in want.items():
        have = number(metrics[key])
        if isinstance(value, (list, int)) or value is None:
            assert have == value, f"{what} {key}: {have}, numpy has {value}"
        elif np.isinf(float(value)) or np.isnan(float(value)):
            assert str(have) == str(float(value)), f"{what} {key}: {have}, numpy has {float(value)}"
        else:
            scale = 1 if key in ("cosine", "snr_db") else abs(value)
            assert abs(have - value) <= 1e-12 * scale, f"{what} {key}: {have!r}, numpy has {float(value)!r}"
    if want["argmax"] is not None:
        place = tuple(want["argmax"])
        for key, side in ("argmax_a", a), ("argmax_b", b):
            value = side.values[place]
            have = number(metrics[key])
            if np.iscomplexobj(a.values) or np.iscomplexobj(b.values):  # shown by modulus
                have, value = abs(have), abs(value)
            assert abs(have - value) <= 1e-12 * abs(value), f"{what} {key}"
    else:
        assert metrics["argmax"] is metrics["argmax_a"] is metrics["argmax_b"] is None


# --- running ---------------------------------------------------------------------------------------------------


def compare(tdbg, a, b, *options, status=None, **run):
    """The JSON answer; `status` None: whatever fits it."""
    done = tdbg.run("diff", "--json", a, b, *options, **run)
    assert done.stdout, done.stderr
    answer = json.loads(done.stdout)
    if status is not None:
        assert done.returncode == status, (done.returncode, done.stderr)
    elif not answer["summary"]["errors"]:
        same = answer["first_divergence"] is None and answer["summary"]["pairs"] > 0
        assert done.returncode == (0 if same else 1)
    return answer


def one(answer):
    assert len(answer["pairs"]) == 1, [(p["name"], p["verdict"]) for p in answer["pairs"]]
    return answer["pairs"][0]


def single(tdbg, tmp_path, x, y, *options, **run):
    """The one pair of two arrays saved as x.npy in two folders."""
    for side, array in ("a", x), ("b", y):
        (tmp_path / side).mkdir(exist_ok=True)
        np.save(tmp_path / side / "x.npy", array)
    return one(compare(tdbg, tmp_path / "a", tmp_path / "b", *options, **run))


def dump(folder, arrays):
    for name, array in arrays.items():
        path = folder / f"{name}.npy"
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, array)
