#!/usr/bin/env python3
"""Runs `fk rpc` under hostile and ordinary clients, and watches its memory, descriptors and threads.

    FK=.build/debug/fk Tests/Torture/rpc.py [SECONDS]

Hostile clients have no secret: they hold connections with a byte now and then, send garbage, batches of a hundred thousand calls and of
wrong secrets, half WebSockets and broken frames, floods of pings and of empty fragments, the preface of HTTP/2, and read nothing. Ordinary
clients add downloads, ask, and remove them, over HTTP, over a WebSocket with the page's subscription, and with aria2p if it is installed.
Each file has a host of its own with a rate of requests, so that what the engine keeps for hosts is seen. Every ordinary call has to be
answered. At the end, the means of the last quarter are compared with those of the second. Then the clients go, and the system calls of a
second are counted (with strace).
"""
import base64, http.client, http.server, json, os, random, shutil, signal, socket, statistics, struct, subprocess, sys, tempfile, threading, time

try:
    import aria2p
except ImportError:
    aria2p = None

FK = os.path.abspath(os.environ["FK"])
SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 600
# What may grow: the allocator's arenas, and connections that end at this moment.
MARGINS = {"memory": (1.25, 24 << 20), "descriptors": (1.1, 24), "threads": (1.0, 6), "turns": (1.0, 60), "files": (1.1, 60)}
#: The system calls of a second that an idle fk rpc may make.
IDLE = 60


