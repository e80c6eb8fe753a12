"""What the benchmarks download from: nginx, and a relay that makes it far away or lets a connection stall."""

import asyncio
import socket
import subprocess
import threading
import time
from pathlib import Path


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Nginx:
    """One process over HTTP/1.1, and HTTP/2 with TLS, for the files in `folder`/files."""

    def __init__(self, folder: Path, template: Path):
        self.folder = folder
        self.files = folder / "files"
        for name in ("files", "temp"):
            (folder / name).mkdir(exist_ok=True)
        self.certificate = folder / "cert.pem"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
            + ["-days", "30", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
            + ["-keyout", str(folder / "key.pem"), "-out", str(self.certificate)],
            check=True, capture_output=True)
        self.port, self.tls_port = free_port(), free_port()
        text = template.read_text().replace("FOLDER", str(folder))
        (folder / "nginx.conf").write_text(text.replace("PLAIN", str(self.port)).replace("TLS", str(self.tls_port)))
        self.process = subprocess.Popen(
            ["nginx", "-c", str(folder / "nginx.conf"), "-p", str(folder)], stderr=subprocess.DEVNULL)
        for port in (self.port, self.tls_port):
            wait_for(port, self.process)
        self.plain = f"http://127.0.0.1:{self.port}"
        self.tls = f"https://localhost:{self.tls_port}"

    def bodies_sent(self, log="sent.log"):
        """The sizes of the bodies sent since the last call: under /logged/, or with counted.log under /limited/ and /fast/."""
        path = self.folder / log
        sizes = [int(line) for line in path.read_text().split()]
        path.write_text("")
        return sizes

    def bytes_in_sockets(self):
        """What the server has sent on plain connections and nobody has read yet, in the kernel's queues of both ends."""
        total = 0
        for line in Path("/proc/net/tcp").read_text().split("\n")[1:]:
            words = line.split()
            if len(words) > 4 and words[3] == "01" and f":{self.port:04X}" in (words[1][8:], words[2][8:]):
                unsent, unread = words[4].split(":")
                # At the client's end what it has to send is a request.
                total += int(unread, 16) if words[2].endswith(f":{self.port:04X}") else int(unsent, 16)
        return total

    def close(self):
        self.process.terminate()
        self.process.wait()


def wait_for(port, process=None):
    for _ in range(500):
        if process and process.poll() is not None:
            raise SystemExit("nginx did not start")
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.01)
    raise SystemExit(f"nothing listens on port {port}")


class Relay:
    """Passes bytes on to another port of this machine, each `delay` seconds late; a new connection's first bytes come
    one round trip later still, as a handshake would have cost. Connection number `stalls` passes nothing more on, for
    ever, after `after` bytes."""

    def __init__(self, target, delay=0.0, stalls=None, after=0):
        self.target, self.delay, self.stalls, self.after = target, delay, stalls, after
        self.count = 0
        self.stalled_at = None
        self.loop = asyncio.new_event_loop()
        ready = threading.Event()
        threading.Thread(target=self._run, args=(ready,), daemon=True).start()
        ready.wait()

    def restart_count(self):
        self.count, self.stalled_at = 0, None

    def _run(self, ready):
        asyncio.set_event_loop(self.loop)
        server = self.loop.run_until_complete(asyncio.start_server(self._accept, "127.0.0.1", 0, backlog=1024))
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        self.loop.run_forever()

    async def _accept(self, reader, writer):
        self.count += 1
        limit = self.after if self.count == self.stalls else None
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target)
        for each in (writer, far_writer):
            each.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.gather(
            self._pass(reader, far_writer, 3 * self.delay, None), self._pass(far_reader, writer, self.delay, limit))

    async def _pass(self, reader, writer, first_delay, limit):
        queue = asyncio.Queue(maxsize=4096)

        async def send():
            while True:
                due, data = await queue.get()
                wait = due - self.loop.time()
                if wait > 0:
                    await asyncio.sleep(wait)
                if data is None:
                    break
                writer.write(data)
                await writer.drain()
            if writer.can_write_eof():
                writer.write_eof()

        task = asyncio.ensure_future(send())
        # The bytes of a connection are late once more at its beginning, and stay in order.
        begin = self.loop.time()
        passed = 0
        try:
            while True:
                data = await reader.read(1 << 18)
                late = max(self.loop.time() + self.delay, begin + first_delay)
                if limit is not None and passed + len(data) > limit:
                    self.stalled_at = self.stalled_at or time.monotonic()
                    await asyncio.sleep(3600)
                passed += len(data)
                await queue.put((late, data or None))
                if not data:
                    break
            await task
        except (OSError, asyncio.CancelledError):
            task.cancel()
            writer.close()


class FirstByte:
    """Notes when the first byte of a request arrives, and answers it with an empty file."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.socket.getsockname()[1]
        self.arrived = None
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        while True:
            connection, _ = self.socket.accept()
            data = connection.recv(65536)
            self.arrived = time.monotonic()
            while data and b"\r\n\r\n" not in data:
                data += connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            connection.close()
