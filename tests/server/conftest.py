"""Fixtures of the tests of `tdbg serve`: see serving.py."""
import pytest

from serving import Server


@pytest.fixture
def server(tmp_path):
    """A server with an empty data folder, which may open what lies in tmp_path."""
    data = tmp_path / "data"
    data.mkdir()
    with Server(data, "--root", tmp_path) as server:
        yield server


@pytest.fixture
def serve(tmp_path):
    """Starts servers: serve("--token", "x"). All use one data folder, one at a time; those that still run at the end
    are stopped."""
    data = tmp_path / "data"
    data.mkdir()
    servers = []

    def start(*args, **options):
        servers.append(Server(options.pop("data", data), *args, **options))
        return servers[-1]

    yield start
    for server in servers:
        if server.alive():
            server.stop()
