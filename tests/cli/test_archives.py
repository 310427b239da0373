"""Archives through the binary, written by Python's own modules and by the tools people use."""
import gzip
import io
import itertools
import os
import shutil
import subprocess
import tarfile
import warnings
import zipfile
import zlib

import numpy as np
import pytest

ARRAYS = {
    "dumps/2_query.npy": np.arange(600, dtype="f4").reshape(20, 30),
    "dumps/10_query.npy": np.random.default_rng(1).standard_normal((50, 70)),
    "dumps/deep/er/x.npy": np.array([1, -2, 3], "i2"),
    "ü.npy": np.ones((2, 2), "f2"),
}


def npy(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


FILES = {name: npy(array) for name, array in ARRAYS.items()}
HIDDEN = {"dumps/.DS_Store": b"x", "__MACOSX/dumps/._2_query.npy": b"x"}


def write_tar(out, files, form=tarfile.PAX_FORMAT):
    with tarfile.open(fileobj=out, mode="w", format=form) as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))


def tar_bytes(files=None, form=tarfile.PAX_FORMAT):
    out = io.BytesIO()
    write_tar(out, {**FILES, **HIDDEN} if files is None else files, form)
    return out.getvalue()


def pack(data, *command):
    return subprocess.run(command, input=data, stdout=subprocess.PIPE, check=True).stdout


def zip_bytes(method, zip64=False, files=None):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in ({**FILES, **HIDDEN} if files is None else files).items():
            info = zipfile.ZipInfo(name)
            info.compress_type = method
            with archive.open(info, "w", force_zip64=zip64) as member:
                member.write(data)
    return out.getvalue()


CONTAINERS = {
    "stored.zip": lambda: zip_bytes(zipfile.ZIP_STORED),
    "deflated.zip": lambda: zip_bytes(zipfile.ZIP_DEFLATED),
    "stored64.zip": lambda: zip_bytes(zipfile.ZIP_STORED, True),
    "deflated64.zip": lambda: zip_bytes(zipfile.ZIP_DEFLATED, True),
    "pax.tar": tar_bytes,
    "gnu.tar": lambda: tar_bytes(form=tarfile.GNU_FORMAT),
    "ustar.tar": lambda: tar_bytes(form=tarfile.USTAR_FORMAT),
    "a.tar.gz": lambda: pack(tar_bytes(), "gzip", "-6"),
    "a.tgz": lambda: pack(tar_bytes(), "gzip", "-1"),
    "isal.tar.gz": lambda: pack(tar_bytes(), "igzip", "-c"),
    "a.tar.xz": lambda: pack(tar_bytes(), "xz", "-9e"),
    "blocks.tar.xz": lambda: pack(tar_bytes(), "xz", "--block-size=4096", "--check=sha256"),
    "a.tar.zst": lambda: pack(tar_bytes(), "zstd", "-19"),
    "long.tar.zst": lambda: pack(tar_bytes(), "zstd", "--long=27"),
    "a.tar.bz2": lambda: pack(tar_bytes(), "bzip2"),
    "two-members.tar.gz": lambda: pack(tar_bytes()[:5000], "gzip") + pack(tar_bytes()[5000:], "gzip"),
    "two-frames.tar.zst": lambda: pack(tar_bytes()[:5000], "zstd") + pack(tar_bytes()[5000:], "zstd"),
    "two-streams.tar.xz": lambda: pack(tar_bytes()[:5000], "xz") + pack(tar_bytes()[5000:], "xz"),
    "named-wrongly.pth": lambda: pack(tar_bytes(), "gzip"),
}


def names(document):
    return sorted(t["name"] for t in document["tensors"])


def reasons(document):
    return {s["name"]: s["reason"] for s in document["skipped"]}


@pytest.mark.parametrize("container", CONTAINERS)
def test_every_container_reads_as_numpy_does(tdbg, tmp_path, container):
    path = tmp_path / container
    path.write_bytes(CONTAINERS[container]())
    document = tdbg.json("stats", path)
    assert names(document) == sorted(ARRAYS)
    for tensor in document["tensors"]:
        array = ARRAYS[tensor["name"]].astype("f8")
        assert tensor["shape"] == list(array.shape)
        assert tensor["min"] == array.min() and tensor["max"] == array.max()
        assert tensor["mean"] == pytest.approx(array.mean(), rel=1e-12, abs=1e-12)
    assert tdbg.json("ls", path)["skipped"] == []
    shown = tdbg.json("show", f"{path}:dumps/10_query.npy[49]", "--count", "70")
    assert shown["values"] == ARRAYS["dumps/10_query.npy"][49].tolist()


