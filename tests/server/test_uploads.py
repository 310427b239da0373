"""Uploads: what arrives is what was sent; limits, names, trouble, and nothing left behind."""
import gzip
import hashlib
import io
import os
import random
import socket
import sqlite3
import subprocess
import tarfile
import threading
import time

import numpy as np
import pytest
from comparing import COMPARISONS, finished, look, rest, started, upload
from serving import Server


def npy(folder):
    np.save(folder / "x.npy", np.arange(12.0))
    return (folder / "x.npy").read_bytes()


def files_in(server):
    """Files in the folders of uploads. Any of these may vanish while we look, which os.walk takes calmly."""
    top = server.data / "uploads"
    return sorted(os.path.relpath(os.path.join(folder, name), top) for folder, _, names in os.walk(top) for name in names
                  if folder != str(top))


def test_upload(server):
    data = random.Random(1).randbytes(3_000_000)
    answer = server.post("/api/v1/uploads?name=a%20b.zip", data)
    assert answer.status == 201
    document = answer.json
    assert document == {"id": document["id"], "name": "a b.zip", "bytes": len(data),
                        "sha256": hashlib.sha256(data).hexdigest()}
    path = server.data / "uploads" / document["id"] / "a b.zip"
    assert path.read_bytes() == data
    assert path.stat().st_mode & 0o077 == 0


def test_empty_upload(server):
    document = server.post("/api/v1/uploads?name=nothing.npy", b"").json
    assert document["bytes"] == 0 and document["sha256"] == hashlib.sha256(b"").hexdigest()


@pytest.mark.parametrize("name, kept", [
    ("../../evil.sh", "evil.sh"), ("/etc/passwd", "passwd"), ("C:\\dir\\file.npy", "file.npy"), ("..", "_."), (".", "_"),
    (".hidden", "_hidden"), ("dir/", "upload"), ("a\nb\x1b[1m.npy", "a?b?[1m.npy"), ("é" * 300 + ".npy", "é" * 98 + ".npy"),
    ("lock", "lock"),
])
def test_names_are_made_harmless(server, name, kept):
    upload = server.upload(name, b"abc")
    assert files_in(server) == [f"{upload}/{kept}"]


def test_upload_needs_a_name(server):
    assert server.post("/api/v1/uploads", b"abc").error == "an upload needs a name (?name=FILE)"
    assert server.post("/api/v1/uploads?name=", b"abc").status == 400
    assert files_in(server) == []


def test_too_large(serve):
    server = serve("--limit-upload", "100kB")
    answer = server.post("/api/v1/uploads?name=a", b"x" * 100_001)
    assert answer.status == 413 and answer.error == "the file is larger than 100000 bytes (--limit-upload)"
    assert files_in(server) == []
    assert server.post("/api/v1/uploads?name=a", b"x" * 100_000).status == 201


def test_too_large_without_saying_so(serve):
    """Chunked: the size shows as it comes."""
    server = serve("--limit-upload", "100kB")
    connection = server.connect()
    connection.request("POST", "/api/v1/uploads?name=a", iter([b"x" * 50_000] * 20), encode_chunked=True,
                       headers={"Transfer-Encoding": "chunked"})
    assert connection.getresponse().status == 413
    assert files_in(server) == []


def test_budget_of_all(serve):
    server = serve("--limit-upload", "1kB")  # twenty of them
    for _ in range(20):
        server.upload("a", b"x" * 1000)
    answer = server.post("/api/v1/uploads?name=a", b"x")
    assert answer.status == 507 and "budget of 20000 bytes" in answer.error
    assert len(files_in(server)) == 20
    assert server.get("/health").status == 200


def test_broken_off(server):
    client = socket.create_connection(("127.0.0.1", server.port))
    client.sendall(f"POST /api/v1/uploads?name=a HTTP/1.1\r\nHost: {server.host}\r\nContent-Length: 1000000\r\n\r\n".encode())
    client.sendall(b"x" * 5000)
    for _ in range(100):
        if files_in(server):
            break
        time.sleep(0.02)
    assert [name.endswith("/a.part") for name in files_in(server)] == [True]
    client.close()
    # An end that comes together with the last bytes is seen only when the connection has been silent for too long.
    for _ in range(2000):
        if not files_in(server):
            break
        time.sleep(0.02)
    assert files_in(server) == []
    assert list((server.data / "uploads").iterdir()) == [server.data / "uploads" / "lock"]


