"""Clients that are slow, broken or malicious: nobody else notices, nothing crashes, every answer is the right one."""
import http.client
import json
import socket
import struct
import threading
import time

import pytest
from comparing import dump, finished
from fuzzing import requests
from serving import PATIENCE


def open_socket(server, timeout=20):
    return socket.create_connection(("127.0.0.1", server.port), timeout=timeout * PATIENCE)


def ask(server, data, may_be_silent):
    """The status of the answer to `data` and its body; (None, b"") when the server hangs up without a word, or waits
    for more."""
    client = open_socket(server, 0.05 if may_be_silent else 20)
    try:
        try:
            client.sendall(data)
        except OSError:
            pass  # answered already, and closed
        response = http.client.HTTPResponse(client, method="HEAD" if data.startswith(b"HEAD") else "GET")
        response.begin()
        return response.status, response.read()
    except http.client.BadStatusLine:  # also: closed without a word
        return None, b""
    except ConnectionError:
        return None, b""
    except TimeoutError:
        assert may_be_silent, data[:600]
        return None, b""
    finally:
        client.close()


def fuzz(server, tmp_path, seed, count):
    a, b = dump(tmp_path / "a", layers=1), dump(tmp_path / "b", layers=1, change="0_key")
    comparison = finished(server, a, b)
    for number, (data, statuses) in enumerate(requests(seed, comparison, count)):
        status, body = ask(server, data, None in statuses)
        assert status in statuses, f"request {number}: {status} {body[:300]!r}\nto {data[:600]!r}"
        assert server.alive(), f"request {number} killed the server: {data[:600]!r}"
        if status and status >= 400 and body.startswith(b"{"):
            assert list(json.loads(body)) == ["error"]
        assert b"root:x:0:" not in body
    assert server.get("/health").status == 200


def test_a_thousand_requests_of_a_fuzzer(server, tmp_path):
    fuzz(server, tmp_path, 1, 1000)


@pytest.mark.slow
def test_ten_thousand_requests_of_a_fuzzer(server, tmp_path):
    fuzz(server, tmp_path, 2, 10_000)


# --- Two hundred at once ------------------------------------------------------------------------------------------------

UPLOAD = b"POST /api/v1/uploads?name=slow HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000\r\n\r\n"


def says_nothing(client, number):
    pass


def half_a_header(client, number):
    client.sendall(b"GET /health HTTP/1.1\r\nHos")


def half_a_body(client, number):
    client.sendall(UPLOAD + b"x" * 1000 * number)


