"""The server of these tests: files made from their names, at a limited rate, and a count of what it sent.

A name says everything: /<rate>/<name>.<size>.<kind>, rate in bytes a second and connection (0: no limit), kind one of
    plain     a length, a strong ETag and ranges
    noetag    a length and ranges, but nothing to tell one version from another
    chunked   neither a length nor ranges
"""

import asyncio
import functools
import random
import socket
import threading

CHUNK = 64 << 10


@functools.lru_cache(maxsize=64)
def body(path, version=0):
    """The bytes behind a path. The rate is no part of what they are."""
    name = path.rsplit("/", 1)[-1]
    return random.Random(f"{name} {version}" if version else name).randbytes(int(name.split(".")[-2]))


class Server:
    """Runs in a thread of its own. `sent` has the number of body bytes handed to the system, by path, and `version` is
    that of all files."""

    def __init__(self):
        self.sent = {}
        self.version = 0
        self.connections = 0
        self.loop = asyncio.new_event_loop()
        ready = threading.Event()
        threading.Thread(target=self._run, args=(ready,), daemon=True).start()
        ready.wait()

    def url(self, rate, name):
        return f"http://127.0.0.1:{self.port}/{rate}/{name}"

    def restart_count(self):
        self.sent, self.connections = {}, 0

    def _run(self, ready):
        asyncio.set_event_loop(self.loop)
        listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        # What is on its way when a connection is cut counts as sent: little of it, so that the count means something.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, CHUNK)
        self.port = listener.getsockname()[1]
        self.loop.run_until_complete(asyncio.start_server(self._accept, sock=listener))
        ready.set()
        self.loop.run_forever()

    async def _accept(self, reader, writer):
        self.connections += 1
        writer.transport.set_write_buffer_limits(high=0)
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            while await self._answer(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _answer(self, reader, writer):
        words = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        path = words[0].split(" ")[1]
        headers = {key.lower(): value.strip() for key, _, value in (line.partition(":") for line in words[1:])}
        rate, kind, data = int(path.split("/")[1]), path.rsplit(".", 1)[-1], body(path, self.version)
        sent = self.sent
        if kind == "chunked":
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            await self._send(writer, path, data, rate, sent, chunked=True)
            writer.write(b"0\r\n\r\n")
            await writer.drain()
            return True
        tag = f'"{len(data)}-{self.version}"'
        if kind == "plain" and headers.get("if-none-match") == tag:
            writer.write(f"HTTP/1.1 304 Not Modified\r\nETag: {tag}\r\n\r\n".encode())
            await writer.drain()
            return True
        start, end = 0, len(data)
        wanted = headers.get("range", "")
        is_range = wanted.startswith("bytes=") and headers.get("if-range", tag) == tag
        if is_range:
            first, _, last = wanted[6:].partition("-")
            start, end = int(first), min(int(last) + 1, len(data)) if last else len(data)
            if start >= len(data):
                writer.write(f"HTTP/1.1 416 No\r\nContent-Range: bytes */{len(data)}\r\nContent-Length: 0\r\n\r\n".encode())
                await writer.drain()
                return True
        head = ["HTTP/1.1 206 Partial" if is_range else "HTTP/1.1 200 OK", "Accept-Ranges: bytes"]
        head += [f"Content-Length: {end - start}"]
        head += [f"Content-Range: bytes {start}-{end - 1}/{len(data)}"] if is_range else []
        head += [f"ETag: {tag}"] if kind == "plain" else []
        writer.write(("\r\n".join(head) + "\r\n\r\n").encode())
        await self._send(writer, path, memoryview(data)[start:end], rate, sent)
        return True

    async def _send(self, writer, path, data, rate, sent, chunked=False):
        due = self.loop.time()
        for offset in range(0, len(data), CHUNK):
            piece = data[offset:offset + CHUNK]
            if chunked:
                writer.write(b"%x\r\n" % len(piece))
            writer.write(piece)
            sent[path] = sent.get(path, 0) + len(piece)
            if chunked:
                writer.write(b"\r\n")
            await writer.drain()
            if rate:
                due += len(piece) / rate
                if (wait := due - self.loop.time()) > 0:
                    await asyncio.sleep(wait)
        await writer.drain()
