#!/usr/bin/env python3
"""A fake of `fk rpc` for the page: the fk.* methods of Docs/RPC.md over tasks that exist in memory only.

    Tests/Page/fake.py PORT [COUNT]      serve it by hand, for work on the page

It makes states that a real engine reaches seldom: a full disk, an engine that has stopped, 10,000 tasks with changing rates.
"""

import asyncio
import base64
import hashlib
import json
import math
import struct
import sys
import threading
import time
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent.parent / "Sources/FKWeb/Page"
POLICY = ("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
          "frame-ancestors 'none'; require-trusted-types-for 'script'")
TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}
NAMES = ["ubuntu-24.04.2-desktop-amd64.iso", "model-%05d-of-00163.safetensors", "GRCh38.fa.gz", "SRR%07d.fastq.gz", "clip-%d.mp4", "sentinel2_T32UQD_%d.zip",
         "photo-%05d.jpg", "notes-%d.pdf", "tokenizer.json", "debian-12.9.0-amd64-DVD-%d.iso"]
HOSTS = ["huggingface.co", "ftp.sra.ebi.ac.uk", "cdn.example.com", "mirror.example.net", "data.example.org"]
ERRORS = [("http-status", "The server answered 404: it has no such file.", 404), ("checksum-mismatch", "The SHA-256 is 3f1a0c…, expected 9b0712…: the file was not kept.", None),
          ("http-status", "The server answered 403: the link has expired. Give the task a new address.", 403), ("tls", "The certificate of data.example.org has expired.", None)]
BARRELS = ["DeepSeek-V3", "sra-human", "photos 2026", "isos", "sentinel"]
SIZES = {3: 3 << 30, 5: 900 << 20, 8: 4 << 30, 11: 163 << 20}
VERBS = {"suspend": (("action", "idle"), "suspend"), "resume": (("suspend",), "idle"), "retry": (("error", "cancel"), "idle"),
         "cancel": (("action", "idle", "suspend", "error"), "cancel")}


class Refusal(Exception):
    """An error of JSON-RPC with code 1."""