@pytest.mark.parametrize("tool,suffix", [("gzip", "gz"), ("xz", "xz"), ("zstd", "zst"), ("bzip2", "bz2")])
def test_one_packed_file(tdbg, tmp_path, tool, suffix):
    path = tmp_path / f"3_query.npy.{suffix}"
    path.write_bytes(pack(FILES["dumps/10_query.npy"], tool))
    document = tdbg.json("ls", path)
    assert [t["shape"] for t in document["tensors"]] == [[50, 70]]
    assert document["tensors"][0]["name"].endswith("3_query.npy")
    assert tdbg.json("show", f"{path}[0,0:2]")["values"] == ARRAYS["dumps/10_query.npy"][0, :2].tolist()


def test_archives_in_archives_in_folders(tdbg, tmp_path):
    inner = zip_bytes(zipfile.ZIP_DEFLATED, files={"a.npy": FILES["dumps/2_query.npy"]})
    middle = pack(tar_bytes({"inner.zip": inner}), "xz")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "outer.zip").write_bytes(zip_bytes(zipfile.ZIP_STORED, files={"m.tar.xz": middle}))
    (tmp_path / "run" / "b.npy").write_bytes(FILES["ü.npy"])
    document = tdbg.json("ls", tmp_path)
    assert names(document) == ["run/b.npy", "run/outer.zip/m.tar.xz/inner.zip/a.npy"]


def test_archives_nested_without_end_stop(tdbg, tmp_path):
    data = FILES["ü.npy"]
    for depth in range(8):
        data = zip_bytes(zipfile.ZIP_STORED, files={f"{depth}.zip" if depth else "x.npy": data})
    (tmp_path / "matryoshka.zip").write_bytes(data)
    done = tdbg.run("ls", "--json", tmp_path / "matryoshka.zip")
    assert '"tensors":[]' in done.stdout.replace(" ", "").replace("\n", "") or done.returncode == 2


# --- names that mean harm -------------------------------------------------------------------------------------------

HARMFUL = ["../../../../tmp/tdbg-escaped.npy", "/tmp/tdbg-escaped.npy", "..\\..\\tdbg-escaped.npy", "a/../../b.npy"]


@pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz"])
def test_names_never_reach_the_file_system(tdbg, tmp_path, kind):
    files = {name: FILES["ü.npy"] for name in HARMFUL}
    data = zip_bytes(zipfile.ZIP_DEFLATED, files=files) if kind == "zip" else tar_bytes(files)
    (tmp_path / f"x.{kind}").write_bytes(pack(data, "gzip") if kind == "tar.gz" else data)
    before = sorted(os.listdir(tmp_path))
    document = tdbg.json("stats", tmp_path / f"x.{kind}")
    assert names(document) == ["tmp/tdbg-escaped.npy"]
    assert [skip["reason"] for skip in document["skipped"]] == ["its name leads out of the archive"] * (len(HARMFUL) - 1)
    assert sorted(os.listdir(tmp_path)) == before
    assert not os.path.exists("/tmp/tdbg-escaped.npy")


def test_control_codes_in_names_are_not_printed(tdbg, tmp_path):
    (tmp_path / "x.zip").write_bytes(zip_bytes(zipfile.ZIP_STORED, files={"a\x1b[31m\n.npy": FILES["ü.npy"]}))
    assert names(tdbg.json("ls", tmp_path / "x.zip")) == ["a?[31m?.npy"]
    assert "\x1b" not in tdbg.text("ls", tmp_path / "x.zip")


# --- what cannot be read --------------------------------------------------------------------------------------------


def test_encrypted_and_foreign_methods_are_named(tdbg, tmp_path):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("good.npy", FILES["ü.npy"])
        archive.writestr("bzip2.npy", FILES["ü.npy"], zipfile.ZIP_BZIP2)
        archive.writestr("lzma.npy", FILES["ü.npy"], zipfile.ZIP_LZMA)
        archive.writestr("secret.npy", FILES["ü.npy"])
    data = bytearray(out.getvalue())
    data[data.rindex(b"PK\1\2") + 8] |= 1  # the flag of the last member
    data[data.rindex(b"PK\3\4") + 6] |= 1
    (tmp_path / "x.zip").write_bytes(data)
    document = tdbg.json("ls", tmp_path / "x.zip")
    assert names(document) == ["good.npy"]
    foreign = "zip: packed by a method tdbg does not read (neither stored nor deflated)"
    assert reasons(document) == {"bzip2.npy": foreign, "lzma.npy": foreign, "secret.npy": "zip: encrypted"}


