"""A server under load: good and bad requests over many connections at once, on this machine alone.

    python benchmarks/serve.py RUN --connections 100 --seconds 60

Starts ``subgnn serve RUN`` on a free port of 127.0.0.1 and sends it the requests of people and of faulty programs.
Prints the good requests that failed (none should), the bad ones that were not refused correctly, latencies by kind of
request (p50 and p99), the CPU time of the server and of this client for each request, the server's memory before and
after, and its time for one prediction without other load. CPU times can be compared on a busy machine, too. The server
first gets some seconds to prepare explanations. Exits with 1 if a response was wrong.
"""

import argparse
import asyncio
import json
import random
import subprocess
import sys
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import accumulate
from statistics import median
from urllib.parse import urlsplit

MOST_REQUESTS = 1_000_000
ALONE = 50


@dataclass(frozen=True, slots=True)
class RequestKind:
    """A kind of request, its frequency, and the correct status codes."""

    name: str
    weight: float
    method: str
    path: str
    body: bytes | None = None
    expected: tuple[int, ...] = (200,)


@dataclass(slots=True)
class Tally:
    """The responses."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    statuses: Counter[tuple[str, int]] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)


class Connection:
    """One HTTP/1.1 connection, opened again when the server closes it."""

    def __init__(self, port: int) -> None:
        self.port, self.streams = port, None

    async def send(self, method: str, path: str, body: bytes | None) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of the response."""
        if self.streams is None:
            self.streams = await asyncio.open_connection("127.0.0.1", self.port)
        reader, writer = self.streams
        lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json"]
        lines += [f"Content-Length: {len(body)}"] if body is not None else []
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode() + (body or b""))
        await writer.drain()
        status = int((await reader.readline()).split()[1])
        headers = {}
        while line := (await reader.readline()).strip():
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.lower()] = value.strip()
        content = await reader.readexactly(int(headers["content-length"]))
        if headers.get("connection") == "close":
            self.close()
        return status, headers, content

    def close(self) -> None:
        """Close it; the next request opens another."""
        if self.streams is not None:
            self.streams[1].close()
        self.streams = None


def request_kinds(run: str, num_nodes: int, rng: random.Random) -> list[RequestKind]:
    """Good and bad requests for random node sets."""
    api = f"/api/runs/{run}"

    def nodes(most: int = 30) -> list[str]:
        return [f"#{node}" for node in rng.sample(range(num_nodes), min(num_nodes, rng.randint(1, most)))]

    def subgraphs(*given: list[str]) -> bytes:
        return json.dumps({"subgraphs": given}).encode()

    found = []
    for _ in range(100):
        drawing = json.dumps({"nodes": nodes(), "most": 40}).encode()
        found += [
            RequestKind("predict one", 60, "POST", f"{api}/predict", subgraphs(nodes())),
            RequestKind("predict 16", 8, "POST", f"{api}/predict", subgraphs(*(nodes() for _ in range(16)))),
            RequestKind("embed", 4, "POST", f"{api}/embed", subgraphs(nodes())),
            RequestKind("draw", 4, "POST", f"{api}/draw", drawing),
            RequestKind("search", 4, "POST", f"{api}/search", subgraphs(nodes())),
            RequestKind("explain", 1, "POST", f"{api}/explain", subgraphs(nodes(10))),
            RequestKind("find nodes", 8, "GET", f"{api}/nodes?q={rng.choice('abcdefgh123')}{rng.choice('abc123')}"),
            RequestKind("card", 3, "GET", api),
            RequestKind("bad: unknown node", 2, "POST", f"{api}/predict", subgraphs([f"#{num_nodes}"]), (422,)),
            RequestKind("bad: no JSON", 2, "POST", f"{api}/predict", b'{"subgraphs": [[', (400,)),
            RequestKind("bad: no such run", 2, "POST", "/api/runs/nobody/predict", subgraphs(["#0"]), (404,)),
            RequestKind("bad: too large", 1, "POST", f"{api}/predict", b" " * 1_200_000, (413,)),
            RequestKind("bad: a path", 1, "GET", "/static/../../etc/passwd", None, (404,)),
        ]
    return found


