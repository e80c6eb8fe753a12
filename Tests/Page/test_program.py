#!/usr/bin/env python3
"""Tests of the page of `fk rpc` against the real program, with real downloads from a server on this machine.

    FK=.build/debug/fk Tests/Page/test_program.py [-v] [Class.test]

Without a Chromium or a built `fk` the tests are skipped.
"""

import functools
import http.server
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(Path(__file__).parent))
import browser
import look
from files import Files

FK = Path(os.environ.get("FK") or ROOT / ".build/debug/fk")
IS_BUILT = FK.exists()

# Neither a work path nor a proxy of the machine.
ENVIRONMENT = {key: value for key, value in os.environ.items() if not key.startswith("FK_") and not key.lower().endswith("_proxy")}


def text_of(selector):
    return f"(document.querySelector('{selector}')?.textContent ?? '')"


class Program:
    """`fk rpc` on a free port, or always on the same one."""

    def __init__(self, folder, *words, port=0):
        self.folder = folder
        (folder / "downloads").mkdir(exist_ok=True)
        self.output = open(folder / "output", "w+")
        self.process = subprocess.Popen(
            [FK, "rpc", "--work-path", folder / "work", "-d", folder / "downloads", "--listen", f"127.0.0.1:{port}", *words], cwd=folder,
            env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=self.output, stderr=subprocess.STDOUT)
        limit = time.monotonic() + 30
        while not (match := re.search(r"http://127\.0\.0\.1:(\d+)/", self.text())):
            if self.process.poll() is not None or time.monotonic() > limit:
                raise browser.Failure(f"fk rpc did not start: {self.text()}")
            time.sleep(.05)
        self.port = int(match[1])
        self.url = match[0]

    def text(self):
        return (self.folder / "output").read_text()

    def end(self, number=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.output.close()


@unittest.skipUnless(browser.find(), "no Chromium: install the package chromium, or name it in FK_CHROMIUM")
@unittest.skipUnless(IS_BUILT, f"{FK} is not built: swift build, or name another fk in FK")
class ProgramCase(unittest.TestCase):
    words = []

    @classmethod
    def setUpClass(cls):
        cls.browser = browser.Browser()
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="fk-page-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.files = Files()
        self.addCleanup(self.files.close)
        self.program = Program(self.folder, *self.words)
        self.addCleanup(lambda: self.program.end())
        self.allowed = []
        self.page = self.browser.page(self.program.url)

    def tearDown(self):
        problems = [text for text in self.page.problems() if not any(one in text for one in self.allowed)]
        self.page.close()
        self.assertEqual(problems, [])

    def add(self, *urls, barrel=None, paused=False):
        page = self.page
        page.until("store.isLive")
        page.key("a")
        page.until("document.getElementById('add-dialog').open")
        page.type("\n".join(urls))
        if barrel:
            page.run(f"document.getElementById('add-barrel').value = {barrel!r}")
        if paused:
            page.click("#add-paused")
        page.click("#add-send")
        page.until(f"!document.getElementById('add-dialog').open || {text_of('#add-problem')} !== ''")
        self.assertEqual(page.run(text_of("#add-problem")), "")

    def row(self, name):
        return f"[...document.querySelectorAll('.task:not([hidden])')].find((row) => row.querySelector('.name b').textContent === {name!r})"

    def until_row(self, name, text, seconds=20):
        self.page.until(f"({self.row(name)}?.textContent ?? '').includes({text!r})", f"{name}: {text}", seconds)

    def choose(self, name):
        self.page.until(f"{self.row(name)} !== undefined", f"the row of {name}")
        self.page.run(f"moveTo({self.row(name)}.entry.position)")
        self.page.until(f"store.rows.get(list.active)?.name === {name!r} && list.activeId !== null", f"{name} to be chosen")
        self.page.run("document.getElementById('grid').focus()")

    def says(self, text):
        self.page.until(f"{text_of('#message')}.includes({text!r})", f"the message {text!r}")

    def received(self, name):
        return self.page.run(f"{self.row(name)}.entry.row.received")


class ProgramTests(ProgramCase):
    words = ["--no-secret", "-j", "10"]

    def test_adds_suspends_resumes_and_completes(self):
        size = 6 << 20
        self.add(self.files.url("film.bin", size, 1 << 20))
        self.until_row("film.bin", "running")
        self.page.until(f"{self.row('film.bin')}.entry.row.received > 500000")
        self.page.until(f"{text_of('#rate')} !== '0 B/s' && document.getElementById('graph-line').getAttribute('d').length > 20")
        self.choose("film.bin")
        self.page.key("Enter")
        self.page.until("document.querySelector('.ranges .have') !== null")
        self.page.until(f"/connection/.test({text_of('#details')})")
        self.page.key("Escape", " ")
        self.says("suspended")
        self.until_row("film.bin", "kept")
        kept = self.received("film.bin")
        self.assertGreater(kept, 500000)
        self.page.key(" ")
        self.until_row("film.bin", "running")
        self.until_row("film.bin", "complete", 30)
        data = (self.folder / "downloads/film.bin").read_bytes()
        self.assertEqual(data, Files.bytes(0, size))
        self.choose("film.bin")
        self.page.key("f")
        self.says("film.bin")
        self.page.until(f"{text_of('#empty')}.includes('Nothing here yet')")
        self.assertTrue((self.folder / "downloads/film.bin").exists())

    def test_another_client_adds_suspends_and_resumes(self):
        self.page.until("store.isLive")
        address = f"http://127.0.0.1:{self.program.port}/jsonrpc"

        def call(method, *values):
            body = json.dumps({"jsonrpc": "2.0", "id": "q", "method": method, "params": values}).encode()
            request = urllib.request.Request(address, body, {"Content-Type": "application/json"})
            return json.load(urllib.request.urlopen(request))["result"]

        gid = call("aria2.addUri", [self.files.url("other.bin", 64 << 20, 1 << 20)])
        self.until_row("other.bin", "running", 2)
        call("aria2.pause", gid)
        self.until_row("other.bin", "suspended", 2)
        call("aria2.unpause", gid)
        self.until_row("other.bin", "%", 2)
        subprocess.run([FK, "suspend", "other.bin", "--work-path", self.folder / "work"], env=ENVIRONMENT, stdout=subprocess.DEVNULL, check=True)
        self.until_row("other.bin", "suspended", 2)

    def test_a_file_that_wants_a_login_is_retried_with_one(self):
        self.files.logins = {"locked.bin": "Basic am9lOnB3"}
        self.add(self.files.url("locked.bin", 4096))
        self.until_row("locked.bin", "401")
        self.choose("locked.bin")
        self.page.key("Enter")
        self.page.until("document.querySelector('#details form input') !== null")
        self.page.run("document.querySelector('#details form input').focus()")
        self.page.type("joe")
        self.page.key("Tab")
        self.page.type("pw")
        self.page.key("Enter")
        self.until_row("locked.bin", "complete")

    def test_retries_a_failed_file_and_relinks_one(self):
        self.files.broken = {"late.bin": 404, "expired.bin": 403}
        self.add(self.files.url("late.bin"), self.files.url("expired.bin"))
        self.until_row("late.bin", "404")
        self.until_row("expired.bin", "403")
        self.page.click("#tab-error")
        self.page.until(f"{text_of('#tab-error')} === 'Failed 2' && store.query.states[0] === 'error' && store.rows.size === 2")
        self.choose("late.bin")
        self.page.key("Enter")
        self.page.until(f"{text_of('.why.error')}.includes('404') && {text_of('.past')}.includes('404')")
        self.page.key("Escape")
        self.files.broken.pop("late.bin")
        self.page.key("r")
        self.says("queued")
        self.choose("expired.bin")
        self.page.key("n")
        self.page.until("document.getElementById('relink-dialog').open")
        self.page.type("ftp://127.0.0.1/no")
        self.page.key("Enter")
        self.page.until(f"{text_of('#relink-problem')} !== ''")
        self.page.run("document.getElementById('relink-url').select()")
        self.page.type(self.files.url("renewed.bin"))
        self.page.key("Enter")
        self.says("has the new address")
        self.page.click("#tab-complete")
        self.until_row("late.bin", "complete")
        self.until_row("expired.bin", "complete")
        self.assertEqual((self.folder / "downloads/expired.bin").read_bytes(), Files.bytes(0, 1 << 20))

    def test_a_barrel_with_a_limit_and_a_filter(self):
        self.add(*[self.files.url(f"part-{number}.bin", 64 << 20, 1 << 20) for number in range(3)], barrel="parts")
        self.add(*[self.files.url(f"other-{number}.bin", 4096) for number in range(5)])
        self.until_row("part-0.bin", "running")
        self.page.until(f"{text_of('#tab-complete')} === 'Complete 5'")
        self.page.click("#barrel-list button", 1)
        self.page.until(f"{text_of('#list-title')} === 'parts' && document.querySelectorAll('.task:not([hidden])').length === 3")
        self.page.key("l")
        self.page.until("document.activeElement.id === 'limit-rate' && document.getElementById('limit-scope').value === 'bparts'")
        self.page.type("256K")
        self.page.key("Enter")
        self.says("Barrel parts: at most 256 KiB/s")
        self.page.until("store.status.bytesPerSecond > 0 && store.status.bytesPerSecond < 800 * 1024", "the limit to take effect")
        self.page.click("#barrel-buttons button")
        self.says("3 tasks suspended")
        self.page.until(f"{text_of('#tab-suspend')} === 'Suspended 3'")
        self.page.click("#barrel-list button", 0)
        self.page.key("/")
        self.page.type("other-3")
        self.page.until("document.querySelectorAll('.task:not([hidden])').length === 1")
        self.until_row("other-3.bin", "complete")
        self.page.key("Escape")
        self.page.key("l")
        self.page.until("document.activeElement.id === 'limit-rate' && document.getElementById('limit-scope').value === 'all'")
        self.page.type("2M")
        self.page.key("Enter")
        self.page.until(f"{text_of('#limit-text')} === '2.0 MiB/s'")

    def test_imports_a_list_and_names_bad_entries(self):
        good = self.files.url("listed.bin", 4096)
        self.page.until("store.isLive")
        self.page.run("void takeFile(new File([" + repr(f"# list\n{good}\n  out=renamed.bin\n") + "], 'list.txt'))")
        self.page.until("document.getElementById('add-dialog').open")
        self.page.click("#add-send")
        self.until_row("renamed.bin", "complete")
        self.page.run("void takeFile(new File(['no url at all\\n'], 'list.txt'))")
        self.page.until("document.getElementById('add-dialog').open")
        self.page.click("#add-send")
        self.page.until(f"/line 1/i.test({text_of('#add-problem')})")

    def test_a_folder_is_shown_fetched_synchronized_and_published(self):
        class Quiet(http.server.SimpleHTTPRequestHandler):
            def log_message(self, *_):
                pass

        served = self.folder / "served/pub"
        (served / "sub").mkdir(parents=True)
        for name in ["a.bin", "b.bin", "sub/c.txt"]:
            (served / name).write_bytes(name.encode() * 5000)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=served.parent))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        source = f"http://127.0.0.1:{server.server_address[1]}/pub/"
        page = self.page
        page.until("store.isLive")
        page.key("a")
        page.click("#add-is-source")
        page.run(f"document.getElementById('add-source').value = {source.replace('pub', 'none')!r}")
        page.click("#add-preview")
        page.until(f"{text_of('#add-problem')}.includes('it has no such folder')")
        page.run(f"document.getElementById('add-source').value = {source!r}")
        page.click("#add-preview")
        page.until(f"{text_of('#add-job p')} === '3 new'")
        page.click("#add-send")
        self.says(f"The files of {source} are added.")
        for name in ["a.bin", "b.bin", "c.txt"]:
            self.until_row(name, "complete")
        self.assertEqual((self.folder / "downloads/pub/sub/c.txt").read_bytes(), b"sub/c.txt" * 5000)
        (served / "a.bin").unlink()
        (served / "new.bin").write_bytes(b"new")
        page.run("chooseBarrel('pub')")
        page.click("#barrel-buttons [data-act=sync]")
        page.until(f"{text_of('#sync-job p')}.startsWith('1 new') && {text_of('#sync-job p')}.includes('1 gone')")
        page.click("#sync-delete")
        page.until(f"{text_of('#sync-send')} === 'Synchronize and delete 1 file'")
        page.click("#sync-send")
        self.says("pub is in step: 1 new, 1 deleted")
        self.assertFalse((self.folder / "downloads/pub/a.bin").exists())
        self.assertEqual((self.folder / "downloads/pub/new.bin").read_bytes(), b"new")
        page.click("#barrel-buttons [data-act=publish]")
        page.until("document.getElementById('publish-dialog').open")
        page.type("set")
        page.key("Enter")
        self.says(f"{self.folder}/downloads/set: version ")
        self.assertEqual(sorted(one.name for one in (self.folder / "downloads/set").iterdir() if not one.name.startswith(".")), ["b.bin", "new.bin", "sub"])

    def test_settings_and_times_of_the_day_are_stored(self):
        page = self.page
        page.until("store.isLive")
        page.key(",")
        page.until("document.getElementById('settings-dialog').open")
        page.run("document.getElementById('set-jobs').value = '5'; document.getElementById('set-folder').value = '/etc'")
        page.click("#set-add-time")
        page.run("(() => { const [from, to, rate] = document.querySelectorAll('#set-times input'); from.value = '00:00'; to.value = '00:00'; rate.value = '3M' })()")
        page.click("#settings-send")
        page.until(f"{text_of('#settings-problem')}.includes('/etc is not allowed')")
        page.run("document.getElementById('set-folder').value = 'later'")
        page.click("#settings-send")
        self.says("The settings are changed.")
        page.until(f"{text_of('#limit-text')} === '3.0 MiB/s'")
        shown = subprocess.run([FK, "limit", "--work-path", self.folder / "work"], env=ENVIRONMENT, capture_output=True, text=True, check=True).stdout
        self.assertIn("all tasks: at most 3.0 MiB/s, daily 00:00-24:00", shown)
        # The key changes the limit of the other times, and the window stays.
        page.key("-")
        self.says("Now, from 00:00 to 24:00: at most 3.0 MiB/s.")
        self.add(self.files.url("later.bin", 4096))
        self.until_row("later.bin", "complete")
        self.assertTrue((self.folder / "downloads/later/later.bin").exists())

    def test_a_killed_server_loses_nothing(self):
        self.add(self.files.url("long.bin", 4 << 20, 1 << 20))
        self.page.until(f"({self.row('long.bin')}?.entry.row.received ?? 0) > 500000")
        self.allowed = ["WebSocket", "ERR_CONNECTION_REFUSED"]
        self.program.end(signal.SIGKILL)
        self.page.until(f"{text_of('#banners')}.includes('The connection to fk rpc is lost')")
        self.program = Program(self.folder, *self.words, port=self.program.port)
        self.page.until(f"!{text_of('#banners')}.includes('lost')", seconds=30)
        self.until_row("long.bin", "complete", 30)
        self.assertEqual((self.folder / "downloads/long.bin").read_bytes(), Files.bytes(0, 4 << 20))

    def test_another_process_runs_the_downloads(self):
        self.page.until("store.isLive")
        self.allowed = ["WebSocket", "ERR_CONNECTION_REFUSED"]
        self.program.end()
        get = subprocess.Popen([FK, "get", "--work-path", self.folder / "work", "-d", self.folder / "downloads", "-x", "1", self.files.url("shared.bin", 64 << 20, 1 << 20)],
                               env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(get.wait)
        self.addCleanup(get.kill)
        limit = time.monotonic() + 20
        while not list((self.folder / "downloads").glob(".shared.bin.*")) and time.monotonic() < limit:
            time.sleep(.05)
        self.program = Program(self.folder, *self.words, port=self.program.port)
        self.page.until(f"{text_of('#engine')} === 'Process {get.pid} runs the downloads'", seconds=30)
        self.page.until(f"{text_of('#banners')}.includes('This page follows and steers it')")
        self.until_row("shared.bin", "running")
        self.choose("shared.bin")
        self.page.key(" ")
        self.says("suspended")
        self.until_row("shared.bin", "kept")
        # Its only file is suspended: it ends, and fk rpc takes over.
        get.wait(20)
        self.page.until(f"{text_of('#engine')} === 'Runs the downloads'", seconds=30)
        self.page.until(f"{text_of('#banners')} === ''")
        self.page.key(" ")
        self.until_row("shared.bin", "running")

    def test_names_from_servers_are_text(self):
        self.add(self.files.url("%3Cimg%20src=x%20onerror=alert(1)%3E.bin", 4096))
        self.page.until(f"document.querySelector('.task:not([hidden]) .name b')?.textContent === '<img src=x onerror=alert(1)>.bin'")
        self.assertEqual(self.page.run("document.images.length"), 0)
        self.assertEqual(look.unnamed(self.page.tree()), [])


class SecretProgramTests(ProgramCase):
    def test_the_secret_is_asked_for(self):
        page = self.page
        for secret in ["wrong", (self.folder / "work/rpc-secret").read_text().strip()]:
            page.until("document.getElementById('secret-dialog').open && document.activeElement.id === 'secret' && !document.getElementById('secret-send').disabled")
            page.run("document.getElementById('secret').select()")
            page.type(secret)
            page.key("Enter")
            if secret == "wrong":
                page.until(f"{text_of('#secret-problem')}.includes('refused this secret')")
                # It is off until it is asked for.
                page.run("document.getElementById('secret-keep').click()")
        page.until("store.isLive && !document.getElementById('secret-dialog').open")
        # Kept for this tab alone, so that a reload does not ask again.
        self.assertEqual(
            page.run("[sessionStorage.length, localStorage.getItem('fk.secret'), location.search, document.cookie]"),
            [1, None, "", ""])
        page.run("window.isOld = true; location.reload()")
        page.until("document.readyState === 'complete' && !window.isOld && store.isLive && !document.getElementById('secret-dialog').open")
        self.add(self.files.url("secret.bin", 4096))
        self.until_row("secret.bin", "complete")


if __name__ == "__main__":
    unittest.main()
