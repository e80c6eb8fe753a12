"""A server of files for the tests: ranges, an entity tag, a rate for each connection, and paths that fail until they are mended."""

import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Files:
    """`/SIZE/RATE/name` is a file of SIZE bytes that comes with RATE bytes a second; 0 is unlimited. Names in `broken` answer with their
    status, those in `logins` need their Authorization."""

    def __init__(self):
        files = self
        self.broken = {}
        self.logins = {}

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                match = re.fullmatch(r"/(\d+)/(\d+)/([^?]*)(\?.*)?", self.path)
                status = files.broken.get(match[3]) if match else 404
                if match and match[3] in files.logins and self.headers.get("Authorization") != files.logins[match[3]]:
                    status = 401
                if status:
                    self.send_response(status)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                size, rate = int(match[1]), int(match[2])
                wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
                start, end = (int(wanted[1]), int(wanted[2]) + 1 if wanted[2] else size) if wanted else (0, size)
                self.send_response(206 if wanted else 200)
                self.send_header("Content-Length", str(end - start))
                self.send_header("ETag", f'"{size}"')
                self.send_header("Accept-Ranges", "bytes")
                if wanted:
                    self.send_header("Content-Range", f"bytes {start}-{end - 1}/{size}")
                self.end_headers()
                block = 65536 if rate == 0 else max(1024, rate // 20)
                try:
                    for offset in range(start, end, block):
                        self.wfile.write(files.bytes(offset, min(block, end - offset)))
                        if rate:
                            time.sleep(block / rate)
                except OSError:
                    self.close_connection = True

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @staticmethod
    def bytes(offset, count):
        """The file's bytes at an offset: they differ from place to place, so that a wrong range is noticed."""
        first = offset // 8
        return b"".join(place.to_bytes(8, "big") for place in range(first, (offset + count + 7) // 8))[offset % 8:][:count]

    def url(self, name, size=1 << 20, rate=0):
        return f"http://127.0.0.1:{self.server.server_address[1]}/{size}/{rate}/{name}"

    def close(self):
        self.server.shutdown()
        self.server.server_close()