class Files(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = os.urandom(20_000)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Quiet(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass


class Run:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="fk-rpc-")
        os.makedirs(f"{self.folder}/dl")
        self.files = Quiet(("", 0), Files)
        threading.Thread(target=self.files.serve_forever, daemon=True).start()
        self.work = f"{self.folder}/wp"
        # Not the person's own settings.
        environment = {**os.environ, "XDG_CONFIG_HOME": f"{self.folder}/config", "HOME": self.folder}
        subprocess.run([FK, "config", "host", "*.localhost", "--rate", "50/s", "--work-path", self.work], env=environment, check=True, stdout=subprocess.DEVNULL)
        self.process = subprocess.Popen(
            [FK, "rpc", "--json", "--listen", "127.0.0.1:0", "-d", f"{self.folder}/dl", "--work-path", self.work],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment,
            preexec_fn=lambda: __import__("resource").setrlimit(__import__("resource").RLIMIT_NOFILE, (512, 512)))
        start = json.loads(self.process.stdout.readline())
        self.port = int(start["url"].rstrip("/").rsplit(":", 1)[1])
        self.secret = "token:" + open(start["secretFile"]).read().strip()
        self.ends = time.time() + SECONDS
        self.calls = self.hostile = 0
        self.faults = []

    @property
    def isOver(self):
        return time.time() > self.ends or self.process.poll() is not None

    def connect(self, seconds=20):
        return socket.create_connection(("127.0.0.1", self.port), timeout=seconds)

    # Ordinary clients

    def call(self, method, *params):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            body = json.dumps({"id": 1, "method": method, "params": [self.secret, *params]})
            connection.request("POST", "/jsonrpc", body)
            answer = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        self.calls += 1
        if "error" in answer:
            raise ValueError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def ordinary(self, number):
        count = 0
        while not self.isOver:
            try:
                count += 1
                # libcurl knows that these names are this machine.
                host = f"h{number}-{count}.localhost"
                gid = self.call(
                    "aria2.addUri", [f"http://{host}:{self.files.server_address[1]}/{number}-{count}"],
                    {"out": f"{number}-{count % 20}", "allow-overwrite": "true"})
                while self.call("aria2.tellStatus", gid, ["status"])["status"] in ("active", "waiting"):
                    time.sleep(0.2)
                self.call("aria2.removeDownloadResult", gid)
                self.call("aria2.getGlobalOption")
            except Exception as fault:
                if not self.isOver:
                    self.faults.append(f"ordinary {number}: {type(fault).__name__}: {fault}")
            time.sleep(0.2)

    def aria2p(self):
        if aria2p is None:
            print("aria2p is not installed: its client is left out", flush=True)
            return
        api = aria2p.API(aria2p.Client(host="http://127.0.0.1", port=self.port, secret=self.secret[6:], timeout=30))
        count = 0
        while not self.isOver:
            try:
                count += 1
                download = api.add_uris([f"http://aria2p.localhost:{self.files.server_address[1]}/aria2p-{count}"], {"out": f"aria2p-{count % 20}", "allow-overwrite": "true"})
                while not download.live.is_complete:
                    time.sleep(0.2)
                api.get_stats()
                api.get_downloads()
                # Its own alone: a purge would take those of the other clients.
                download.remove(files=False)
                self.calls += 5
            except Exception as fault:
                if not self.isOver:
                    self.faults.append(f"aria2p: {type(fault).__name__}: {fault}")
            time.sleep(0.3)

    @staticmethod
    def frame(text, first=0x81):
        data = text.encode()
        head = bytes([first]) + (bytes([0x80 | len(data)]) if len(data) < 126 else struct.pack(">BH", 0xFE, len(data)))
        return head + bytes(4) + data

    def webSocket(self):
        frame = self.frame
        while not self.isOver:
            try:
                with self.upgraded() as client:
                    for turn in range(100):
                        # The page's calls: what it shows, and the changes of it.
                        method = ["aria2.getVersion", "fk.status", "fk.tasks", "fk.barrels", "fk.subscribe"][turn % 5]
                        client.sendall(frame(json.dumps({"id": 1, "method": method, "params": [self.secret]})))
                        if not client.recv(65_536):
                            raise OSError("the WebSocket was ended")
                        self.calls += 1
                        time.sleep(0.1)
                        if self.isOver:
                            return
            except Exception as fault:
                if not self.isOver:
                    self.faults.append(f"WebSocket: {type(fault).__name__}: {fault}")

    def upgraded(self):
        client = self.connect()
        key = base64.b64encode(os.urandom(16)).decode()
        client.sendall(
            f"GET /jsonrpc HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n".encode())
        client.recv(4_096)
        return client

    # Hostile clients

    def post(self, body):
        with self.connect() as client:
            client.sendall(f"POST /jsonrpc HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
            client.recv(1 << 16)

    def attack(self):
        chance = random.Random()
        wrong = [{"id": 1, "method": "aria2.getVersion", "params": [f"token:{n}"]} for n in range(25_000)]
        large = [
            b"[" + b",".join([b"{}"] * 600_000) + b"]", json.dumps(wrong).encode()[: 2 << 20],
            json.dumps({"id": 1, "method": "system.multicall", "params": [[{}] * 300_000]}).encode(),
            b"[" * 1_000_000, b'{"id":"' + b"x" * 1_000_000 + b'"}',
        ]
        kept = []
        while not self.isOver:
            try:
                kind = chance.randrange(11)
                if kind == 0:
                    self.post(chance.choice(large))
                elif kind == 1:
                    self.post(json.dumps(wrong[:500]).encode())
                elif kind == 2:
                    with self.connect() as client:
                        client.sendall(os.urandom(chance.randrange(1, 20_000)))
                elif kind == 3:
                    client = self.upgraded()
                    client.sendall(chance.choice([b"\x81\x05hello", b"\x81\xfe", b"\x89\x80\0\0\0\0" * 50, os.urandom(200)]))
                    kept.append(client)
                elif kind == 4:
                    client = self.connect()
                    client.sendall(b"GET /page.js HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20)
                    kept.append(client)
                elif kind == 5:
                    # Floods of control frames and of empty fragments. The server ends the connection, or answers as fast as it is read.
                    with self.upgraded() as client:
                        client.settimeout(5)
                        client.sendall(chance.choice([self.frame("x" * 100, 0x89), self.frame("", 0x8A), self.frame("", 0x01) + self.frame("", 0x00) * 50]) * 20_000)
                elif kind == 6:
                    with self.connect() as client:
                        # A SETTINGS frame, then WINDOW_UPDATEs without an end: there is no HTTP/2 here.
                        client.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04\0" + bytes(4) + b"\0\0\x04\x08\0\0\0\0\0\0\0\0\1" * 5_000)
                        client.recv(4_096)
                elif kind == 7:
                    # A body whose bytes come one by one.
                    client = self.connect()
                    client.sendall(b"POST /jsonrpc HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2000000\r\n\r\n{")
                    kept.append(client)
                elif kind == 8:
                    # Wrong secrets over a WebSocket, pipelined.
                    client = self.upgraded()
                    client.sendall(self.frame(json.dumps(wrong[0])) * 500)
                    kept.append(client)
                elif kind == 9:
                    self.post(chance.choice([b"", b"{", b"[]", b"null", b"[1,2]", b'{"id":1}', b'{"id":1,"method":5}', b'{"id":1,"method":"aria2.addUri","params":{}}', b"\xff\xfe"]))
                else:
                    kept.append(self.connect())
                for client in kept:
                    try:
                        client.sendall(b"P")
                    except OSError:
                        pass
                while len(kept) > 150:
                    kept.pop(chance.randrange(len(kept))).close()
                self.hostile += 1
            except OSError:
                pass
            time.sleep(0.1)

    # Watching

    def sample(self):
        pid = self.process.pid
        status = dict(line.split(":", 1) for line in open(f"/proc/{pid}/status") if ":" in line)
        return {
            "memory": int(status["VmRSS"].split()[0]) << 10, "threads": int(status["Threads"]),
            "descriptors": len(os.listdir(f"/proc/{pid}/fd")),
            "turns": self.count(f"{self.work}/turns"), "files": self.count(self.work),
        }

    @staticmethod
    def count(folder):
        return sum(len(names) for _, _, names in os.walk(folder))

    def idle(self):
        """The system calls of a second without clients."""
        if not shutil.which("strace"):
            return print("strace is not installed: the system calls are not counted")
        time.sleep(130)
        report = f"{self.folder}/strace"
        tracer = subprocess.Popen(["strace", "-f", "-c", "-o", report, "-p", str(self.process.pid)], stderr=subprocess.DEVNULL)
        time.sleep(20)
        tracer.send_signal(signal.SIGINT)
        tracer.wait(10)
        lines = open(report).read().splitlines()
        print("\n".join(lines[:14]))
        calls = sum(int(line.split()[3]) for line in lines[2:] if line.strip()[:1].isdigit() and not line.endswith("total")) / 20
        print(f"idle: {calls:.1f} system calls a second, {self.sample()}")
        if calls > IDLE:
            self.faults.append(f"an idle fk rpc makes {calls:.0f} system calls a second")

    def watch(self):
        clients = [threading.Thread(target=self.ordinary, args=(n,), daemon=True) for n in range(2)]
        clients += [threading.Thread(target=f, daemon=True) for f in (self.webSocket, self.aria2p, self.attack, self.attack)]
        for client in clients:
            client.start()
        samples = []
        while not self.isOver:
            time.sleep(1)
            try:
                samples.append(self.sample())
            except OSError:
                break
            if len(samples) % 60 == 0:
                print(f"{len(samples)} s: {samples[-1]}, {self.calls} calls, {self.hostile} attacks", flush=True)
        if self.process.poll() is not None:
            self.faults.append(f"fk rpc has ended with {self.process.returncode}")
        quarter = len(samples) // 4
        for name, (factor, room) in MARGINS.items():
            early = statistics.mean(s[name] for s in samples[quarter : 2 * quarter])
            late = statistics.mean(s[name] for s in samples[-quarter:])
            print(f"{name}: {early:.0f} in the second quarter, {late:.0f} in the last")
            if late > early * factor + room:
                self.faults.append(f"{name} has grown")
        for client in clients:
            client.join(40)
        if self.process.poll() is None:
            self.idle()

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.faults.append("SIGTERM does not end it")
            self.process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


run = Run()
try:
    run.watch()
finally:
    run.end()
for fault in run.faults[:20]:
    print("fault:", fault)
print(f"{run.calls} calls, {run.hostile} attacks, {len(run.faults)} faults")
sys.exit(1 if run.faults else 0)