def half_a_document(client, number):
    client.sendall(b"POST /get_tensor_values HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                   b"Content-Length: 10000000\r\n\r\n" + b"[" * 100_000)


def never_reads(client, number):
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.sendall(b"GET /api/v1/status HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 50)


def resets(client, number):
    client.sendall(UPLOAD + b"x" * 5000)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


def talks_nonsense(client, number):
    client.sendall(bytes(range(256)) * 10)


BAD = [says_nothing, half_a_header, half_a_body, half_a_document, never_reads, resets, talks_nonsense]


def dribble(clients, over):
    """One byte each, again and again: nobody is idle."""
    while not over.is_set():
        for client in clients:
            try:
                client.send(b"x")
            except OSError:
                pass
        over.wait(0.05)


def behave(server, slowest, failures):
    connection = server.connect()
    try:
        for number in range(20):
            begin = time.monotonic()
            if number % 5 == 4:
                connection.request("POST", "/api/v1/uploads?name=good", b"y" * 10_000)
                expected = 201
            else:
                connection.request("GET", "/api/v1/status")
                expected = 200
            response = connection.getresponse()
            response.read()
            assert response.status == expected, response.status
            slowest.append(time.monotonic() - begin)
    except Exception as failure:  # in a thread: told to the test
        failures.append(repr(failure))
    finally:
        connection.close()


def resident(server):
    """Bytes of memory of the server."""
    with open(f"/proc/{server.process.pid}/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmRSS"))


def crowd(server):
    """A hundred bad clients stay while a hundred good ones ask. Returns the seconds of each good request."""
    clients, over, times, failures = [], threading.Event(), [], []
    for number in range(100):
        clients.append(open_socket(server))
        try:
            BAD[number % len(BAD)](clients[-1], number)
        except OSError:
            pass
    slow = threading.Thread(target=dribble, args=([c for c in clients if c.fileno() >= 0], over))
    good = [threading.Thread(target=behave, args=(server, times, failures)) for _ in range(100)]
    for thread in [slow, *good]:
        thread.start()
    for thread in good:
        thread.join()
    over.set()
    slow.join()
    for client in clients:
        client.close()
    assert not failures, failures[:3]
    return times


def test_two_hundred_at_once(server):
    times = sorted(crowd(server))
    assert len(times) == 2000
    assert times[-1] < 15 * PATIENCE, f"the slowest took {times[-1]:.2f} s"


@pytest.mark.native
def test_forms_of_many_files_take_no_memory(server):
    """Eight forms of sixty files, none of which ends: only the last file of each may still be in memory."""
    clients, files, size = 8, 60, 250_000
    part = (b'------edge\r\nContent-Disposition: form-data; name="x"; filename="x.npy"\r\n\r\n' + bytes(size) + b"\r\n")
    head = (f"POST /upload HTTP/1.1\r\nHost: {server.host}\r\nContent-Type: multipart/form-data; boundary=----edge\r\n"
            f"Content-Length: {2 * files * len(part)}\r\n\r\n").encode()
    server.get("/health")
    before = resident(server)
    sockets = [open_socket(server) for _ in range(clients)]
    for client in sockets:
        client.sendall(head + part * files)
    expected, deadline = clients * (files - 1) * size, time.monotonic() + 20 * PATIENCE
    while sum(f.stat().st_size for f in server.data.glob("uploads/*/*.part")) < expected:
        assert time.monotonic() < deadline, "the files do not reach the disk"
        time.sleep(0.05)
    grown = resident(server) - before
    for client in sockets:
        client.close()
    assert grown < 40 << 20, f"{grown >> 20} MiB more"


@pytest.mark.slow
@pytest.mark.native
def test_memory_stays_bounded(server):
    crowd(server)
    before = resident(server)
    for _ in range(2):
        crowd(server)
    assert resident(server) < before + (32 << 20)
    assert resident(server) < 256 << 20


@pytest.mark.slow
def test_many_large_documents_at_once(server):
    """What JSON bodies take together is bounded: some are told to come back, none is lost."""
    body = b'["' + b"x" * (15 << 20) + b'"]'
    head = f"POST /get_tensor_values HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    clients = [open_socket(server) for _ in range(24)]
    statuses = []

    def send(client):
        client.sendall(head.encode() + body[:-1])
        barrier.wait()
        client.sendall(body[-1:])
        response = http.client.HTTPResponse(client)
        response.begin()
        statuses.append(response.status)

    barrier = threading.Barrier(len(clients))
    threads = [threading.Thread(target=send, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for client in clients:
        client.close()
    assert len(statuses) == 24 and set(statuses) == {400, 503}, statuses
    assert server.get("/health").status == 200


def test_too_large_documents(server):
    answer = server.post("/get_tensor_values", b"[" + b" " * (17 << 20), headers={"Content-Type": "application/json"})
    assert answer.status == 413
    answer = server.post("/get_tensor_values", b"[" * 70 + b"]" * 70, headers={"Content-Type": "application/json"})
    assert answer.status == 400 and "nests deeper than 64" in answer.error
    answer = server.post("/get_tensor_values", b"[1" + b",1" * 2_000_000 + b"]", headers={"Content-Type": "application/json"})
    assert answer.status == 400 and "more than 1048576 values" in answer.error


def test_events_of_dead_clients(server, tmp_path):
    """Followers that never read, or have gone, hold nobody up; all of them end with the server."""
    a = dump(tmp_path / "a", layers=1)
    comparison = finished(server, a)
    clients = [open_socket(server) for _ in range(60)]
    for number, client in enumerate(clients):
        client.sendall(f"GET /api/v1/comparisons/{comparison}/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        if number % 2:
            client.close()
    assert server.get("/health").status == 200
    assert server.stop() < 10 * PATIENCE