def test_many_at_once(server):
    pieces = [random.Random(i).randbytes(200_000 + i) for i in range(40)]
    ids = [None] * len(pieces)

    def send(number):
        ids[number] = server.upload(f"{number}.bin", pieces[number])

    threads = [threading.Thread(target=send, args=(number,)) for number in range(len(pieces))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, upload in enumerate(ids):
        assert (server.data / "uploads" / upload / f"{number}.bin").read_bytes() == pieces[number]


def test_survives_a_restart(serve):
    server = serve()
    upload = server.upload("a.bin", b"abc")
    stray = server.data / "uploads" / ("0" * 16)
    server.stop()
    stray.mkdir()
    (stray / "half.part").write_bytes(b"x" * 1000)
    server = serve()
    assert files_in(server) == [f"{upload}/a.bin"]


def test_idle_uploads_are_swept(serve, tmp_path):
    """What no comparison uses goes at a start a day later; what one uses stays."""
    server = serve()
    _, used, fresh = (server.upload(name, npy(tmp_path)) for name in ("idle.npy", "used.npy", "fresh.npy"))
    comparison = finished(server, {"upload": used})
    server.stop()
    with sqlite3.connect(server.data / "tdbg.db") as database:
        database.execute("UPDATE upload SET created = created - 90000 WHERE id != ?", (fresh,))
    database.close()
    server = serve()
    assert files_in(server) == sorted([f"{used}/used.npy", f"{fresh}/fresh.npy"])
    assert look(server, comparison)["status"] == "done"


def killed_mid_upload(data, seed):
    """One round: some uploads finish, one is under way when the server is killed."""
    rng = random.Random(seed)
    finished = {}
    server = Server(data)
    for number in range(rng.randrange(3)):
        content = rng.randbytes(rng.randrange(200_000))
        finished[server.upload(f"{number}.bin", content)] = content
    client = socket.create_connection(("127.0.0.1", server.port))
    client.sendall(f"POST /api/v1/uploads?name=late HTTP/1.1\r\nHost: {server.host}\r\nContent-Length: 400000\r\n\r\n".encode())
    client.sendall(b"x" * rng.randrange(400_001))
    time.sleep(rng.random() * 0.03)
    server.kill()
    client.close()
    return finished


def rounds_of_killing(tmp_path, count):
    finished = {}
    for seed in range(count):
        finished.update(killed_mid_upload(tmp_path, seed))
        with Server(tmp_path) as server:
            there = {name.split("/")[0]: server.data / "uploads" / name for name in files_in(server)}
            # One more may be whole: it was saved, and killed before it could say so.
            assert set(finished) <= set(there) and len(there) <= len(finished) + seed + 1
            for upload, content in finished.items():
                assert there[upload].read_bytes() == content
            assert not [path for path in there.values() if path.name.endswith(".part")]
            for upload in set(there) - set(finished):
                assert there[upload].read_bytes() == b"x" * 400_000


def test_killed_in_mid_upload(tmp_path):
    rounds_of_killing(tmp_path, 3)


@pytest.mark.slow
@pytest.mark.native
def test_killed_in_mid_upload_fifty_times(tmp_path):
    rounds_of_killing(tmp_path, 50)


@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", folder], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"cannot mount: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_full_disk(small_disk):
    with Server(small_disk) as server:
        kept = server.upload("small", b"x" * 100_000)
        for _ in range(3):
            answer = server.post("/api/v1/uploads?name=large", b"x" * 4_000_000)
            assert answer.status == 507 and answer.error == "no space left in the data folder"
        assert files_in(server) == [f"{kept}/small"]
        assert server.get("/health").status == 200
        assert server.post("/api/v1/uploads?name=fits", b"x" * 100_000).status == 201


def folder(server, path=None):
    return server.get("/api/v1/folder" + (f"?path={path}" if path is not None else ""))


def test_folder(server, tmp_path):
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "10.npy").write_bytes(b"x" * 10)
    (tmp_path / "models" / "9.npy").write_bytes(b"x" * 9)
    (tmp_path / "models" / "sub").mkdir()
    (tmp_path / "models" / ".hidden").write_bytes(b"")
    os.mkfifo(tmp_path / "models" / "pipe")
    os.symlink("/etc/passwd", tmp_path / "models" / "out")
    os.symlink(tmp_path / "models" / "9.npy", tmp_path / "models" / "in")
    root = str(tmp_path.resolve())
    assert folder(server).json == {"path": None, "parent": None, "entries": [
        {"name": root, "path": root, "kind": "folder", "bytes": 0}]}
    models = folder(server, f"{root}/models").json
    assert models["path"] == f"{root}/models" and models["parent"] == root
    assert [(e["name"], e["kind"], e["bytes"]) for e in models["entries"]] == [
        ("9.npy", "file", 9), ("10.npy", "file", 10), ("in", "file", 9), ("sub", "folder", 0)]
    assert folder(server, root).json["parent"] is None
    assert folder(server, f"{root}/models/9.npy").status == 400
    assert folder(server, f"{root}/nothing").status == 404