async def client(port: int, kinds: list[RequestKind], tally: Tally, *, until: float, seed: int) -> None:
    rng, connection = random.Random(seed), Connection(port)
    weights = list(accumulate(kind.weight for kind in kinds))
    while time.monotonic() < until and sum(map(len, tally.seconds.values())) < MOST_REQUESTS:
        (kind,) = rng.choices(kinds, cum_weights=weights)
        begin = time.perf_counter()
        try:
            async with asyncio.timeout(120):
                status, _, _ = await connection.send(kind.method, kind.path, kind.body)
        except (OSError, asyncio.IncompleteReadError, TimeoutError, IndexError) as error:
            connection.close()
            status = 0
            tally.wrong[f"{kind.name}: {type(error).__name__}"] += 1
        else:
            if status not in kind.expected:
                tally.wrong[f"{kind.name}: {status}"] += 1
        tally.seconds[kind.name].append(time.perf_counter() - begin)
        tally.statuses[kind.name, status] += 1
    connection.close()


async def used(port: int) -> tuple[float, float]:
    """The server's resident memory in MB, and its CPU seconds until now."""
    connection = Connection(port)
    _, _, text = await connection.send("GET", "/metrics", None)
    connection.close()
    values = dict(line.rsplit(" ", 1) for line in text.decode().splitlines())
    return float(values["process_resident_memory_bytes"]) / 1e6, float(values["process_cpu_seconds_total"])


async def unloaded(port: int, kinds: list[RequestKind]) -> list[float]:
    """The server's milliseconds for predictions of one subgraph, one after the other."""
    connection, found = Connection(port), []
    some = [kind for kind in kinds if kind.name == "predict one"][:ALONE]
    for kind in some:
        status, headers, _ = await connection.send(kind.method, kind.path, kind.body)
        assert status == 200
        found.append(float(headers["server-timing"].partition("dur=")[2]))
    connection.close()
    return found


async def load(port: int, *, run: str, connections: int, seconds: float, warm_up: float, only: str | None) -> int:
    await asyncio.sleep(warm_up)
    first = Connection(port)
    card = json.loads((await first.send("GET", f"/api/runs/{run}", None))[2])
    first.close()
    kinds = request_kinds(run, card["num_nodes"], random.Random(0))
    own = sorted(await unloaded(port, kinds))
    kinds = [kind for kind in kinds if only in (None, kind.name)]
    print(f"one prediction, without other load, at the server: median {median(own):.1f} ms, longest {own[-1]:.1f} ms")
    for name, length in (("warm-up", warm_up), ("load", seconds)):
        tally, (before, at_server), here = Tally(), await used(port), time.process_time()
        until = time.monotonic() + length
        await asyncio.gather(*(client(port, kinds, tally, until=until, seed=i) for i in range(connections)))
        here, (after, until_now) = time.process_time() - here, await used(port)
        count = sum(map(len, tally.seconds.values()))
        at_server = until_now - at_server
        print(f"{name}: {count} requests in {length:g} s over {connections} connections, {count / length:.0f} a second")
        print(f"CPU time of each: {at_server / count * 1000:.2f} ms of the server, {here / count * 1000:.2f} here")
        print(f"memory: {before:.0f} MB before, {after:.0f} MB after")
    for kind, times in sorted(tally.seconds.items()):
        times.sort()
        p50, p99 = (times[min(len(times) - 1, int(len(times) * p))] * 1000 for p in (0.5, 0.99))
        statuses = {status: n for (name, status), n in sorted(tally.statuses.items()) if name == kind}
        print(f"  {kind:20} {len(times):7} requests   p50 {p50:8.1f} ms   p99 {p99:8.1f} ms   {statuses}")
    good = sum(n for what, n in tally.wrong.items() if not what.startswith("bad"))
    bad = sum(tally.wrong.values()) - good
    print(f"good requests that failed: {good}; bad requests that were not refused: {bad} {dict(tally.wrong) or ''}")
    return 1 if tally.wrong else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", help="the folder of a finished run")
    parser.add_argument("--connections", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--warm-up", type=float, default=5, help="seconds without load, and of load, before it counts")
    parser.add_argument("--only", help="send requests of this kind alone, such as 'predict one'")
    options = parser.parse_args()
    command = [sys.executable, "-m", "subgnn", "serve", f"run={options.run}", "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            line = server.stdout.readline() if server.stdout else ""
            if not line:
                print("the server did not start: start it by hand to see why", file=sys.stderr)
                return 1
            port = urlsplit(json.loads(line)["url"]).port or 0
            given = {name: value for name, value in vars(options).items() if name != "run"}
            return asyncio.run(load(port, run="run", **given))
        finally:
            server.terminate()


if __name__ == "__main__":
    sys.exit(main())
