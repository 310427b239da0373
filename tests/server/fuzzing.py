"""Requests that no honest client sends, each with the answers that are right for it.

    for data, statuses in requests(seed, comparison): …

`data` is what goes over the wire; `statuses` the set of fitting status codes. None in it: hanging up without a word is
fine too, because what came was not HTTP. The same seed gives the same requests.
"""
import json
import random
import string

REFUSED = {400, 403, 404, 405, 409, 413, 414, 415, 422, 431}
JSON_ROUTES = [
    ("POST", "/get_tensor_values"), ("POST", "/get_tensor_shapes"), ("POST", "/get_tensor_values_manual"),
    ("POST", "/reorder_matches"), ("POST", "/regroup_matches"), ("POST", "/manual_pair"), ("POST", "/api/v1/comparisons"),
    ("PUT", "/api/v1/comparisons/{id}/settings"), ("PUT", "/api/v1/comparisons/{id}/state"),
    ("PATCH", "/api/v1/comparisons/{id}/state"),
    ("POST", "/api/v1/run/control"),
]
KEYS = ["match_index", "dimension_indices", "count", "get_argmax", "get_final_shape", "tensor1_indices", "tensor2_indices",
        "old_index", "new_index", "group_by", "model1_file", "model2_file", "a", "b", "path", "upload", "settings", "title",
        "match", "threshold", "policy", "rtol", "atol", "reference", "layout", "top", "pairs", "x", "do", "pattern", "when", "number"]
LOOKS = ["", "/values", "/mapped", "/worst", "/find", "/histogram", "/density", "/profile", "/tile", "/export"]
PARAMETERS = ["slice", "a", "b", "count", "side", "low", "high", "what", "from", "limit", "bins", "size", "view", "level", "x", "y",
              "reduce", "format", "transpose", "width", "path", "name", "generation"]
ODD = ["", "0", "-1", "1", "3", "99999999999999999999", "1e400", "nan", "inf", ":", "::", "0:16", "[::-1]", "0,0", "0,:", ":,:",
       "...", ",", "a", "difference", "npy", "csv", "mean", "max", "flat", "%00", "%ff", "%", "%2e%2e%2f", "../../etc/passwd",
       "/etc/passwd", "'", '"', "<script>", "é", "a" * 3000, "1;2", "0:0", "5:1:-1", "zero"]