def stamp(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + ".%03dZ" % int(seconds % 1 * 1000)


def spread(number, share):
    """A number in 0..<1 that is the same in each run."""
    return int(hashlib.sha256(b"%d %d" % (number, share)).hexdigest()[:8], 16) / 2**32


class Fake:
    def __init__(self, count=0, secret=None, port=0, barrels=None):
        self.secret = secret
        self.tasks = {}
        self.barrels = list(BARRELS if count else []) if barrels is None else barrels
        self.limits = {}
        self.set = {"jobs": 3, "connections": None, "folder": "/home/a/Downloads", "daily": []}
        self.jobs_started = {}
        self.origins = {}
        self.mode = {"owner": "this", "ownerPid": None, "silentSeconds": None, "free": 41 << 30}
        self.revision = 1
        self.samples = []
        self.refusals = 0
        self.is_mute = False
        self.on_call = lambda method: None
        self.born = time.time()
        self.calls = []
        self.connections = set()
        for number in range(count):
            self.make(number)
        self.loop = asyncio.new_event_loop()
        ready = threading.Event()
        self.thread = threading.Thread(target=self.serve, args=(port, ready), daemon=True)
        self.thread.start()
        ready.wait()

    # ---- Tasks

    def make(self, number, url=None, name=None, barrel=None, state=None):
        name = name or NAMES[number % 10 if number % 7 else 1]
        name = name % number if "%" in name else name
        host = HOSTS[number % 5]
        url = url or f"https://{host}/files/{number}/{name}{'?sig=***' if number % 9 == 0 else ''}"
        identifier = hashlib.sha256(f"{url} {number}".encode()).hexdigest()
        kind = spread(number, 1)
        if state is None:
            state = "action" if number in SIZES else "complete" if kind < .55 else "idle" if kind < .94 else "suspend" if kind < .96 else "cancel" if kind < .963 else "error"
        expected = SIZES.get(number) or (None if number % 41 == 0 else int(10 ** (4 + 6 * spread(number, 2))))
        task = {"id": identifier, "gid": identifier[:16], "number": number, "url": url, "name": name, "state": state, "expected": expected,
                "received": (expected or 5000) if state == "complete" else int((expected or 0) * spread(number, 3)) if state in ("action", "suspend") else 0,
                "bytesPerSecond": None, "path": f"/home/a/Downloads/{name}" if state == "complete" else None, "attempts": 0 if state == "idle" else 1,
                "barrels": [barrel] if barrel else [BARRELS[number % 5]] if number % 13 and self.barrels else [], "error": None, "waiting": None, "link": None,
                "created": stamp(self.born - 9000 + number / 10), "started": None if state == "idle" else stamp(self.born - 600),
                "finished": stamp(self.born - 300) if state == "complete" else None}
        if state == "error":
            task["error"] = self.error(*ERRORS[number % 4])
        if state == "idle":
            task["waiting"] = self.waiting("slot", limit=4)
            if number % 50 == 7:
                task["waiting"] = self.waiting("host", 3600, host)
            if number % 50 == 8:
                task.update(waiting=self.waiting("retry", 1800), attempts=2, error=self.error("http-status", "The server answered 503.", 503, True))
        self.tasks[identifier] = task
        self.revision += 1
        return task

    def error(self, code, message, status=None, retryable=False):
        return {"code": code, "message": message, "reason": None, "status": status, "retryable": retryable}

    def waiting(self, reason, seconds=None, host=None, limit=None):
        return {"reason": reason, "until": stamp(time.time() + seconds) if seconds else None, "host": host, "limit": limit}

    def advance(self, seconds):
        """Running tasks receive bytes, and waiting ones begin."""
        running = [task for task in self.tasks.values() if task["state"] == "action"]
        for place, task in enumerate(running):
            rate = [34e6, 11.7e6, 52e6, 600e3][place % 4] * (1 + .3 * math.sin(time.time() / 7 + place))
            rate = min(rate, (self.limits.get(None) or 1e15) / len(running))
            task["bytesPerSecond"] = int(rate)
            task["received"] += int(rate * seconds)
            if task["expected"] and task["received"] >= task["expected"]:
                task.update(received=task["expected"], state="complete", bytesPerSecond=None, finished=stamp(time.time()), path=f"/home/a/Downloads/{task['name']}")
                self.revision += 1
        free = 4 - sum(task["state"] == "action" for task in running)
        if free > 0 and self.mode["owner"] != "nobody":
            due = (task for task in self.tasks.values() if task["state"] == "idle" and (task["waiting"] or {}).get("reason") == "slot")
            for _, task in zip(range(free), due):
                task.update(state="action", waiting=None, started=stamp(time.time()), attempts=task["attempts"] + 1)
                self.revision += 1

    # ---- Methods

    def states(self, tasks):
        counts = {}
        for task in tasks:
            counts[task["state"]] = counts.get(task["state"], 0) + 1
        return counts

    def sums(self, tasks):
        return {"received": sum(task["received"] for task in tasks), "expected": sum(task["expected"] or 0 for task in tasks),
                "isExpectedKnown": all(task["expected"] for task in tasks), "bytesPerSecond": sum(task["bytesPerSecond"] or 0 for task in tasks),
                "states": self.states(tasks)}

    def row(self, task):
        return {key: value for key, value in task.items() if key != "link"}

    def find(self, identifier):
        if identifier not in self.tasks:
            raise Refusal(f"There is no task {identifier[:12]}.")
        return self.tasks[identifier]

    def status(self):
        tasks = list(self.tasks.values())
        waits = {}
        for task in tasks:
            if task["waiting"]:
                waits[task["waiting"]["reason"]] = waits.get(task["waiting"]["reason"], 0) + 1
        return {"version": "2.0.0", "revision": self.revision, "folders": ["/home/a/Downloads"], "rateLimit": self.limits.get(None), "total": len(tasks),
                "bytesPerSecond": sum(task["bytesPerSecond"] or 0 for task in tasks), "states": self.states(tasks), "waiting": waits, **self.mode}

    def list(self, barrel=None, states=None, text="", sort="queue", ascending=True, offset=0, limit=100):
        orders = {"queue": lambda task: ({"action": 0, "idle": 1}.get(task["state"], 2), task["number"]), "name": lambda task: task["name"].lower(),
                  "size": lambda task: task["expected"] or -1, "bytesPerSecond": lambda task: task["bytesPerSecond"] or 0,
                  "host": lambda task: task["url"].split("/")[2], "finished": lambda task: task["finished"] or "",
                  "percentage": lambda task: task["received"] / (task["expected"] or 1e18)}
        text = text.lower()
        tasks = [task for task in self.tasks.values() if (barrel is None or barrel in task["barrels"]) and (not states or task["state"] in states)
                 and (not text or any(text in one.lower() for one in [task["name"], task["url"], *task["barrels"]]))]
        tasks.sort(key=orders.get(sort, lambda task: task[sort]), reverse=not ascending)
        return {"revision": self.revision, "total": len(tasks), "offset": offset, **self.sums(tasks), "tasks": [self.row(task) for task in tasks[offset:offset + limit]]}

    def barrel(self, name):
        tasks = [task for task in self.tasks.values() if name in task["barrels"]]
        return {"name": name, "origin": self.origins.get(name), "commit": None, "total": len(tasks), "complete": sum(task["state"] == "complete" for task in tasks),
                "error": sum(task["state"] == "error" for task in tasks), "rateLimit": self.limits.get(name), **self.sums(tasks)}

    def details(self, task):
        expected, number = task["expected"], task["number"]
        ranges = []
        if expected and task["state"] != "idle":
            count = 1 if expected < 50e6 else 12 if number == 8 else 4
            for place in range(count):
                start, end = expected * place // count, expected * (place + 1) // count
                done = min(1, task["received"] / expected * (1 + .25 * math.sin(place * 2)))
                ranges.append({"start": start, "end": end, "position": start + int((end - start) * done)})
        mirrors = [f"https://mirror{place}.example.net/{task['name']}" for place in (2, 3)] if number % 2 else []
        line = lambda seconds, by, what: {"time": stamp(self.born - seconds), "by": by, "what": what}
        history = [line(600, "engine", "attempt 1: The server answered 503.")] if task["attempts"] else []
        verdicts = [line(580, "sign-urls (request)", "accepted: the address was signed")] if number % 3 == 0 else []
        if mirrors:
            history.append(line(570, "mirror", f"{mirrors[0]} has the same file: used at once with the others"))
        reasons = {"action": "it is running", "complete": "it is complete", "error": (task["error"] or {}).get("message"), "suspend": "it was suspended",
                   "cancel": "it was cancelled", "idle": "it is queued: all 4 slots are taken"}
        return {**task, "reason": reasons[task["state"]], "mirrors": mirrors, "directory": "/home/a/Downloads", "fileName": None,
                "checksum": "sha-256=9b0712f2a5" if number % 2 else None, "attributes": {"owner": "me"} if number % 5 == 0 else {}, "insecure": False, "rateLimit": None,
                "connections": len(ranges) if task["state"] == "action" else 0, "ranges": ranges, "history": history + verdicts, "verdicts": verdicts, "maxAttempts": 5}

    def add(self, urls, out=None, barrel=None, paused=False, **_):
        added = []
        if barrel and barrel not in self.barrels:
            self.barrels.append(barrel)
        for url in urls:
            if not url.startswith("http"):
                added.append({"id": None, "gid": None, "url": url, "state": None, "new": False, "error": self.error("unsupported-scheme", "The scheme is neither http nor https.")})
                continue
            task = self.make(len(self.tasks) + 100000, url, out or url.split("/")[-1] or "index.html", barrel, "suspend" if paused else "idle")
            added.append({"id": task["id"], "gid": task["gid"], "url": url, "state": task["state"], "new": True, "error": None})
        return added

    def perform(self, verb, ids=None, barrel=None, all=False, brief=False):
        tasks = [self.find(one) for one in ids] if ids is not None else [task for task in self.tasks.values() if all or barrel in task["barrels"]]
        results = []
        for task in tasks:
            before = task["state"]
            states, after = VERBS.get(verb, ((before,), None))
            applied = before in states
            if applied and after:
                task.update(state=after, bytesPerSecond=None, waiting=self.waiting("slot", limit=4) if after == "idle" else None, error=None if after == "idle" else task["error"])
            elif applied:
                del self.tasks[task["id"]]
            results.append({"id": task["id"], "url": task["url"], "verb": verb, "before": before, "after": task["state"], "applied": applied,
                            "note": {"suspend": "suspended", "cancel": "cancelled, unfinished bytes dropped", "forget": "forgotten", "trash": "forgotten, deleted"}.get(verb, "queued")
                            if applied else f"is {before}: nothing to {verb}"})
        self.revision += 1
        if brief:
            changed = sum(one["applied"] for one in results)
            return {"applied": changed, "unchanged": len(results) - changed, "note": next((one["note"] for one in results if not one["applied"]), None)}
        return results

    def job(self, kind, title, files=(), messages=(), status=0, result=None):
        """A job that runs until it has been asked for twice."""
        sums = {}
        for file in files:
            sum_ = sums.setdefault(file["result"], {"count": 0, "bytes": 0})
            sum_["count"] += 1
            sum_["bytes"] += file["size"] or 0
        number = len(self.jobs_started) + 1
        self.jobs_started[number] = {"asked": 0, "end": {"id": number, "kind": kind, "title": title, "state": "failed" if status else "done", "status": status, "started": stamp(time.time()),
                                                         "finished": stamp(time.time()), "messages": list(messages), "sums": sums, "result": result, "files": list(files)}}
        return self.shown(number)

    def shown(self, number):
        job = self.jobs_started.get(number)
        if job is None:
            raise Refusal(f"There is no job {number}.")
        if job["asked"] >= 2:
            return job["end"]
        job["asked"] += 1
        return {**job["end"], "state": "running", "status": None, "finished": None, "messages": [], "sums": {}, "result": None, "files": []}

    def start(self, name, source=None, barrel=None, dryRun=False, delete=False, maxDelete=None, dir=None, **_):
        if name in ("preview", "fetch"):
            if ":" not in source:
                raise Refusal(f"'{source}' names no source.")
            if "broken" in source:
                return self.job(name, source, messages=["The server answered 404: it has no such folder."], status=1)
            files = [{"result": "new" if place % 4 else "same", "name": f"pub/part-{place:03}.iso", "size": 5 << 20, "url": f"{source}part-{place:03}.iso"} for place in range(40)]
            if name == "fetch":
                barrel = barrel or source.rstrip("/").split("/")[-1]
                self.add([file["url"] for file in files if file["result"] == "new"], barrel=barrel)
                self.origins[barrel] = source
            return self.job(name, source, files if name == "preview" else ())
        if name == "sync":
            if dryRun or delete:
                gone = {"result": "deleted" if delete else "gone", "name": "old.iso", "size": 3 << 20, "url": "https://example.com/old.iso"}
                return self.job(name, barrel, [{"result": "new", "name": "new.iso", "size": 7 << 20, "url": "https://example.com/new.iso"}, gone])
            return self.job(name, barrel, messages=["new.iso: The server answered 503."], status=1)
        if self.barrel(barrel)["complete"] < self.barrel(barrel)["total"]:
            return self.job(name, barrel, messages=[f"3 members of the barrel {barrel} have no finished file, so it was not published."], status=1)
        return self.job(name, barrel, result={"version": "sha256:" + "5a" * 32, "files": 12, "changed": True, "directory": f"/home/a/Downloads/{dir}"})

    def settings(self, **given):
        for key, value in given.items():
            if key == "folder" and not value.startswith("/home/a/Downloads"):
                raise Refusal(f"The folder {value} is not allowed: downloads go to /home/a/Downloads and below. fk rpc -d names them.")
            self.set[key] = value
        if "rate" in given:
            self.limits[None] = given["rate"]
        return {**self.set, "rate": self.limits.get(None), "rateNow": self.limits.get(None), "window": None, "folders": ["/home/a/Downloads"], "ownRate": None, "minFree": 64 << 20}

    def move(self, gid, offset, how):
        queue = sorted((task for task in self.tasks.values() if task["state"] == "idle"), key=lambda task: task["number"])
        place = next(index for index, task in enumerate(queue) if task["gid"] == gid)
        new = max(0, min(len(queue) - 1, offset if how == "POS_SET" else place + offset))
        numbers = [task["number"] for task in queue]
        queue.insert(new, queue.pop(place))
        for task, number in zip(queue, numbers):
            task["number"] = number
        self.revision += 1
        return new

    def call(self, method, parameters, connection):
        parameters = list(parameters or [])
        token = parameters.pop(0)[6:] if parameters and str(parameters[0]).startswith("token:") else None
        if self.secret is not None and token != self.secret:
            self.refusals += token is not None
            raise Refusal("Unauthorized")
        given = parameters[0] if parameters else {}
        self.calls.append((method, given))
        name = method.removeprefix("fk.")
        if name == "status":
            return self.status()
        if name == "rates":
            return {"end": stamp(time.time()), "interval": 1, "samples": self.samples[-given.get("seconds", 60):]}
        if name == "barrels":
            return [self.barrel(one) for one in self.barrels]
        if name == "tasks":
            return self.list(**given)
        if name == "task":
            return self.details(self.find(given["id"]))
        if name == "add":
            return self.add(**given)
        if name == "import":
            lines = [(place + 1, line) for place, line in enumerate(given["text"].split("\n")) if line.strip() and line[0] not in "# "]
            added = self.add([line.split("\t")[0] for _, line in lines if line.startswith("http")], barrel=given.get("barrel"))
            return {"added": added, "faults": [{"line": place, "reason": f"{line} is no URL."} for place, line in lines if not line.startswith("http")]}
        if name in (*VERBS, "forget", "trash"):
            return self.perform(name, **given)
        if name == "limit":
            scope = given.get("barrel", given.get("id"))
            if "rate" in given:
                self.limits[scope] = given["rate"]
            return {"rate": self.limits.get(scope)}
        if name == "relink":
            if not given["url"].startswith("http"):
                raise Refusal("The new address is no URL of http or https.")
            task = self.find(given["id"])
            task.update(link=given["url"], error=None, state="idle", waiting=self.waiting("slot", limit=4))
            self.revision += 1
            return {"done": True}
        if name == "settings":
            return self.settings(**given)
        if name in ("preview", "fetch", "sync", "publish"):
            return self.start(name, **given)
        if name == "job":
            return self.shown(given["id"])
        if name == "endJob":
            self.jobs_started[given["id"]]["asked"] = 2
            return self.shown(given["id"])
        if method == "aria2.changePosition":
            return self.move(*parameters)
        if name == "deleteBarrel":
            self.barrels.remove(given["barrel"])
            return {"done": True}
        if name == "subscribe":
            connection.update(ids=set(given.get("ids", [])), interval=given.get("interval", .5))
            return self.status()
        raise Refusal(f"No such method: {method}")

    # ---- Server

    def serve(self, port, ready):
        asyncio.set_event_loop(self.loop)

        async def begin():
            self.listener = await asyncio.start_server(self.client, "127.0.0.1", port, limit=1 << 22)
            self.port = self.listener.sockets[0].getsockname()[1]
            asyncio.ensure_future(self.clock())
            ready.set()

        self.loop.run_until_complete(begin())
        self.loop.run_forever()

    async def clock(self):
        ticks = 0
        while True:
            await asyncio.sleep(.25)
            self.advance(.25)
            ticks += 1
            if ticks % 4 == 0:
                self.samples = (self.samples + [self.status()["bytesPerSecond"]])[-600:]

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/"

    def cut(self):
        """Ends all connections and accepts no further one."""
        self.on_loop(self.listener.close)
        for writer in list(self.connections):
            self.on_loop(writer.transport.abort)

    def listen_again(self):
        async def again():
            self.listener = await asyncio.start_server(self.client, "127.0.0.1", self.port, limit=1 << 22)
        asyncio.run_coroutine_threadsafe(again(), self.loop).result(10)

    def on_loop(self, action, *arguments):
        """Runs on the server's thread, where all state is changed, and waits for it."""
        done = threading.Event()
        self.loop.call_soon_threadsafe(lambda: (action(*arguments), done.set()))
        done.wait(10)

    def change(self, task, **values):
        self.on_loop(lambda: (task.update(values), setattr(self, "revision", self.revision + 1)))

    async def client(self, reader, writer):
        self.connections.add(writer)
        try:
            while True:
                lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin1").split("\r\n")
                path = lines[0].split(" ")[1].split("?")[0]
                headers = {line.split(": ", 1)[0].lower(): line.split(": ", 1)[1] for line in lines[1:] if ": " in line}
                if headers.get("upgrade", "").lower() == "websocket":
                    key = hashlib.sha1((headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
                    writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " + base64.b64encode(key) + b"\r\n\r\n")
                    return await self.socket(reader, writer)
                file = PAGE / (path.strip("/") or "index.html")
                found = file.parent == PAGE and file.is_file()
                body = file.read_bytes() if found else b"Not found"
                writer.write((f"HTTP/1.1 {200 if found else 404} {'OK' if found else 'Not Found'}\r\nContent-Type: {TYPES.get(file.suffix, 'text/plain')}\r\n"
                              f"Content-Length: {len(body)}\r\nContent-Security-Policy: {POLICY}\r\nX-Content-Type-Options: nosniff\r\nCache-Control: no-cache\r\n\r\n").encode() + body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.connections.discard(writer)
            writer.close()

    async def socket(self, reader, writer):
        connection = {"ids": None, "interval": .5}

        def send(message):
            data = json.dumps(message).encode()
            length = len(data)
            head = bytes([0x81, length]) if length < 126 else b"\x81\x7e" + struct.pack(">H", length) if length < 65536 else b"\x81\x7f" + struct.pack(">Q", length)
            writer.write(head + data)

        async def answer(request):
            result = {"jsonrpc": "2.0", "id": request["id"]}
            try:
                result["result"] = self.call(request["method"], request.get("params"), connection)
            except Refusal as refusal:
                if str(refusal) == "Unauthorized" and request.get("params"):
                    await asyncio.sleep(1)
                result["error"] = {"code": 1, "message": str(refusal)}
            if not self.is_mute:
                send(result)
            self.on_call(request["method"])

        async def notify():
            seen = self.revision
            while True:
                await asyncio.sleep(connection["interval"])
                if connection["ids"] is None or self.is_mute:
                    continue
                rows = [self.row(self.tasks[one]) for one in connection["ids"] if one in self.tasks and self.tasks[one]["state"] == "action"]
                send({"jsonrpc": "2.0", "method": "fk.onChange", "params": [{**self.status(), "listChanged": self.revision != seen, "tasks": rows}]})
                seen = self.revision

        notifier = asyncio.ensure_future(notify())
        try:
            while True:
                first, second = await reader.readexactly(2)
                length = second & 127
                if length >= 126:
                    length = int.from_bytes(await reader.readexactly(2 if length == 126 else 8), "big")
                mask = await reader.readexactly(4)
                data = await reader.readexactly(length)
                data = bytes(byte ^ mask[place & 3] for place, byte in enumerate(data))
                if first & 15 == 8:
                    return
                if first & 15 in (1, 2):
                    asyncio.ensure_future(answer(json.loads(data)))
        finally:
            notifier.cancel()
            writer.close()


if __name__ == "__main__":
    fake = Fake(int(sys.argv[2]) if len(sys.argv) > 2 else 10000, port=int(sys.argv[1]))
    print(fake.url, flush=True)
    fake.thread.join()
