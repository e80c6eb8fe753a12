"""What happened to the names in a folder, by inotify: nothing that stood there for a moment only is missed."""

import ctypes
import os
import struct

MODIFY, MOVED_FROM, MOVED_TO, CREATE, DELETE = 0x2, 0x40, 0x80, 0x100, 0x200
OVERFLOW = 0x4000


class Watch:
    def __init__(self, folder):
        library = ctypes.CDLL(None, use_errno=True)
        self.descriptor = library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        mask = MODIFY | MOVED_FROM | MOVED_TO | CREATE | DELETE
        if self.descriptor < 0 or library.inotify_add_watch(self.descriptor, os.fsencode(str(folder)), mask) < 0:
            raise OSError(ctypes.get_errno(), "inotify")

    def events(self):
        """(mask, name) of everything since the last call."""
        found = []
        while True:
            try:
                data = os.read(self.descriptor, 1 << 16)
            except BlockingIOError:
                return found
            while data:
                _, mask, _, length = struct.unpack_from("iIII", data)
                found.append((mask, os.fsdecode(data[16:16 + length].rstrip(b"\0"))))
                data = data[16 + length:]

    def problems(self):
        """A final name may only come by a rename (or a hard link) of something whole, and is never written to."""
        found, linked = [], set()
        for mask, name in self.events():
            if mask & OVERFLOW:
                found.append("too many events for the watch")
            elif name.startswith("."):
                continue
            elif mask & MODIFY:
                found.append(f"{name} was written to under its final name")
            elif mask & CREATE and mask & 0x40000000 == 0:
                linked.add(name)
            elif mask & DELETE or mask & MOVED_FROM:
                found.append(f"{name} was taken away again")
        return found, linked

    def close(self):
        os.close(self.descriptor)
