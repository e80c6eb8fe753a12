"""How long a page or another client waits for lists while downloads arrive: fk rpc beside aria2c with --enable-rpc."""

import contextlib
import http.client
import json
import os
import re
import signal
import statistics
import subprocess
import threading
import time

from servers import free_port

#: The questions that AriaNg asks all the time, with the keys that it names.
KEYS = ["gid", "totalLength", "completedLength", "uploadSpeed", "downloadSpeed", "connections", "numSeeders", "seeder", "status", "errorCode",
        "verifiedLength", "verifyIntegrityPending", "files", "bittorrent", "infoHash"]
LISTS = {
    "tellActive": ("aria2.tellActive", KEYS), "tellWaiting": ("aria2.tellWaiting", 0, 1000, KEYS),
    "tellStopped": ("aria2.tellStopped", -1, 1000, KEYS), "getGlobalStat": ("aria2.getGlobalStat",),
}
#: The questions of our own page.
PAGE = {
    "fk.tasks": ("fk.tasks", {"limit": 200}), "fk.tasks by name": ("fk.tasks", {"sort": "name", "offset": 5000, "limit": 200}),
    "fk.tasks with a filter": ("fk.tasks", {"text": "77", "states": ["suspend"], "limit": 200}), "fk.barrels": ("fk.barrels", {}),
    "fk.status": ("fk.status", {}),
}


class Client:
    """One connection that stays open, as a browser's."""

    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def post(self, method, *params):
        """The bytes of the answer."""
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        self.connection.request("POST", "/jsonrpc", body, {"Content-Type": "application/json"})
        return self.connection.getresponse().read()

    def call(self, method, *params):
        answer = json.loads(self.post(method, *params))
        if "error" in answer:
            raise AssertionError(f"{method}: {answer['error']}")
        return answer["result"]

    def add(self, urls, **options):
        calls = [{"methodName": "aria2.addUri", "params": [[url], options]} for url in urls]
        for begin in range(0, len(calls), 500):
            self.call("system.multicall", calls[begin:begin + 500])


@contextlib.contextmanager
def served(program, words, folder):
    """The program and a client of it."""
    with open(folder / "output", "w+b") as output:
        process = subprocess.Popen([str(word) for word in words], cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        try:
            port = None
            for _ in range(400):
                found = re.search(rb"127\.0\.0\.1:(\d+)/jsonrpc", (folder / "output").read_bytes())
                port = int(found[1]) if found else None if program.startswith("fk") else int(words[-1].rpartition("=")[2])
                try:
                    if port:
                        Client(port).call("aria2.getVersion")
                        break
                except OSError:
                    pass
                time.sleep(0.025)
            else:
                raise AssertionError(f"{program} does not answer: {(folder / 'output').read_bytes()[-400:]}")
            yield port
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()


class Load:
    """Keeps downloads arriving until it is closed."""

    def __init__(self, port, add):
        self.isOver = threading.Event()
        self.port, self.add = port, add
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        client = Client(self.port)
        while not self.isOver.is_set():
            begin = time.monotonic()
            self.add(client)
            self.isOver.wait(max(0, 0.1 - (time.monotonic() - begin)))

    def close(self):
        self.isOver.set()
        self.thread.join()


def measured(bench, program, words, load, count, seconds):
    """Milliseconds of each question: a list by name."""
    folder = bench.fresh()
    (folder / "down").mkdir()
    times = {}
    with served(program, words(folder), folder) as port:
        client = Client(port)
        # Nobody answers there, and they are paused. For fk they are members of a barrel, which the page shows as well.
        urls = [f"http://127.0.0.1:9/waiting/{number:05}.bin" for number in range(count)]
        questions = dict(LISTS)
        if program.startswith("fk"):
            questions |= PAGE
            client.call("fk.import", {"text": "\n".join(urls), "barrel": "all", "paused": True})
        else:
            client.add(urls, pause="true")
        running = Load(port, load(bench, folder))
        try:
            time.sleep(1)
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                for name, question in questions.items():
                    begin = time.perf_counter()
                    client.post(*question)
                    times.setdefault(name, []).append((time.perf_counter() - begin) * 1000)
                time.sleep(0.02)
        finally:
            running.close()
    return times


def large(bench, folder):
    """Two files at once, so that a GiB/s arrives if the machine has it. Finished ones are emptied, to spare the memory."""
    names = []

    def add(client):
        running = int(client.call("aria2.getGlobalStat")["numActive"])
        for _ in range(2 - running):
            names.append(f"large-{len(names)}")
            client.add([f"{bench.nginx.plain}/big"], out=names[-1])
        for name in names[:-3]:
            with contextlib.suppress(OSError):
                os.truncate(folder / "down" / name, 0)

    return add


def small(bench, folder):
    """500 files a second."""
    numbers = iter(range(1 << 30))
    return lambda client: client.add([f"{bench.nginx.plain}/any/{next(numbers)}" for _ in range(50)])


def rows(bench, Row, Goal):
    bench.make_file("any.bin", 1024)
    bench.make_file("big", bench.scale(1 << 30))
    count, seconds = bench.scale(10_000), max(2, bench.scale(10))
    port = free_port()
    programs = {
        name: (lambda folder, fk=fk: [
            fk, "rpc", "--no-secret", "--listen", "127.0.0.1:0", "--work-path", folder / "work", "-d", folder / "down"])
        for name, fk in bench.builds().items()}
    if not bench.before:
        programs["aria2"] = lambda folder: [
            "aria2c", "-q", "--enable-rpc", "--file-allocation=none", "--max-download-result=100000", "--allow-overwrite=true", "-j5",
            f"--dir={folder / 'down'}", f"--rpc-listen-port={port}"]
    found = []
    for title, load in (("large files", large), ("500 files a second", small)):
        times = {program: measured(bench, program, words, load, count, seconds) for program, words in programs.items()}
        for name, questions in (("aria2's lists", LISTS), ("the page's questions", PAGE)):
            for what, take in (("median", 50), ("99th percentile", 99)):
                values = {}
                for program, own in times.items():
                    every = [each for question in questions for each in own.get(question, [])]
                    if every:
                        values[program] = round(statistics.quantiles(every, n=100, method="inclusive")[take - 1], 2)
                found.append(Row(f"{name} of {count:,} tasks while {title} arrive: {what}", "ms", values,
                                 [Goal("ms", 20.0)] if take == 99 else []))
        if os.environ.get("FK_BENCH_EACH"):
            for program, own in times.items():
                for question, each in own.items():
                    parts = statistics.quantiles(each, n=100, method="inclusive")
                    print(f"  {title}, {program}, {question}: {len(each)} times, median {parts[49]:.2f}, 99th {parts[98]:.2f} ms", flush=True)
    return found
