"""Thousands of tasks against a server that fails one request in five: cut, 503 with Retry-After, a short body, silence.

All of them have to complete with the right bytes, in little memory, and leave no descriptor open. And the queue never
stalls: the server knows which file may be asked for again since when, and while one of them is due and a slot is free,
fk has to ask within two seconds."""

import asyncio
import os
import random
import shutil
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from points import Outcome, Score
from sandbox import clean_environment, digest

JOBS = 32
TASKS = 10_000
#: So many names of the machine itself, because a Retry-After holds for a host.
HOSTS = 8
PER_HOST = 16
#: --timeout, and with it how long silence lasts.
SILENCE = 2
FAILURES = {"reset": 8, "head": 2, "503 0": 4, "503 1": 1, "short": 8, "stall": 2}
#: How late fk may be.
GRACE = 2.0
MEMORY = 100 << 20
DESCRIPTORS = 320
#: A file that lasts until everything else is there: what fk holds open then is too much.
HOLD = "hold"
HOLD_LENGTH = 1_000_000


def content(name, seed):
    chosen = random.Random(f"{seed}:{name}")
    return chosen.randbytes(chosen.choice((0, 1, 700, 8_000, 16_000, 30_000)))


class File:
    """What the server knows of a file: since when the next request for it may come, and must."""

    def __init__(self, name, data):
        self.name, self.data = name, data
        self.failures = 0
        self.active = False
        self.complete = False
        self.due = None


