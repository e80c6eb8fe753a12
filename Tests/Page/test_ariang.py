#!/usr/bin/env python3
"""The real AriaNg against the real `fk rpc`: adds, pauses, resumes, removes, changes options, lists, history.

    FK_ARIANG=FOLDER FK=.build/debug/fk Tests/Page/test_ariang.py [-v]

FOLDER is a built AriaNg, for example a clone of github.com/mayswind/AriaNg-DailyBuild. Without one, or without a Chromium or a built `fk`, the
test is skipped.
"""

import base64
import functools
import http.server
import json
import os
import shutil
import tempfile
import threading
import time
import unittest
import urllib.request
from pathlib import Path

import browser
from files import Files
from test_program import FK, IS_BUILT, Program

ARIANG = os.environ.get("FK_ARIANG")


class Server(http.server.ThreadingHTTPServer):
    """Serves AriaNg from an origin of its own, as a site does."""

    def __init__(self):
        class Quiet(http.server.SimpleHTTPRequestHandler):
            log_message = lambda *_: None

        super().__init__(("127.0.0.1", 0), functools.partial(Quiet, directory=ARIANG))
        threading.Thread(target=self.serve_forever, daemon=True).start()
        self.origin = f"http://127.0.0.1:{self.server_port}"


@unittest.skipUnless(browser.find(), "no Chromium")
@unittest.skipUnless(IS_BUILT, f"{FK} is not built")
@unittest.skipUnless(ARIANG, "FK_ARIANG names no folder with a built AriaNg")
class AriaNg(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = browser.Browser()
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="fk-ariang-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def open(self, program, protocol):
        secret = (program.folder / "work/rpc-secret").read_text().strip()
        # The settings that a user would type; the secret is kept in base64.
        options = {"rpcHost": "127.0.0.1", "rpcPort": str(program.port), "rpcInterface": "jsonrpc", "protocol": protocol, "httpMethod": "POST",
                   "secret": base64.b64encode(secret.encode()).decode(), "language": "en", "globalStatRefreshInterval": 1000,
                   "downloadTaskRefreshInterval": 1000, "afterRetryingTask": "task-list-downloading"}
        # A file without scripts: AriaNg finds the settings when it starts.
        self.page = page = self.browser.page(self.site.origin + "/robots.txt")
        page.run(f"localStorage.setItem('AriaNg.Options', {json.dumps(json.dumps(options))})")
        self.browser.events.clear()
        page.go(self.site.origin + "/index.html#!/downloading")
        page.until("!!(document.querySelector('.global-status, .main-sidebar'))", "AriaNg")
        page.until("document.body.innerText.includes('Connected')", "the connection")

    def errors(self):
        """What the browser's console and AriaNg's dialogs have shown."""
        found = [event["params"] for event in self.browser.events if event["method"] == "Runtime.exceptionThrown"]
        found += [event["params"]["entry"] for event in self.browser.events
                  if event["method"] == "Log.entryAdded" and event["params"]["entry"]["level"] == "error" and "favicon" not in str(event)]
        found += [event["params"] for event in self.browser.events
                  if event["method"] == "Runtime.consoleAPICalled" and event["params"]["type"] in ("error", "warning")]
        return found

    def show(self, place):
        self.page.run(f"location.hash = '#!/{place}'")
        self.page.until(f"location.hash === '#!/{place}'")

    def rows(self):
        return self.page.run("[...document.querySelectorAll('.task-name')].map(e => e.textContent.trim())")

    def until_rows(self, *names):
        wanted = json.dumps(sorted(names))
        self.page.until(f"JSON.stringify([...document.querySelectorAll('.task-name')].map(e => e.textContent.trim()).sort()) === JSON.stringify({wanted})",
                        f"the rows {names}, not {self.rows()}")

    def add(self, *urls, paused=False):
        self.show("new")
        self.page.until("!!(document.querySelector('textarea[name=urls]'))")
        self.page.run("(() => { const t = document.querySelector('textarea[name=urls]'); t.value = " + json.dumps("\n".join(urls)) +
                      "; t.dispatchEvent(new Event('input')); t.dispatchEvent(new Event('change')) })()")
        if paused:
            self.press("startDownload(true)")
        else:
            self.page.until("!document.querySelector('button[type=submit]').disabled")
            self.page.run("document.querySelector('button[type=submit]').click()")
        # AriaNg shows the list when it has the answer.
        self.page.until("location.hash !== '#!/new'", "the list")

    def select(self, name):
        self.page.until(f"[...document.querySelectorAll('.task-name')].some(e => e.textContent.trim() === {json.dumps(name)})", f"the row {name}")
        self.page.run(f"[...document.querySelectorAll('.task-name')].find(e => e.textContent.trim() === {json.dumps(name)}).closest('[data-gid], .row, tr').click()")

    def press(self, call):
        selector = json.dumps(f'[ng-click="{call}"]')
        self.page.until(f"!!document.querySelector({selector})", call)
        self.page.run(f"document.querySelector({selector}).click()")

    def confirm(self):
        self.page.until("!!(document.querySelector('.sweet-alert.visible button.confirm, .swal-button--confirm'))", "a question")
        time.sleep(.5)
        self.page.run("document.querySelector('.sweet-alert.visible button.confirm, .swal-button--confirm').click()")

    def gid(self, name):
        return self.page.run(f"[...document.querySelectorAll('[data-gid]')].find(e => e.querySelector('.task-name').textContent.trim() === {json.dumps(name)}).dataset.gid")

    def tab(self, name):
        self.press(f"changeTab('{name}')")

    def set_option(self, key, value):
        """Types a value into the field of an option, as a user does."""
        selector = json.dumps(f'[data-option-key="{key}"] input')
        self.page.until(f"!!document.querySelector({selector})", f"the option {key}")
        self.page.run(f"(() => {{ const e = document.querySelector({selector}); e.value = {json.dumps(value)}; e.dispatchEvent(new Event('input')); "
                      "e.dispatchEvent(new Event('change')) })()")

    def call(self, method, *params):
        """A call beside AriaNg, to see what it has done."""
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": [f"token:{self.secret}", *params]}).encode()
        with urllib.request.urlopen(f"http://127.0.0.1:{self.program.port}/jsonrpc", body) as answer:
            return json.load(answer)["result"]

    def until_status(self, gid, status):
        limit = time.monotonic() + 20
        while (now := self.call("aria2.tellStatus", gid)["status"]) != status:
            self.assertLess(time.monotonic(), limit, f"{gid} is {now}, not {status}")
            time.sleep(.05)

    def drive(self, files):
        page = self.page
        # Add, pause, resume.
        self.add(files.url("slow.bin", 8 << 20, 200_000))
        self.show("downloading")
        self.until_rows("slow.bin")
        page.until("/[1-9]/.test(document.querySelector('.progress-bar').textContent)", "progress")
        slow = self.gid("slow.bin")
        self.select("slow.bin")
        self.press("changeTasksState('pause')")
        self.until_status(slow, "paused")
        self.show("waiting")
        self.until_rows("slow.bin")
        self.select("slow.bin")
        self.press("changeTasksState('start')")
        self.until_status(slow, "active")
        # Details, and an option of the task.
        self.show(f"task/detail/{slow}")
        page.until("document.body.innerText.includes('Task Status')")
        for tab in ["pieces", "filelist", "overview", "settings"]:
            self.tab(tab)
            page.until("!!(document.querySelector('.tab-pane.active')?.innerText.length > 0)", f"the tab {tab}")
        self.set_option("max-download-limit", "150K")
        limit = time.monotonic() + 20
        while self.call("aria2.getOption", slow)["max-download-limit"] not in ("153600", "150K"):
            self.assertLess(time.monotonic(), limit, "the option was not changed")
            time.sleep(.05)
        # Options of all.
        self.show("settings/aria2/basic")
        self.set_option("max-concurrent-downloads", "4")
        limit = time.monotonic() + 20
        while self.call("aria2.getGlobalOption")["max-concurrent-downloads"] != "4":
            self.assertLess(time.monotonic(), limit, "the option was not changed")
            time.sleep(.05)
        for place in ["http-ftp-sftp", "http", "rpc", "advanced", "metalink"]:
            self.show(f"settings/aria2/{place}")
            page.until("document.querySelectorAll('[data-option-key]').length > 0", place)
        # Several, later.
        self.add(files.url("one.bin"), files.url("two.bin"), paused=True)
        self.show("waiting")
        self.until_rows("one.bin", "two.bin")
        one, two = self.gid("one.bin"), self.gid("two.bin")
        self.select("two.bin")
        self.press("changeTasksState('start')")
        self.until_status(two, "complete")
        # History: complete, failed and tried again, removed.
        files.broken["gone.bin"] = 404
        self.add(files.url("gone.bin"))
        self.show("stopped")
        self.until_rows("two.bin", "gone.bin")
        gone = self.gid("gone.bin")
        self.assertEqual(self.call("aria2.tellStatus", gone)["errorCode"], "3")
        del files.broken["gone.bin"]
        self.press("retryTask(task)")
        self.confirm()
        limit = time.monotonic() + 20
        while not (self.program.folder / "downloads/gone.bin").exists():
            self.assertLess(time.monotonic(), limit, "the failed task was not tried again")
            time.sleep(.05)
        self.show("waiting")
        self.until_rows("one.bin")
        self.select("one.bin")
        self.press("removeTasks()")
        self.confirm()
        self.until_status(one, "removed")
        self.show("stopped")
        page.until("[...document.querySelectorAll('.task-name')].some(e => e.textContent.trim() === 'one.bin')", "one.bin in the history")
        self.press("clearStoppedTasks()")
        self.confirm()
        self.until_rows()
        self.show("status")
        page.until(f"document.body.innerText.includes({json.dumps(self.call('aria2.getVersion')['version'])})", "the version")

    def test_all(self):
        for protocol in ["http", "ws"]:
            with self.subTest(protocol):
                self.run_through(protocol)

    def run_through(self, protocol):
        folder = self.folder / protocol
        folder.mkdir()
        files, self.site = Files(), Server()
        self.addCleanup(files.close)
        self.addCleanup(self.site.server_close)
        self.addCleanup(self.site.shutdown)
        self.program = Program(folder, "--allow-origin", self.site.origin)
        self.addCleanup(self.program.end)
        self.secret = (folder / "work/rpc-secret").read_text().strip()
        try:
            self.open(self.program, protocol)
            self.drive(files)
        except (browser.Failure, AssertionError):
            print(self.page.run("document.body.innerText")[:1500], self.errors())
            raise
        self.assertEqual(self.errors(), [])


if __name__ == "__main__":
    unittest.main()
