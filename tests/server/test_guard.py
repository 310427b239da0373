"""Who may ask: Host, Origin, token, session."""
import http.client
import socket

import pytest
from serving import PATIENCE


def raw(server, text):
    """The status of a request written by hand."""
    client = socket.create_connection(("127.0.0.1", server.port), timeout=20 * PATIENCE)
    client.sendall(text.replace("\n", "\r\n").encode())
    answer = http.client.HTTPResponse(client)
    answer.begin()
    return answer.status


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1234", "127.0.0.1", "127.9.9.9:80", "[::1]", "[::1]:5000"])
def test_hosts_of_this_machine(server, host):
    assert server.get("/health", headers={"Host": host}).status == 200


@pytest.mark.parametrize("host", ["evil.com", "127.0.0.1.evil.com", "localhost.evil.com", "10.0.0.1", "[::2]", "0.0.0.0"])
def test_other_hosts(server, host):
    answer = server.get("/health", headers={"Host": host})
    assert answer.status == 403 and "is not a name of this server" in answer.error


@pytest.mark.parametrize("host", ["", ":80", "localhost:x", "[::1", "[]", "a" * 300])
def test_hosts_that_are_none(server, host):
    assert server.get("/health", headers={"Host": host}).status == 400


def test_no_host(server):
    assert raw(server, "GET /health HTTP/1.1\n\n") == 400
    assert raw(server, "GET /health HTTP/1.0\n\n") == 400


@pytest.mark.parametrize("headers", [
    {"Origin": "http://evil.com"}, {"Origin": "null"}, {"Origin": "https://{host}"}, {"Origin": "http://{host}.evil.com"},
    {"Origin": "http://127.0.0.1:1"}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"},
    {"Origin": "http://evil.com", "Sec-Fetch-Site": "same-origin"},
])
def test_other_origins_change_nothing(server, headers):
    headers = {name: value.format(host=server.host) for name, value in headers.items()}
    answer = server.post("/api/v1/uploads?name=a", b"abc", headers=headers)
    assert answer.status == 403 and answer.error == "a page of another origin may change nothing here"
    assert server.delete("/api/v1/comparisons/0", headers=headers).status == 403
    assert server.get("/health", headers=headers).status == 200


def test_own_origin(server):
    for headers in ({"Origin": f"http://{server.host}", "Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}, {}):
        assert server.post("/api/v1/uploads?name=a", b"abc", headers=headers).status == 201


def test_session_is_made_once(server):
    cookie = server.get("/health").headers["Set-Cookie"]
    value, *attributes = cookie.split("; ")
    name, session = value.split("=")
    assert len(session) == 32 and set(session) <= set("0123456789abcdef")
    assert set(attributes) == {"Path=/", "HttpOnly", "SameSite=Lax"}
    assert server.get("/health", headers={"Cookie": value}).headers["Set-Cookie"] is None
    for bad in ("x" * 32, session[:-1], session.upper() + "A"):
        assert server.get("/health", headers={"Cookie": f"{name}={bad}"}).headers["Set-Cookie"] is not None


def test_token(serve):
    server = serve("--token", "open sesame;")
    for headers in ({}, {"Authorization": "Bearer nonsense"}, {"Authorization": "open sesame;"}):
        answer = server.get("/api/v1/status", headers=headers)
        assert answer.status == 401 and answer.headers["WWW-Authenticate"] == "Bearer"
    assert server.get("/").status == 401
    assert server.post("/api/v1/uploads?name=a", b"x").status == 401
    assert server.get("/api/v1/status", headers={"Authorization": "Bearer open sesame;"}).status == 200

    answer = server.get("/c/1?x=1&token=open+sesame%3B&y=2")
    assert answer.status == 303 and answer.headers["Location"] == "/c/1?x=1&y=2"
    cookie, *attributes = answer.headers["Set-Cookie"].split("; ")
    assert set(attributes) == {"Path=/", "HttpOnly", "SameSite=Strict"} and "sesame" not in cookie
    assert server.get("/api/v1/status", headers={"Cookie": cookie}).status == 200
    assert server.post("/api/v1/uploads?name=a", b"x", headers={"Cookie": cookie}).status == 201
    assert server.get("/api/v1/status", headers={"Cookie": cookie[:-1] + "x"}).status == 401
    assert server.get("/?token=wrong").status == 401


def test_beyond_loopback_a_token_is_made(serve):
    server = serve("--host", "0.0.0.0")
    token = server.address.query.removeprefix("token=")
    assert len(token) == 32
    assert server.get("/health").status == 401
    assert server.get("/health", headers={"Authorization": f"Bearer {token}"}).status == 200
    assert server.get("/health", headers={"Authorization": f"Bearer {token}", "Host": "10.1.2.3"}).status == 200
    assert server.get("/health", headers={"Authorization": f"Bearer {token}", "Host": "evil.com"}).status == 403
