"""A running `tdbg serve`, and asking it things.

    with Server(folder) as server:
        assert server.get("/health").json["status"] == "healthy"
        answer = server.post("/api/v1/comparisons", {"a": {"path": str(a)}, "b": {"path": str(b)}})
        assert answer.status == 202

`folder` is the data folder; it survives the server, so that starting another one on it is a restart. A server must
end by itself with status 0 and say nothing on stderr, or the test fails: that is how sanitizers are heard.
"""
import http.client
import json
import os
import pathlib
import signal
import subprocess
import time
import urllib.parse

from built import BINARY, PATIENCE


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    @property
    def json(self):
        assert self.headers["Content-Type"] == "application/json", (self.status, self.body[:200])
        return json.loads(self.body)

    @property
    def error(self):
        """The text of an error, which is all that its document holds."""
        document = self.json
        assert list(document) == ["error"], document
        return document["error"]

    def __repr__(self):
        return f"<{self.status} {self.body[:200]!r}>"


class Server:
    """`tdbg serve` on a free port of this machine."""

    def __init__(self, data, *args, cwd=None, env=None):
        options = "exitcode=99:halt_on_error=1:print_stacktrace=1"
        environment = {
            **os.environ, "LC_ALL": "C.UTF-8", "NO_COLOR": "1",
            "ASAN_OPTIONS": f"{options}:allocator_may_return_null=1:{os.environ.get('ASAN_OPTIONS', '')}",
            "UBSAN_OPTIONS": options, "TSAN_OPTIONS": options, **(env or {}),
        }
        self.data = pathlib.Path(data)
        self.process = subprocess.Popen([BINARY, "serve", "--port", "0", "--data", data, *map(str, args)],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True, env=environment, cwd=cwd or data)
        self.url = self.process.stdout.readline().strip()
        if not self.url:
            raise AssertionError(f"the server did not start: {self.process.communicate()[1]}")
        self.address = urllib.parse.urlsplit(self.url)
        self.port = self.address.port
        self.host = f"127.0.0.1:{self.port}"

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if self.process.poll() is None:
            if kind:
                self.kill()
            else:
                self.stop()

    def stop(self, number=signal.SIGTERM):
        """Asks it to end, and looks at how it did. Returns the seconds it took."""
        begin = time.monotonic()
        self.process.send_signal(number)
        try:
            out, err = self.process.communicate(timeout=20 * PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        assert self.process.returncode == 0 and err == "", f"status {self.process.returncode}\n{err}"
        return time.monotonic() - begin

    def kill(self):
        self.process.kill()
        self.process.communicate()

    def alive(self):
        return self.process.poll() is None

    def connect(self, timeout=30):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout * PATIENCE)

    def request(self, method, path, body=None, headers=None, timeout=60):
        """`body`: bytes as they are, anything else as JSON."""
        headers = dict(headers or {})
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            headers.setdefault("Content-Type", "application/json")
        connection = self.connect(timeout)
        try:
            connection.request(method, path, body, headers)
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def get(self, path, **options):
        return self.request("GET", path, **options)

    def post(self, path, body=None, **options):
        return self.request("POST", path, body, **options)

    def put(self, path, body=None, **options):
        return self.request("PUT", path, body, **options)

    def delete(self, path, **options):
        return self.request("DELETE", path, **options)

    def upload(self, name, data):
        """The id of an upload."""
        answer = self.post(f"/api/v1/uploads?name={urllib.parse.quote(name, safe='')}", data)
        assert answer.status == 201, answer
        return answer.json["id"]