@pytest.mark.parametrize("path", ["/", "/etc", "/no/such/thing", "{root}/../", "{root}/sub/../../..", "..", "{root}x"])
def test_folder_outside_the_roots(server, tmp_path, path):
    answer = folder(server, path.format(root=tmp_path.resolve()))
    assert answer.status == 403
    assert answer.error == "the path is not under a root of this server (--root adds one)"


def test_folder_through_a_link(server, tmp_path):
    os.symlink("/etc", tmp_path / "link")
    assert folder(server, f"{tmp_path}/link").status == 403


# --- gzip uploads are unpacked while they arrive ---


def packed_tar(folder, values=300_000):
    """A .tar.gz of more than a megabyte, large enough to be unpacked early."""
    rng = np.random.default_rng(1)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", compresslevel=1) as archive:
        for name in ("0_query.npy", "1_key.npy"):
            np.save(folder / name, rng.standard_normal(values))
            archive.add(folder / name, name)
    return out.getvalue()


def unpacked_files(server):
    return [name for name in files_in(server) if "/.unpack" in name]


def test_gzip_is_unpacked_while_it_arrives(serve, tmp_path):
    data = packed_tar(tmp_path)
    server = serve()
    upload = server.upload("a.tar.gz", data)
    assert unpacked_files(server) == [f"{upload}/.unpacked"]
    assert (server.data / "uploads" / upload / ".unpacked").read_bytes() == gzip.decompress(data)
    comparison = finished(server, {"upload": upload}, {"upload": upload})
    assert look(server, comparison)["summary"]["identical"] == 2
    first = server.get(f"/api/v1/comparisons/{comparison}/result").json
    assert first["a"]["path"].endswith("/a.tar.gz")
    server.stop()
    server = serve()  # what was unpacked is gone, the upload is not
    assert files_in(server) == [f"{upload}/a.tar.gz"]
    again = server.get(f"/api/v1/comparisons/{comparison}/pairs/0/values?flat=0:4")
    assert again.status == 200
    assert server.get(f"/api/v1/comparisons/{comparison}/result").json == first
    assert server.delete(f"/api/v1/comparisons/{comparison}").status == 204
    assert files_in(server) == []


def test_unpacked_bytes_are_what_is_compared(server, tmp_path):
    """Falsified, they show: the early work is really used."""
    upload = server.upload("a.tar.gz", packed_tar(tmp_path))
    path = server.data / "uploads" / upload / ".unpacked"
    other = bytearray(path.read_bytes())
    other[4096:8192] = bytes(4096)
    path.write_bytes(other)
    (tmp_path / "b.tar.gz").write_bytes(packed_tar(tmp_path))
    comparison = finished(server, {"upload": upload}, {"path": str(tmp_path / "b.tar.gz")})
    assert look(server, comparison)["summary"]["identical"] == 1


