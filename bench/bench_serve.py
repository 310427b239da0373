#!/usr/bin/python3
"""Requests a second that `tdbg serve` answers, against a bare libmicrohttpd that answers with a constant of that size.

`POST /get_tensor_values` for 16 values, 8 connections, by wrk; the same with the arg-max asked for. The three are
measured in turn, several times, and the best of each counts: a busy moment then hits none of the ratios. The two
programs have as many threads.
"""
import http.client
import io
import json
import os
import pathlib
import re
import socket
import subprocess
import tempfile

import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("TDBG", ROOT / "build" / "tdbg")).parent
CONNECTIONS, SECONDS, ROUNDS = 8, 4, 3

SCRIPT = """
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Cookie"] = "%s"
wrk.body = '%s'
done = function(summary, latency)
    local bad = summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.write
    io.write(string.format("MEASURED %%f %%f %%d\\n", summary.requests / (summary.duration / 1e6),
        latency:percentile(99) / 1000, bad))
end
"""


def saved(tensor):
    out = io.BytesIO()
    torch.save(tensor, out)
    return out.getvalue()


def upload(port):
    """Compares two tensors; the cookie under which they are known."""
    torch.manual_seed(1)
    tensor = torch.randn(64, 76, 64)
    edge = "----bench"
    parts = []
    for field, value in (("model1", tensor), ("model2", tensor + 0.01 * torch.randn(64, 76, 64))):
        parts += [f'--{edge}\r\nContent-Disposition: form-data; name="{field}"; filename="{field}.pth"\r\n\r\n'.encode(),
                  saved(value.to(torch.bfloat16)), b"\r\n"]
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("POST", "/upload", b"".join(parts) + f"--{edge}--\r\n".encode(),
                       {"Content-Type": f"multipart/form-data; boundary={edge}"})
    answer = connection.getresponse()
    assert answer.status == 200, answer.read()
    answer.read()
    return answer.getheader("Set-Cookie").split(";")[0]


def ask(port, cookie, body):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("POST", "/get_tensor_values", body, {"Content-Type": "application/json", "Cookie": cookie})
    answer = connection.getresponse()
    text = answer.read()
    assert answer.status == 200 and len(json.loads(text)["tensor1_values"]) == 16, text
    return len(text)


class Load:
    """wrk with one kind of request: the best of its rounds."""

    def __init__(self, folder, name, port, cookie, body):
        self.url, self.script = f"http://127.0.0.1:{port}/get_tensor_values", folder / f"{name}.lua"
        self.script.write_text(SCRIPT % (cookie, body))
        self.rate, self.p99 = 0, float("inf")

    def round(self):
        done = subprocess.run(["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{SECONDS}s", "-s", self.script, self.url],
                              capture_output=True, text=True, check=True)
        rate, p99, bad = re.search(r"MEASURED (\S+) (\S+) (\d+)", done.stdout).groups()
        assert bad == "0", done.stdout
        self.rate, self.p99 = max(self.rate, float(rate)), min(self.p99, float(p99))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def measure(folder, port, bare_port, cookie, plain, argmax):
    loads = [Load(folder, "bare", bare_port, cookie, plain), Load(folder, "plain", port, cookie, plain),
             Load(folder, "argmax", port, cookie, argmax)]
    for _ in range(ROUNDS):
        for load in loads:
            load.round()
    return loads


def main():
    subprocess.run(["ninja", "-C", BUILD, "--quiet", "bench/bare_http"], check=True)
    question = {"match_index": 0, "dimension_indices": [5, 12, 40], "count": 16}
    plain, argmax = json.dumps(question), json.dumps({**question, "get_argmax": True})
    threads = str(max(4, 2 * os.cpu_count()))  # as the server has them
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        folder = pathlib.Path(name)
        server = subprocess.Popen([BUILD / "tdbg", "serve", "--port", "0", "--data", folder / "data"],
                                  stdout=subprocess.PIPE, text=True)
        bare = None
        try:
            port = int(re.search(r":(\d+)", server.stdout.readline()).group(1))
            cookie = upload(port)
            bare_port = free_port()
            bare = subprocess.Popen([BUILD / "bench" / "bare_http", str(bare_port), str(ask(port, cookie, plain)), threads],
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            assert bare.stdout.readline() == "ready\n"
            base, ours, theirs = measure(folder, port, bare_port, cookie, plain, argmax)
        finally:
            server.terminate()
            server.wait()
            if bare:
                bare.stdin.close()
                bare.wait()
    print(f"values / bare libmicrohttpd\t{ours.rate / base.rate:.3f}\t>=0.5\t{ours.rate:,.0f} of {base.rate:,.0f} requests/s")
    print(f"values, p99 in ms\t{ours.p99:.2f}\t<=5\t{CONNECTIONS} connections; bare {base.p99:.2f} ms")
    print(f"values / values with arg-max\t{ours.rate / theirs.rate:.3f}\t<=1.5\t{theirs.rate:,.0f} requests/s with it")


if __name__ == "__main__":
    main()