class Fuzzer:
    def __init__(self, seed, comparison):
        self.random = random.Random(seed)
        self.comparison = comparison

    def text(self, longest=40):
        letters = string.printable + "éß漢\u0000\ud83d"
        return "".join(self.random.choice(letters) for _ in range(self.random.randrange(longest)))

    def value(self, depth=0):
        """Any JSON value, often one that a route may take for its own."""
        pick = self.random.random()
        if depth > 3 or pick < 0.35:
            return self.random.choice([None, True, False, 0, 1, -1, 2**31, 2**63 - 1, -2**63, 1e300, 0.5, "", "exact", "a", "layer",
                                       self.comparison, "/etc/passwd", "../x", self.text()])
        if pick < 0.6:
            return [self.value(depth + 1) for _ in range(self.random.randrange(5))]
        return {self.random.choice(KEYS): self.value(depth + 1) for _ in range(self.random.randrange(6))}

    def path(self, template):
        return template.replace("{id}", self.random.choice([self.comparison, "0" * 16, "x", "%2e%2e"]))

    def request(self, method, target, body=b"", headers=()):
        lines = [f"{method} {target} HTTP/1.1", "Host: 127.0.0.1", "Connection: close", *headers]
        if body or method != "GET":
            lines.append(f"Content-Length: {len(body)}")
        return "\r\n".join(lines).encode("utf-8", "surrogatepass") + b"\r\n\r\n" + body

    def mutated(self, data):
        data = bytearray(data)
        for _ in range(self.random.randrange(1, 6)):
            kind, at = self.random.randrange(4), self.random.randrange(len(data) + 1)
            if kind == 0 and data:
                data[at % len(data)] = self.random.randrange(256)
            elif kind == 1:
                del data[at:at + self.random.randrange(1, 10)]
            elif kind == 2:
                data[at:at] = self.random.randbytes(self.random.randrange(1, 8))
            else:
                data[at:at] = data[max(0, at - 20):at]
        return bytes(data)

    # --- kinds of requests: each returns (data, statuses) ---

    def broken_json(self):
        method, path = self.random.choice(JSON_ROUTES)
        body = json.dumps(self.value()).encode("utf-8", "surrogatepass")
        body = self.random.choice([self.mutated(body), b"[" * self.random.randrange(100, 5000), b'{"a":' * 200, b"", b"nul",
                                   b'{"a":1,"a":2}', b"\xff\xfe", b'"\\ud800"', b"[1" + b",1" * 2_000_000 if self.random.random() < 0.01 else b"[1,"])
        return self.request(method, self.path(path), body, ["Content-Type: application/json"]), REFUSED | {200, 202, 204}

    def odd_json(self):
        method, path = self.random.choice(JSON_ROUTES)
        body = json.dumps(self.value()).encode("utf-8", "surrogatepass")
        return self.request(method, self.path(path), body, ["Content-Type: application/json; charset=utf-8"]), REFUSED | {200, 202, 204}

    def other_type(self):
        method, path = self.random.choice(JSON_ROUTES)
        kind = self.random.choice(["text/plain", "application/jsonx", "multipart/form-data", "application/x-www-form-urlencoded", "", ";"])
        return self.request(method, self.path(path), b"{}", [f"Content-Type: {kind}"] if kind else []), {400, 404, 415}

    def form(self):
        boundary = self.random.choice(["b", "-" * 30, "x" * 69, "é", '"quoted"', ""])
        parts = []
        for _ in range(self.random.choice([0, 1, 2, 3, 70])):
            name = self.random.choice(["model1", "model2", "single_file", "upload_mode", "", "é", "x" * 500])
            file = self.random.choice(["", '; filename="a.npy"', '; filename="../../x"', '; filename="', "; filename=a", '; filename=""'])
            content = self.random.choice([b"", b"abc", b"\x93NUMPY\x01\x00", self.random.randbytes(200), b"\r\n--b\r\n"])
            parts.append(f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"{file}\r\n\r\n'.encode() + content + b"\r\n")
        body = b"".join(parts) + self.random.choice([f"--{boundary}--\r\n".encode(), b"", b"--", b"\r\n"])
        if self.random.random() < 0.5:
            body = self.mutated(body)
        return self.request("POST", "/upload", body, [f"Content-Type: multipart/form-data; boundary={boundary}"]), REFUSED | {200}

    def query(self):
        look = self.random.choice(LOOKS)
        pair = self.random.choice(["0", "1", "-1", "99", "x", "18446744073709551616"])
        query = "&".join(f"{self.random.choice(PARAMETERS)}={self.random.choice(ODD)}" for _ in range(self.random.randrange(6)))
        target = self.path("/api/v1/comparisons/{id}/pairs/" + pair + look) + "?" + query
        return self.request("GET", "".join(c if c.isprintable() and c != " " else "+" for c in target)), REFUSED | {200}

    def tricky_path(self):
        pieces = ["..", "%2e%2e", ".", "", "%00", "%2f", "api", "v1", "assets", "comparisons", "health", "\\..", "%c0%ae", "é", "a" * 300,
                  "{}", "%7b%7d", "etc", "passwd", "index.html"]
        target = "/" + "/".join(self.random.choice(pieces) for _ in range(self.random.randrange(1, 16)))
        return self.request(self.random.choice(["GET", "HEAD", "POST", "DELETE"]), target), REFUSED | {200}

    def folder(self):
        path = self.random.choice(["/", "/etc", "..", "%2e%2e/..", "/proc/self/root", "%00", "%ff", "/" + "a/" * 2000, "", "."])
        return self.request("GET", f"/api/v1/folder?path={path}"), {200, 400, 403, 404, 414}

    def upload(self):
        name = self.random.choice(["a.npy", "..", "%2e%2e%2fx", "%00", "", "a" * 5000, "%ff", "b.zip"])
        return self.request("POST", f"/api/v1/uploads?name={name}", self.random.randbytes(self.random.randrange(300))), {201, 400, 414}

    def huge_headers(self):
        headers = self.random.choice([
            ["X: " + "a" * self.random.choice([10_000, 60_000, 200_000])],
            [f"X{i}: {i}" for i in range(self.random.choice([100, 5000]))],
            ["Cookie: " + "; ".join(f"a{i}=b" for i in range(3000))],
            ["a" * 100_000],
        ])
        return self.request("GET", "/health", headers=headers), {200, 400, 413, 431, None}

    def odd_headers(self):
        headers = [self.random.choice([
            "Content-Length: -1", "Content-Length: 99999999999999999999", "Content-Length: x", "Transfer-Encoding: chunked",
            "Transfer-Encoding: gzip", "Expect: 100-continue", "Expect: x", "Host: evil.com", "Origin: http://evil.com",
            "Sec-Fetch-Site: cross-site", "Authorization: Bearer " + "x" * 500, "Cookie: =;;=", "Cookie: tdbg_session_1=" + "0" * 32,
            "If-None-Match: *", "Range: bytes=0-", "Upgrade: websocket", "Content-Type: multipart/form-data", " folded", "NoColon", ":",
            "X: \x00", "X: é", "Accept: text/html"]) for _ in range(self.random.randrange(1, 4))]
        method, path = self.random.choice([("GET", "/health"), ("GET", "/"), ("POST", "/upload"), ("POST", "/get_tensor_values")])
        return self.request(method, path, headers=headers), REFUSED | {200, 501, None}

    def garbage(self):
        data = self.random.choice([
            self.random.randbytes(self.random.randrange(1, 400)), b"\r\n" * 50, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\nHost: 127.0.0.1\r\n\r\n",
            b"GET /health\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            b" / HTTP/1.1\r\n\r\n", b"GET  /  HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", b"A" * 70_000,
            self.mutated(self.request("POST", "/get_tensor_values", b"{}", ["Content-Type: application/json"])),
            self.mutated(self.request("GET", "/api/v1/status"))])
        return data, REFUSED | {200, 303, 304, 501, 505, None}

    def next(self):
        kinds = [self.broken_json, self.odd_json, self.odd_json, self.other_type, self.form, self.form, self.query, self.query, self.query,
                 self.tricky_path, self.folder, self.upload, self.odd_headers, self.garbage]
        if self.random.random() < 0.01:
            return self.huge_headers()
        return self.random.choice(kinds)()


def requests(seed, comparison, count):
    fuzzer = Fuzzer(seed, comparison)
    for _ in range(count):
        yield fuzzer.next()
