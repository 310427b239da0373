"""The server itself: routes, headers, methods, the page, starting and stopping."""
import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time

import pytest
from comparing import COMPARISONS, dump, finished
from serving import BINARY, PATIENCE, Server

HTML = {"Accept": "text/html,application/xhtml+xml"}


def test_health(server):
    answer = server.get("/health")
    assert answer.status == 200
    assert answer.json["status"] == "healthy" and answer.json["service"] == "tdbg"


def test_status(server, tmp_path):
    document = server.get("/api/v1/status").json
    assert document["service"] == "tdbg"
    assert document["roots"] == [str(tmp_path.resolve())]
    assert document["limits"] == {"upload": 500_000_000}
    assert document["start"] is None


def test_headers_of_every_answer(server):
    for path in ("/", "/health", "/api/v1/nothing"):
        headers = server.get(path).headers
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
        assert "unsafe" not in policy and "frame-ancestors 'none'" in policy
    assert server.get("/health").headers["Cache-Control"] == "no-store"


def test_head_is_get_without_a_body(server):
    get, head = server.get("/health"), server.request("HEAD", "/health")
    assert head.status == 200 and head.body == b""
    assert head.headers["Content-Length"] == str(len(get.body))


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_other_methods(server, method):
    answer = server.request(method, "/health")
    assert answer.status == 405
    assert answer.headers["Allow"] == "GET, HEAD"


def test_nothing_there(server):
    assert server.get("/api/v1/nothing").error == "there is nothing at /api/v1/nothing"
    assert server.get("/api/v1/nothing", headers=HTML).status == 404
    assert server.get("/assets/nothing.js", headers=HTML).status == 404
    assert server.get("/nothing").status == 404


def test_page_at_its_own_addresses(server):
    page = server.get("/")
    assert page.status == 200 and page.headers["Content-Type"] == "text/html; charset=utf-8"
    for path in ("/c/0123456789abcdef", "/c/0123456789abcdef/pairs/3", "/anything"):
        answer = server.get(path, headers=HTML)
        assert answer.status == 200 and answer.body == page.body


def test_page_is_kept_by_its_tag(server):
    if not server.get("/api/v1/status").json["ui"]:
        pytest.skip("a build without the page")
    tag = server.get("/").headers["ETag"]
    again = server.get("/", headers={"If-None-Match": tag})
    assert again.status == 304 and again.body == b""
    assert server.get("/", headers={"If-None-Match": '"other"'}).status == 200
    assert b"inline" not in server.get("/").body and b"<script>" not in server.get("/").body


def test_files_named_after_their_content_are_kept_for_good(server):
    if not server.get("/api/v1/status").json["ui"]:
        pytest.skip("a build without the page")
    names = re.findall(rb'"(/assets/[^"]+)"', server.get("/").body)
    assert len(names) >= 3
    for name in map(bytes.decode, names):
        kept = server.get(name).headers["Cache-Control"]
        assert kept == ("no-cache" if name == "/assets/icon.svg" else "max-age=31536000, immutable")


@pytest.mark.parametrize("target", [
    "//evil/health", "/../health", "/%2e%2e/health", "/./health", "/health%00", "/health%", "/health%2", "/health%zz",
    "/%ff", "/health?a=%ff", "/health?%00=1", "http://127.0.0.1/health", "/health?" + "&".join("a" * 40),
])
def test_address_that_is_not_plain(server, target):
    connection = server.connect()
    connection.putrequest("GET", target, skip_host=True)
    connection.putheader("Host", server.host)
    connection.endheaders()
    assert connection.getresponse().status == 400


def test_encoded_slash_is_no_separator(server):
    assert server.get("/api%2fv1%2fstatus").status == 404


def test_address_too_long(server):
    assert server.get("/health?a=" + "b" * 9000).status == 414


def test_many_requests_on_one_connection(server):
    connection = server.connect()
    for number in range(300):
        path, status = [("/health", 200), ("/nothing", 404), ("/api/v1/status", 200)][number % 3]
        connection.request("GET", path)
        response = connection.getresponse()
        assert response.status == status
        response.read()
    connection.request("POST", "/health", body=b"x" * 100_000)  # refused, read to its end, and the connection lives on
    assert connection.getresponse().read() and True
    connection.request("GET", "/health")
    assert connection.getresponse().status == 200