def test_second_members_of_a_name(tdbg, tmp_path):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        archive.writestr("a.npy", FILES["ü.npy"])
        archive.writestr("a.npy", FILES["dumps/2_query.npy"])
    (tmp_path / "x.zip").write_bytes(out.getvalue())
    document = tdbg.json("ls", tmp_path / "x.zip")
    assert [t["shape"] for t in document["tensors"]] == [[2, 2]]
    assert reasons(document) == {"a.npy": "zip: a second member of that name"}


def test_a_cut_tar_gz_keeps_what_is_whole(tdbg, tmp_path):
    a, b = (npy(np.random.default_rng(seed).random(5000)) for seed in (1, 2))
    whole = pack(tar_bytes({"a.npy": a, "b.npy": b}), "gzip", "-1")
    (tmp_path / "cut.tar.gz").write_bytes(whole[: len(whole) * 3 // 4])
    document = tdbg.json("ls", tmp_path / "cut.tar.gz")
    assert names(document) == ["a.npy"]
    assert reasons(document) == {
        "b.npy": "tar: cut short in the middle of this file",
        "(end of archive)": "the archive is cut short or damaged: what came after is missing",
    }


@pytest.mark.parametrize("tool", ["gzip", "xz", "bzip2"])
def test_a_damaged_stream_is_refused_as_a_whole(tdbg, tmp_path, tool):
    data = bytearray(pack(tar_bytes(), tool))
    data[len(data) // 2] ^= 0x10
    (tmp_path / "x").write_bytes(data)
    assert tdbg.fails("ls", tmp_path / "x").startswith(f"tdbg: {tmp_path / 'x'}: {tool}: the ")


# A long gzip is unpacked from several places at once.


def tensor_bytes(count, seed=1):
    """bfloat16: what comes before is forgotten soon, as in most dumps."""
    values = np.random.default_rng(seed).standard_normal(count).astype("f4")
    return np.ascontiguousarray(values.view("u2")[1::2]).view("u1")


def words(count):
    """Text that always refers to what came before."""
    numbers = np.random.default_rng(1).integers(0, 1 << 40, count // 32)
    return np.frombuffer(b"".join(b"layer %d of %d: %d\n" % (i % 97, i % 89, n) for i, n in enumerate(numbers)), "u1")


def deflated(array, level=1):
    return gzip.compress(npy(array), level)


def flushed(array, strategy=zlib.Z_DEFAULT_STRATEGY):
    """An empty stored block after every 100,000 bytes."""
    packer, data = zlib.compressobj(1, wbits=31, strategy=strategy), npy(array)
    pieces = [packer.compress(data[at : at + 100000]) + packer.flush(zlib.Z_SYNC_FLUSH) for at in range(0, len(data), 100000)]
    return b"".join(pieces) + packer.flush()


LONG = {
    "tensors": lambda: (a := tensor_bytes(10 << 20), deflated(a)),
    "text": lambda: (a := words(28 << 20), deflated(a)),
    "noise": lambda: (a := np.random.default_rng(1).integers(0, 256, 14 << 20, "u1"), deflated(a)),
    "turns": lambda: (a := np.concatenate([tensor_bytes(5 << 20), np.zeros(20 << 20, "u1"), words(2 << 20),
                                           tensor_bytes(5 << 20, 2)]), deflated(a)),
    "text, then tensors": lambda: (a := np.concatenate([words(56 << 20), tensor_bytes(10 << 20)]), deflated(a, 6)),
    "flushes": lambda: (a := tensor_bytes(10 << 20), flushed(a)),
    "fixed codes": lambda: (a := tensor_bytes(10 << 20), flushed(a, zlib.Z_FIXED)),
    "small members": lambda: (a := tensor_bytes(10 << 20),
                              b"".join(gzip.compress(npy(a)[at : at + 65536], 1) for at in range(0, 21 << 20, 65536))),
    "members": lambda: (a := tensor_bytes(10 << 20),
                        b"".join(gzip.compress(npy(a)[at : at + (5 << 20)], 1) for at in range(0, 21 << 20, 5 << 20))),
}


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", LONG)
def test_a_long_gzip_is_the_same_from_several_places(tdbg, tmp_path, kind, threads):
    array, packed = LONG[kind]()
    assert len(packed) > 10 << 20
    (tmp_path / "x.npy.gz").write_bytes(packed)
    tdbg.text("show", tmp_path / "x.npy.gz", "--npy", tmp_path / "out.npy", env={"TDBG_THREADS": str(threads)})
    assert np.array_equal(np.load(tmp_path / "out.npy"), array)


@pytest.mark.slow
@pytest.mark.parametrize("at", [2, 5, 7, 9, 13])
def test_a_long_gzip_damaged_or_cut_in_any_part(tdbg, tmp_path, at):
    """In MiB: in stretches of the first teams, of the next, and near the end."""
    packed = bytearray(deflated(tensor_bytes(10 << 20)))
    (tmp_path / "cut.npy.gz").write_bytes(packed[: at << 20])
    message = tdbg.fails("ls", tmp_path / "cut.npy.gz", env={"TDBG_THREADS": "2"})
    assert message.endswith(": no tensor file in it: cut.npy: the compressed stream is cut short")
    packed[at << 20] ^= 0x10
    (tmp_path / "x.npy.gz").write_bytes(packed)
    assert ": gzip: the " in tdbg.fails("ls", tmp_path / "x.npy.gz", env={"TDBG_THREADS": "2"})


@pytest.mark.slow
def test_a_long_gzip_cut_where_teams_begin_again(tdbg, tmp_path):
    """After text, which is left to one decoder for a while."""
    _, packed = LONG["text, then tensors"]()
    (tmp_path / "cut.npy.gz").write_bytes(packed[: len(packed) - (8 << 20)])
    message = tdbg.fails("ls", tmp_path / "cut.npy.gz")
    assert message.endswith(": no tensor file in it: cut.npy: the compressed stream is cut short")


def test_sparse_files_and_links_in_a_tar(tdbg, tmp_path):
    folder = tmp_path / "d"
    folder.mkdir()
    array = np.zeros((1 << 20,), "f4")
    array[777777] = 3
    np.save(folder / "a.npy", array)
    subprocess.run(["fallocate", "--dig-holes", folder / "a.npy"], check=False)
    os.link(folder / "a.npy", folder / "hard.npy")
    os.symlink("a.npy", folder / "soft.npy")
    os.symlink("/etc/passwd", folder / "out.npy")
    os.mkfifo(folder / "pipe.npy")
    for form in ("gnu", "pax"):
        subprocess.run(["tar", "-S", f"--format={form}", "-cf", tmp_path / "x.tar", "-C", folder, "."], check=True)
        document = tdbg.json("stats", tmp_path / "x.tar")
        assert names(document) == ["a.npy", "hard.npy", "soft.npy"]
        assert {(t["max"], t["zeros"]) for t in document["tensors"]} == {(3, (1 << 20) - 1)}
        assert reasons(tdbg.json("ls", tmp_path / "x.tar")) == {
            "out.npy": "a link to something that is no file of the archive",
            "pipe.npy": "not a regular file",
        }


# --- bombs ----------------------------------------------------------------------------------------------------------


def zeros_gz(path, gib):
    """GiBs of zeros: one GiB packed by gzip, repeated as members of one file."""
    piece = pack(bytes(64 << 20), "igzip", "-c")
    with open(path, "wb") as out:
        for _ in range(gib * 16):
            out.write(piece)


@pytest.mark.slow
def test_ten_gigabytes_of_zeros_take_neither_memory_nor_disk(tdbg, tmp_path):
    zeros_gz(tmp_path / "bomb.gz", 10)
    free = shutil.disk_usage("/var/tmp").free
    done = tdbg.run("ls", tmp_path / "bomb.gz", env={"TMPDIR": "/var/tmp"})
    assert done.returncode == 2
    assert free - shutil.disk_usage("/var/tmp").free < 1 << 30


def test_the_limit_on_unpacking(tdbg, tmp_path):
    zeros_gz(tmp_path / "bomb.gz", 1)
    line = tdbg.fails("ls", tmp_path / "bomb.gz", env={"TDBG_MAX_UNPACK": "100000000"})
    limit = "unpacks to more than 100000000 bytes (TDBG_MAX_UNPACK sets the limit)"
    assert line == f"tdbg: {tmp_path / 'bomb.gz'}: {limit}"


def test_a_zip_of_zips_stops_at_the_limit(tdbg, tmp_path):
    """As 42.zip: each level multiplies; the budget is one for all of them."""
    inner = zip_bytes(zipfile.ZIP_DEFLATED, files={f"{i}.bin": bytes(1 << 20) for i in range(8)})
    files = {"good.npy": FILES["ü.npy"], **{f"{i}.zip": inner for i in range(8)}}
    (tmp_path / "x.zip").write_bytes(zip_bytes(zipfile.ZIP_DEFLATED, files=files))
    document = tdbg.json("ls", tmp_path / "x.zip", env={"TDBG_MAX_UNPACK": str(20 << 20)})
    assert names(document) == ["good.npy"]
    stopped = [r for r in reasons(document).values() if r.startswith("unpacks to more than 20971520 bytes")]
    assert len(stopped) > 40


def test_a_zip_that_claims_too_much(tdbg, tmp_path):
    data = bytearray(zip_bytes(zipfile.ZIP_DEFLATED, files={"a.npy": bytes(100), "b.npy": FILES["ü.npy"]}))
    for mark, at in ((b"PK\1\2", 24), (b"PK\3\4", 22)):
        place = data.index(mark) + at
        data[place : place + 4] = (0xFFFFFFF0).to_bytes(4, "little")
    (tmp_path / "x.zip").write_bytes(data)
    document = tdbg.json("ls", tmp_path / "x.zip")
    assert names(document) == ["b.npy"]
    assert reasons(document)["a.npy"].startswith("zip: claims 4294967280 bytes from ")


def test_a_full_disk_is_said(tdbg, tmp_path):
    """A file size limit stands in for the full disk: the same error comes back from write."""
    (tmp_path / "x.npy.gz").write_bytes(pack(npy(np.random.default_rng(1).random(1 << 20)), "gzip", "-1"))
    done = subprocess.run(
        ["bash", "-c", f"ulimit -f 1000; trap '' XFSZ; exec {tdbg.binary} ls {tmp_path / 'x.npy.gz'}"],
        capture_output=True, text=True, env={**os.environ, "TMPDIR": str(tmp_path)})
    assert done.returncode == 2
    assert done.stderr == (f"tdbg: {tmp_path / 'x.npy.gz'}: no space for unpacking in {tmp_path}: "
                           "set TMPDIR to a larger place\n")


# --- big ------------------------------------------------------------------------------------------------------------


class Holes(io.FileIO):
    """A file in which blocks of zeros take no room."""

    def write(self, data):
        if len(data) >= 1 << 20 and not any(memoryview(data)[:: 1 << 12]):
            self.seek(len(data), os.SEEK_CUR)
            return len(data)
        return super().write(data)


@pytest.mark.slow
def test_a_zip_beyond_4_gib(tdbg, tmp_path):
    """zip64 for real: a member that is longer than 32 bits can say, and one that starts beyond them."""
    elements = (9 << 30) // 2 // 4
    with Holes(tmp_path / "big.zip", "w") as out, zipfile.ZipFile(out, "w") as archive:
        with archive.open(zipfile.ZipInfo("big.npy"), "w", force_zip64=True) as member:
            np.lib.format.write_array_header_1_0(member, {"descr": "<f4", "fortran_order": False, "shape": (elements,)})
            for _ in range(elements * 4 >> 26):
                member.write(bytes(1 << 26))
        archive.writestr("behind.npy", FILES["dumps/10_query.npy"])
    document = tdbg.json("ls", tmp_path / "big.zip")
    assert {t["name"]: t["shape"] for t in document["tensors"]} == {"big.npy": [elements], "behind.npy": [50, 70]}
    shown = tdbg.json("show", f"{tmp_path / 'big.zip'}:behind.npy[49]", "--count", "70")
    assert shown["values"] == ARRAYS["dumps/10_query.npy"][49].tolist()


# --- truncation -----------------------------------------------------------------------------------------------------

CUT = ["stored.zip", "deflated.zip", "pax.tar", "a.tar.gz", "a.tar.xz", "a.tar.zst", "a.tar.bz2"]


@pytest.mark.slow
@pytest.mark.parametrize("container", CUT)
def test_cut_anywhere(tdbg, tmp_path, container):
    """Never a crash, never a wrong value: what is listed is what was written. tests/unit/test_archive.c goes in
    steps of 64 bytes; here through the whole program, a hundred places."""
    whole = CONTAINERS[container]()
    path = tmp_path / container
    for size in itertools.chain(range(0, len(whole), max(64, len(whole) // 100)), [len(whole) - 1]):
        path.write_bytes(whole[:size])
        done = tdbg.run("stats", "--json", path)
        if done.returncode == 0:
            for tensor in tdbg.json("stats", path)["tensors"]:
                assert tensor["max"] == ARRAYS[tensor["name"]].max()