@pytest.mark.parametrize("harm", ["flipped", "cut", "checksum"])
def test_bad_gzip_says_the_same_as_a_file(server, tmp_path, harm):
    data = bytearray(packed_tar(tmp_path))
    if harm == "cut":
        del data[len(data) // 2:]
    else:
        data[len(data) // 2 if harm == "flipped" else -6] ^= 0xff
    (tmp_path / "a.tar.gz").write_bytes(data)
    upload = server.upload("a.tar.gz", bytes(data))
    assert files_in(server) == [f"{upload}/a.tar.gz"]
    outcomes = []
    for source in ({"upload": upload}, {"path": str(tmp_path / "a.tar.gz")}):
        comparison = rest(server, started(server, source))
        error = comparison["error"] and comparison["error"].replace(f"{tmp_path}/", "")
        outcomes.append((comparison["status"], error, comparison["summary"]))
    assert outcomes[0] == outcomes[1]
    assert (outcomes[0][0] == "done") == (harm == "cut")


def test_bomb_is_not_unpacked_early(server):
    bomb = gzip.compress(bytes(1 << 20)) * 1100  # members of a thousand to one
    assert len(bomb) > 1 << 20
    upload = server.upload("bomb.gz", bomb)
    assert files_in(server) == [f"{upload}/bomb.gz"]


def test_several_members_and_what_follows(server, tmp_path):
    data = packed_tar(tmp_path)
    plain = gzip.decompress(data)
    half = len(plain) // 2
    joined = gzip.compress(plain[:half], 1) + gzip.compress(plain[half:], 1) + b"trailing"
    upload = server.upload("a.tar.gz", joined)
    assert (server.data / "uploads" / upload / ".unpacked").read_bytes() == plain


def test_unpacked_takes_no_room_from_uploads(serve, tmp_path):
    data = packed_tar(tmp_path, 100_000)
    limit = len(data) + 1
    server = serve("--limit-upload", str(limit))
    for number in range(20):
        server.upload(f"{number}.tar.gz", data)
    sizes = [(server.data / "uploads" / name).stat().st_size for name in unpacked_files(server)]
    assert sizes and sum(sizes) <= 10 * limit


def test_gzip_broken_off(server, tmp_path):
    data = packed_tar(tmp_path)
    client = socket.create_connection(("127.0.0.1", server.port))
    client.sendall(f"POST /api/v1/uploads?name=a.tgz HTTP/1.1\r\nHost: {server.host}\r\nContent-Length: {len(data)}\r\n\r\n"
                   .encode() + data[:-200_000])
    for _ in range(200):
        if unpacked_files(server):
            break
        time.sleep(0.02)
    assert [name.endswith("/.unpacking") for name in unpacked_files(server)] == [True]
    client.close()
    left = lambda: [path.name for path in (server.data / "uploads").iterdir()]
    for _ in range(2000):
        if left() == ["lock"]:
            break
        time.sleep(0.02)
    assert left() == ["lock"]


def test_errors_name_the_upload_and_not_where_it_lies(server, tmp_path):
    """Also when one tensor of it was asked for, and when it is opened again later."""
    np.save(tmp_path / "good.npy", np.zeros((2, 2), np.float32))
    (tmp_path / "bad.npy").write_bytes(b"\x93NUMPY\x01\x00nonsense")
    good, bad = upload(server, tmp_path / "good.npy", "odd:name.npy"), upload(server, tmp_path / "bad.npy")
    for a, b, begins in (({**good, "tensor": "nope"}, None, "odd:name.npy: no tensor named 'nope'"),
                         (good, {**good, "tensor": "nope"}, "odd:name.npy: no tensor named 'nope'"),
                         (bad, good, "bad.npy: "), (good, bad, "bad.npy: ")):
        c = rest(server, started(server, a, b))
        assert c["status"] == "failed" and c["error"].startswith(begins), c["error"]
        assert str(server.data) not in c["error"]
        assert str(server.data) not in server.get(f"{COMPARISONS}/{c['id']}/result").error