def test_listens_on_loopback_only(server):
    out = subprocess.run(["ss", "-Hltn", f"sport = :{server.port}"], capture_output=True, text=True)
    if out.returncode:
        pytest.skip("no ss")
    assert [line.split()[3] for line in out.stdout.splitlines()] == [server.host]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ends_with_a_signal(serve, number):
    server = serve()
    idle = socket.create_connection(("127.0.0.1", server.port))
    half = socket.create_connection(("127.0.0.1", server.port))
    half.sendall(b"POST /api/v1/uploads?name=a HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\nabc")
    time.sleep(0.1)
    assert server.stop(number) < 10 * PATIENCE
    idle.close()
    half.close()


def refusal(*args, **options):
    done = subprocess.run([BINARY, "serve", *map(str, args)], capture_output=True, text=True, timeout=30 * PATIENCE, **options)
    assert done.returncode == 2 and done.stdout == ""
    return done.stderr


def test_port_taken(server, tmp_path):
    assert refusal("--port", server.port, "--data", tmp_path / "other") == (
        f"tdbg: port {server.port} is in use on 127.0.0.1 (--port takes another, 0 any that is free)\n")


def test_ends_while_clients_go_on_asking(serve, tmp_path):
    """For what has to wait, over connections that stay: none may begin once the server ends."""
    sides = dump(tmp_path / "a"), dump(tmp_path / "b", change="1_key")

    def ask(server, report):
        connection = server.connect()
        with contextlib.suppress(OSError, http.client.HTTPException):
            while True:
                connection.request("GET", report)
                connection.getresponse().read()

    for _ in range(5):
        server = serve("--root", tmp_path)
        report = f"{COMPARISONS}/{finished(server, *sides)}/report.csv"
        clients = [threading.Thread(target=ask, args=(server, report)) for _ in range(8)]
        for client in clients:
            client.start()
        time.sleep(0.03)
        server.stop()
        for client in clients:
            client.join()


def test_second_server_on_the_same_data(server):
    assert refusal("--port", 0, "--data", server.data) == f"tdbg: {server.data}/tdbg.db: in use by another tdbg\n"


def test_data_folder_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text("")
    assert refusal("--data", tmp_path / "file" / "x") == (
        f"tdbg: {tmp_path}/file/x: cannot make the folder: Not a directory\n")


def test_inputs_that_are_not_there(tmp_path):
    assert refusal("nowhere", "--data", tmp_path) == "tdbg: nowhere: cannot open: No such file or directory\n"
    assert refusal("--root", "nowhere", "--data", tmp_path) == "tdbg: nowhere: cannot open: No such file or directory\n"


@pytest.mark.parametrize("size", ["", "x", "5x", "-1", "0", "99999999999GB", "5MBB"])
def test_sizes_that_are_none(tmp_path, size):
    assert f"--limit-upload is '{size}', not a size like 500MB" in refusal("--limit-upload", size, "--data", tmp_path)


@pytest.mark.parametrize("text, size", [("1000", 1000), ("5kB", 5000), ("2MiB", 2 << 20), ("3g", 3 * 10**9), ("7B", 7)])
def test_sizes(serve, text, size):
    assert serve("--limit-upload", text).get("/api/v1/status").json["limits"]["upload"] == size


def test_database_elsewhere(tmp_path):
    with Server(tmp_path, "--db", tmp_path / "mine.db") as server:
        server.upload("a.bin", b"abc")
        assert (tmp_path / "mine.db").is_file()


def test_data_folder_of_the_user(tmp_path):
    process = subprocess.Popen([BINARY, "serve", "--port", "0", "--json"], stdout=subprocess.PIPE, text=True, cwd=tmp_path,
                               env={**os.environ, "XDG_DATA_HOME": str(tmp_path / "share")})
    assert json.loads(process.stdout.readline())["url"].startswith("http://127.0.0.1:")
    process.terminate()
    assert process.wait(20 * PATIENCE) == 0
    assert (tmp_path / "share" / "tdbg" / "tdbg.db").is_file()
