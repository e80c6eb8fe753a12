import FKRPC
import TestSupport
import Testing

/// The real aria2p (PyPI) drives `fk rpc`.
@Suite(
    "RPC with aria2p",
    .enabled(if: PythonModule.aria2p.isInstalled, "aria2p is not installed: .ci/needs test installs it"))
struct Aria2pTests {
    /// aria2p's listener names no secret, so it hears notifications only where none is needed.
    @Test(
        "aria2p adds, pauses, resumes, moves, changes options, lists, removes, retries and listens",
        arguments: [true, false])
    func library(hasSecret: Bool) async throws {
        let server = try await RPCProcess(hasSecret ? [] : ["--no-secret"])
        var secret = ""
        if hasSecret { secret = try SecretFile.read(server.folder.file("work/rpc-secret").path) }
        let files = try FaultServer()
        files.route("/a.bin") { _ in .ok([UInt8](repeating: 1, count: 300_000)) }
        let output = server.folder.file("aria2p").path
        let child = try ChildProcess(
            [try #require(Program.find("python3")), "-c", Aria2p.script],
            environment: PythonModule.aria2p.environment.merging([
                "HOME": server.folder.path, "PORT": String(server.port), "FILES": files.url("/"), "SECRET": secret,
            ]) { $1 }, output: .file(output))
        let status = try await offPool { child.end() }
        let text = String(decoding: try server.folder.read("aria2p"), as: UTF8.self)
        #expect(status == 0, "\(text)")
        try await server.end()
    }
}

enum Aria2p {
    static let script = """
        import os, sys, time, traceback, aria2p
        # The thread that listens must not keep a failed script alive.
        sys.excepthook = lambda *error: (traceback.print_exception(*error), os._exit(1))
        files = os.environ["FILES"]
        api = aria2p.API(aria2p.Client(host="http://127.0.0.1", port=int(os.environ["PORT"]), secret=os.environ["SECRET"]))
        listens = not os.environ["SECRET"]

        def until(what, condition):
            for _ in range(400):
                if condition(): return
                time.sleep(0.05)
            raise RuntimeError(what + " did not happen")

        seen = []
        if listens: api.listen_to_notifications(threaded=True, timeout=1,
            on_download_start=lambda a, g: seen.append(("start", g)),
            on_download_complete=lambda a, g: seen.append(("complete", g)),
            on_download_pause=lambda a, g: seen.append(("pause", g)),
            on_download_stop=lambda a, g: seen.append(("stop", g)),
            on_download_error=lambda a, g: seen.append(("error", g)))
        assert api.client.get_version()["version"]
        done = api.add_uris([files + "a.bin"])
        until("the file", lambda: api.get_download(done.gid).is_complete)
        done.update()
        assert done.progress == 100.0 and done.total_length == 300000 and done.name == "a.bin", done.name
        assert done.files[0].path.exists() and str(done.dir) == str(done.files[0].path.parent)
        waiting = [api.add_uris([files + str(n)], options={"pause": "true"}) for n in range(4)]
        assert [d.gid for d in api.get_downloads() if d.is_paused] == [d.gid for d in waiting]
        assert api.move_to_top(waiting[3]) == 0 and waiting[0].move_down(1) == 2 and waiting[1].move_to_bottom() == 3
        order = [d.gid for d in api.get_downloads() if d.is_paused]
        assert order == [waiting[i].gid for i in (3, 0, 2, 1)], order
        options = api.get_options([waiting[0]])[0]
        assert options.split and options.dir
        assert api.set_options({"max-download-limit": "100K"}, [waiting[0]]) == [True]
        assert api.get_options([waiting[0]])[0].max_download_limit == 102400
        assert api.get_global_options().max_concurrent_downloads == 3
        assert api.set_global_options({"max-overall-download-limit": "5M"})
        assert api.get_stats().num_waiting == 4 and api.get_stats().num_stopped == 1
        assert all(r is True for r in api.resume(waiting[:1]))
        until("the error", lambda: api.get_download(waiting[0].gid).has_failed)
        failed = api.get_download(waiting[0].gid)
        assert failed.error_code == "3" and failed.error_message
        assert all(r is True for r in api.retry_downloads([failed]))
        assert all(r is True for r in api.remove([waiting[1]]))
        assert api.pause_all() and api.resume_all() is not None
        if not listens:
            try:
                aria2p.Client(port=int(os.environ["PORT"]), secret="x").get_version()
                raise RuntimeError("a wrong secret was taken")
            except aria2p.ClientException as error:
                assert "Unauthorized" in str(error)
        assert api.client.multicall2([("aria2.getVersion", []), ("aria2.getGlobalStat", [])])[0][0]["version"]
        assert "aria2.addUri" in api.client.list_methods()
        assert api.purge() is not False
        if listens:
            until("a notification", lambda: ("complete", done.gid) in seen and ("start", done.gid) in seen)
            api.stop_listening()
        os._exit(0)
        """
}