class FailingServer:
    def __init__(self, names, seed):
        self.chosen = random.Random(seed)
        self.seed = seed
        self.files = {name: File(name, content(name, seed)) for name in names}
        self.open = len(names)
        self.is_released = False
        self.requests = self.failed = self.active = 0
        self.host_load = {}
        self.host_pause = {}
        self.longest = 0.0
        self.loop = asyncio.new_event_loop()
        ready = threading.Event()
        threading.Thread(target=self._run, args=(ready,), daemon=True).start()
        ready.wait()

    def host(self, name):
        return "127.0.0.100" if name == HOLD else f"127.0.0.{1 + sum(name.encode()) % HOSTS}"

    def url(self, name):
        return f"http://{self.host(name)}:{self.port}/{name}"

    def _run(self, ready):
        asyncio.set_event_loop(self.loop)
        server = self.loop.run_until_complete(asyncio.start_server(self._accept, "0.0.0.0", 0, backlog=512))
        self.port = server.sockets[0].getsockname()[1]
        self.loop.create_task(self._watch())
        ready.set()
        self.loop.run_forever()

    # -- The watchdog

    async def _watch(self):
        """The longest time in which somebody was due, a slot was free for him, and nobody asked."""
        last, since = -1, self.loop.time()
        while True:
            await asyncio.sleep(0.05)
            now = self.loop.time()
            if self.requests != last or not self._could_run(now):
                last, since = self.requests, now
            self.longest = max(self.longest, now - since)

    def _could_run(self, now):
        if self.requests == 0 or self.active >= JOBS:
            return False
        return any(
            not file.active and not file.complete and (file.due or 0) <= now
            and self.host_pause.get(host := self.host(file.name), 0) <= now
            and self.host_load.get(host, 0) < PER_HOST
            for file in self.files.values())

    # -- Answers

    async def _accept(self, reader, writer):
        try:
            while await self._answer(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _answer(self, reader, writer):
        words = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        name = words[0].split(" ")[1].lstrip("/")
        headers = {key.lower(): value.strip() for key, _, value in (line.partition(":") for line in words[1:])}
        if name == HOLD:
            return await self._hold(writer)
        file = self.files[name]
        host = self.host(name)
        file.active = True
        self.requests += 1
        self.active += 1
        self.host_load[host] = self.host_load.get(host, 0) + 1
        try:
            return await self._serve(file, headers, reader, writer)
        finally:
            file.active = False
            self.active -= 1
            self.host_load[host] -= 1

    async def _serve(self, file, headers, reader, writer):
        start, end, tag = 0, len(file.data), f'"{len(file.data)}"'
        wanted = headers.get("range", "")
        if wanted.startswith("bytes=") and headers.get("if-range", tag) == tag:
            first, _, last = wanted[6:].partition("-")
            start, end = int(first), min(int(last) + 1, end) if last else end
        head = "HTTP/1.1 206 Partial\r\n" if wanted else "HTTP/1.1 200 OK\r\n"
        if wanted:
            head += f"Content-Range: bytes {start}-{end - 1}/{len(file.data)}\r\n"
        head = f"{head}ETag: {tag}\r\nContent-Length: {end - start}\r\n\r\n".encode()
        data = file.data[start:end]
        if self.chosen.random() < 0.2:
            kind, = self.chosen.choices(list(FAILURES), FAILURES.values())
            if data or kind not in ("short", "reset", "stall"):
                return await self._fail(kind, file, head, data, reader, writer)
        writer.write(head + data)
        await writer.drain()
        if not file.complete:
            file.complete = True
            self.open -= 1
        return True

    async def _fail(self, kind, file, head, data, reader, writer):
        file.failures += 1
        self.failed += 1
        part = self.chosen.randrange(len(data)) if data else 0
        pause = 0
        if kind.startswith("503"):
            pause = int(kind[4:])
            writer.write(f"HTTP/1.1 503 Busy\r\nRetry-After: {pause}\r\nContent-Length: 4\r\n\r\nbusy".encode())
            await writer.drain()
        elif kind == "head":
            writer.transport.abort()
        elif kind == "stall":
            writer.write(head[:-2] if self.chosen.random() < 0.3 else head + data[:part])
            await writer.drain()
            # Until fk has had enough of it.
            await reader.read(1)
        else:
            writer.write(head + data[:part])
            await writer.drain()
            if kind == "reset":
                writer.transport.abort()
        now = self.loop.time()
        # fk waits a second before its second attempt and twice as long before each further one, or as long as it is told.
        file.due = now + (pause or min(60, 2 ** (file.failures - 1)))
        if pause:
            self.host_pause[self.host(file.name)] = now + pause
        return kind.startswith("503")

    async def _hold(self, writer):
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {HOLD_LENGTH}\r\n\r\n".encode())
        sent = 0
        while not self.is_released:
            writer.write(b"x" * 100)
            sent += 100
            await writer.drain()
            await asyncio.sleep(0.1)
        writer.write(b"x" * (HOLD_LENGTH - sent))
        await writer.drain()
        return True


def write_list(path, server, first=()):
    """An input list of what the server has, behind some other names; every second file with its digest."""
    lines = [server.url(name) for name in first]
    for number, file in enumerate(server.files.values()):
        lines.append(server.url(file.name))
        if number % 2:
            lines.append(f"  checksum=sha-256={digest(file.data)}")
    path.write_text("\n".join(lines) + "\n")
    return path


class Process:
    """What the system says of a process."""

    def __init__(self, pid):
        self.pid = pid
        self.memory = self.descriptors = 0

    def look(self):
        try:
            for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
                if line.startswith("VmRSS:"):
                    self.memory = max(self.memory, int(line.split()[1]) << 10)
            self.descriptors = max(self.descriptors, len(os.listdir(f"/proc/{self.pid}/fd")))
        except OSError:
            pass

    def open_files(self):
        found = []
        for name in os.listdir(f"/proc/{self.pid}/fd"):
            try:
                found.append(os.readlink(f"/proc/{self.pid}/fd/{name}"))
            except OSError:
                pass
        return found


class Load:
    def __init__(self, world, seed, count, outcome):
        self.fk, self.seed, self.outcome = world.fk, seed, outcome
        self.base = Path(tempfile.mkdtemp(prefix="load.", dir=world.folder))
        self.work, self.files = self.base / "work", self.base / "files"
        self.server = FailingServer([f"f{number}.bin" for number in range(count)], seed)

    def problem(self, text):
        self.outcome.problems.append(text)

    def execute(self):
        environment = clean_environment(self.work, self.base)
        begin = time.monotonic()
        with open(self.base / "errors", "w+") as errors:
            process = subprocess.Popen(
                [self.fk, "get", "-i", write_list(self.base / "list", self.server, [HOLD]), "-d", self.files, "-j", str(JOBS + 1), "-x", "1",
                 "--retry", "60", "--timeout", str(SILENCE), "--no-progress", "-q"],
                env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors)
            try:
                self.attend(process, begin)
                status = process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                status = "none after 60 s"
            finally:
                process.kill()
                process.wait()
            errors.seek(0)
            if status != 0:
                self.problem(f"status {status}: {errors.read()[-400:]}")
        self.compare()

    def attend(self, process, begin):
        server, system = self.server, Process(process.pid)
        count, early = len(server.files), 0
        limit = begin + 120 + count / 20
        while server.open and process.poll() is None:
            if time.monotonic() > limit:
                self.problem(f"{server.open} of {count} files are not there after {time.monotonic() - begin:.0f} s")
                return
            system.look()
            if not early and server.open < count * 3 / 4:
                early = system.memory
            time.sleep(0.05)
        seconds = time.monotonic() - begin
        # The last answers are being taken care of.
        time.sleep(1)
        left = self.left_open(system) if process.poll() is None else ["fk ended before its last file"]
        server.is_released = True
        if left:
            self.problem(f"left open: {', '.join(left[:8])}")
        if server.longest > GRACE:
            self.problem(f"for {server.longest:.1f} s nothing was asked for that could have been")
        if system.memory > MEMORY:
            self.problem(f"{system.memory:,} bytes of memory")
        if system.descriptors > DESCRIPTORS:
            self.problem(f"{system.descriptors} descriptors at once")
        self.outcome.values.update({
            "files": count, "seconds": round(seconds), "failures": server.failed,
            "of one file": max(file.failures for file in server.files.values()), "KiB resident": system.memory >> 10,
            "of them after a quarter": early >> 10, "descriptors": system.descriptors,
            "longest pause, ms": round(server.longest * 1000)})

    def left_open(self, system):
        """Files and too many sockets that the process holds while its last file arrives."""
        found = system.open_files()
        sockets = sum(each.startswith("socket:") for each in found)
        left = [f"{sockets} sockets"] if sockets > HOSTS * PER_HOST + 4 else []
        ours = [each for each in found if each.startswith(str(self.base)) and os.path.isfile(each)]
        of_hold = [each for each in ours if each.endswith(".info") or f".{HOLD}" in each]
        return left + [each for each in ours if each not in of_hold[:2] and not each.endswith(
            ("/engine.lock", "/number", "/errors"))]

    def compare(self):
        for file in self.server.files.values():
            path = self.files / file.name
            if not path.exists():
                self.problem(f"{file.name} is missing")
            elif path.read_bytes() != file.data:
                self.problem(f"{file.name} has wrong bytes")
        known = {HOLD, *self.server.files}
        self.outcome.problems += [f"stray: {name}" for name in os.listdir(self.files) if name not in known]


def point(world, seed, count):
    outcome = Outcome(str(seed))
    load = Load(world, seed, count, outcome)
    try:
        load.execute()
        return outcome
    finally:
        shutil.rmtree(load.base, ignore_errors=True)


def run(runner, options):
    score = Score("load")
    runner.all(score, point, [(options.seed, 500 if options.quick else options.count or TASKS)])
    yield score


def again(runner, score, text, seed):
    runner.all(score, point, [(int(text), TASKS)])
