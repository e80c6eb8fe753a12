import Foundation
import TestSupport
import Testing

@testable import fk

/// `fk barrel sync`
@Suite("Synchronization, end to end") struct SyncCommandTests {
    /// A folder whose files, versions and faults can be changed.
    private final class Folder: Sendable {
        struct State: Sendable {
            /// The bodies of files by their paths.
            var files: [String: String]
            /// True if the listing says a time beside each name, which changes with the body.
            var hasVersions = true
            /// The files that cannot be fetched.
            var refused: Set<String> = []
            /// The folders that cannot be listed.
            var failing: Set<String> = []
            /// True if listings have an entity tag, by which the server confirms them.
            var hasTags = false
            /// The listings that were confirmed.
            var confirmed: [String] = []
        }

        let server: FaultServer
        let state: Locked<State>

        init(_ files: [String: String]) throws {
            let server = try FaultServer()
            let state = Locked(State(files: files))
            (self.server, self.state) = (server, state)
            let own = state
            server.routeOthers { request in
                let state = state.withLock(\.self)
                let path = String(request.path.dropFirst("/pub/".count))
                if request.method == "OPTIONS" { return .status(405) }
                guard request.path.hasSuffix("/") else {
                    guard let body = state.files[path] else { return .status(404, "Not Found") }
                    if state.refused.contains(path) { return .status(403, "No") }
                    let tag = "\"\(body)\""
                    if request["If-None-Match"] == tag { return .status(304, headers: ["ETag": "\(tag)"]) }
                    return .ok(Array(body.utf8), headers: ["ETag": "\(tag)"])
                }
                if state.failing.contains(path) { return .status(403, "No") }
                var rows: [String: String] = [:]
                for (name, body) in state.files where name.hasPrefix(path) {
                    let rest = name.dropFirst(path.count)
                    let isFolder = rest.contains("/")
                    rows[String(rest.prefix { $0 != "/" }) + (isFolder ? "/" : "")] =
                        isFolder || !state.hasVersions ? "" : "26-Nov-2026 \(body.utf8.count)-\(body)"
                }
                let text = rows.sorted { $0.key < $1.key }.map { "<a href=\"\($0.key)\">\($0.key)</a> \($0.value)\n" }
                    .joined()
                let body = Array("<html><title>Index of /pub/</title><pre>\(text)</pre></html>".utf8)
                guard state.hasTags else { return .ok(body, headers: ["Content-Type": "text/html"]) }
                let tag = "\"\(text.utf8.reduce(5_381) { $0 &* 33 &+ Int($1) })\""
                if request["If-None-Match"] == tag {
                    own.withLock { $0.confirmed.append(path) }
                    return .status(304, headers: ["ETag": tag])
                }
                return .ok(body, headers: ["Content-Type": "text/html", "ETag": tag])
            }
        }

        var url: String { server.url("/pub/") }
        func change(_ body: (inout State) -> Void) { state.withLock { body(&$0) } }
        /// The listings that were confirmed since the last call.
        func takeConfirmed() -> [String] {
            state.withLock { state in
                defer { state.confirmed = [] }
                return state.confirmed.sorted()
            }
        }
        /// The methods and paths of requests for listings since there were `count`.
        func listed(since count: Int) -> [String] {
            server.requests.dropFirst(count).filter { $0.path.hasSuffix("/") }.map { "\($0.method) \($0.path)" }
                .sorted()
        }
        /// The requests for files since there were `count`.
        func asked(since count: Int) -> [String] {
            server.requests.dropFirst(count).filter { !$0.path.hasSuffix("/") }.map(\.path).sorted()
        }
    }

    private static let files = ["a": "1", "b": "2", "c": "3", "d": "4", "s/x": "5", "s/y": "6"]

    /// A sandbox with the folder's files.
    private func fetched(_ folder: Folder) async throws -> Sandbox {
        let sandbox = try Sandbox()
        try await sandbox.done("get", "-r", folder.url)
        return sandbox
    }

    private func tree(_ sandbox: Sandbox) throws -> [String: String] {
        try FolderCommandTests.tree("\(sandbox.files)/pub").mapValues { String(decoding: $0, as: UTF8.self) }
    }

    @Test("a divided barrel is refused: its files belong to the shards")
    func divided() async throws {
        let folder = try Folder(Self.files)
        let sandbox = try Sandbox()
        try await sandbox.done("barrel", "import", "pub", "-r", folder.url, "-d", "pub")
        for shard in 1...2 { try await sandbox.done("barrel", "run", "pub", "-q", "--shard", "\(shard)/2") }
        let result = try await sandbox.fk("barrel", "sync", "pub")
        #expect(result.status == 2 && result.errors.contains("is divided into 2 shards"), "\(result)")
        #expect(try await sandbox.fk("list", "--state", "failed").output == "")
    }

    @Test("new and changed files are fetched, unchanged ones cost no request")
    func follows() async throws {
        let folder = try Folder(Self.files)
        let sandbox = try await fetched(folder)
        var count = folder.server.requests.count
        let same = try await sandbox.done("barrel", "sync", "pub")
        #expect(same.output == "" && same.errors == "pub: 0 new, 0 changed, 6 same, 0 gone\n")
        #expect(folder.asked(since: count) == [])
        folder.change {
            $0.files["a"] = "changed"
            $0.files["s/n"] = "new"
        }
        let dry = try await sandbox.done("barrel", "sync", "pub", "--dry-run")
        #expect(
            dry.output.contains("changed - a\n") && dry.output.contains("new - s/n\n")
                && dry.output.hasSuffix("1 new, 1 changed, 5 same (5 B), 0 gone\n"), "\(dry.output)")
        count = folder.server.requests.count
        let changed = try await sandbox.done("barrel", "sync", "pub", "--print", "none")
        #expect(changed.output == "new s/n\nchanged a\n")
        // One conditional request, and the new body.
        #expect(folder.asked(since: count) == ["/pub/a", "/pub/a", "/pub/s/n"])
        #expect(try tree(sandbox) == folder.state.withLock(\.files))
        count = folder.server.requests.count
        try await sandbox.done("barrel", "sync", "pub")
        #expect(folder.asked(since: count) == [])
    }

    @Test("a listing that has not changed costs one 304, and is as good as a new one", arguments: [false, true])
    func confirmed(again: Bool) async throws {
        let folder = try Folder(Self.files)
        folder.change { $0.hasTags = true }
        let sandbox = try await fetched(folder)
        let words = again ? ["get", "-r", folder.url] : ["barrel", "sync", "pub"]
        #expect(folder.takeConfirmed() == [])
        var count = folder.server.requests.count
        try await sandbox.done(words)
        #expect(folder.takeConfirmed() == ["", "s/"])
        #expect(folder.listed(since: count) == ["GET /pub/", "GET /pub/s/"] && folder.asked(since: count) == [])
        folder.change {
            $0.files["n"] = "new"
            $0.files["a"] = nil
        }
        count = folder.server.requests.count
        try await sandbox.done(words)
        #expect(folder.takeConfirmed() == ["s/"] && folder.asked(since: count) == ["/pub/n"])
        let deleted = try await sandbox.done("barrel", "sync", "pub", "--delete", "--yes")
        #expect(deleted.output == "deleted a\n" && folder.takeConfirmed() == ["", "s/"])
        #expect(try tree(sandbox) == folder.state.withLock(\.files))
    }

    @Test("a remembered listing that is damaged is asked for again, and nothing counts as gone")
    func damaged() async throws {
        let folder = try Folder(Self.files)
        folder.change { $0.hasTags = true }
        let sandbox = try await fetched(folder)
        let path = WorkPath(sandbox.workPath).listingPath("pub")
        let bytes = try #require(FileManager.default.contents(atPath: path))
        for place in stride(from: 0, to: bytes.count, by: max(1, bytes.count / 12)) {
            for isCut in [false, true] {
                var bad = isCut ? bytes.prefix(place) : bytes
                if !isCut { bad[place] ^= 0x08 }
                try bad.write(to: URL(fileURLWithPath: path))
                let result = try await sandbox.done("barrel", "sync", "pub", "--delete", "--yes")
                #expect(result.output == "" && result.errors == "pub: 0 new, 0 changed, 6 same, 0 gone\n", "\(place)")
            }
        }
        // It is whole again.
        _ = folder.takeConfirmed()
        try await sandbox.done("barrel", "sync", "pub")
        #expect(folder.takeConfirmed() == ["", "s/"])
        try await sandbox.done("barrel", "delete", "pub", "--yes")
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test("where a listing says no versions, servers are asked with conditions")
    func conditions() async throws {
        let folder = try Folder(Self.files)
        folder.change { $0.hasVersions = false }
        let sandbox = try await fetched(folder)
        folder.change { $0.files["a"] = "changed" }
        let count = folder.server.requests.count
        let changed = try await sandbox.done("barrel", "sync", "pub", "--print", "none")
        #expect(changed.output == "changed a\n")
        #expect(folder.asked(since: count).count == 7)
        #expect(try tree(sandbox) == folder.state.withLock(\.files))
    }

    @Test("a changed file stays as it is for get -r, is told, and is still changed for sync") func outdated()
        async throws
    {
        let folder = try Folder(Self.files)
        let sandbox = try await fetched(folder)
        folder.change { $0.files["a"] = "changed" }
        for _ in 0..<2 {
            let again = try await sandbox.done("get", "-r", folder.url)
            #expect(
                again.errors.contains("1 finished file has another version at the source now, and stays"), "\(again)")
            #expect(try tree(sandbox)["a"] == "1")
        }
        #expect(try await sandbox.done("barrel", "sync", "pub", "--print", "none").output == "changed a\n")
        #expect(try tree(sandbox) == folder.state.withLock(\.files))
        let again = try await sandbox.done("get", "-r", folder.url)
        #expect(!again.errors.contains("another version"))
    }

    @Test("a folder that becomes a file, and a file that becomes a folder, are in step after one run")
    func fileAndFolder() async throws {
        let folder = try Folder(["dir/f1": "1", "dir/deep/f2": "2", "x": "3", "k": "4"])
        let sandbox = try await fetched(folder)
        folder.change { $0.files = ["dir": "5", "x/y/z": "6", "k": "4"] }
        // Without --delete nothing makes room.
        #expect(try await sandbox.fk("barrel", "sync", "pub").status == 1)
        try await sandbox.done("retry", "--state", "failed")
        for _ in 0..<2 {
            try await sandbox.done("barrel", "sync", "pub", "--delete", "--yes", "--max-delete", "100%")
            #expect(try tree(sandbox) == folder.state.withLock(\.files))
        }
    }

    @Test("nothing more is deleted if a new file could not be fetched") func failedFetch() async throws {
        let folder = try Folder(Self.files)
        let sandbox = try await fetched(folder)
        folder.change {
            $0.files["a"] = nil
            $0.files["a2"] = "1"
            $0.refused = ["a2"]
        }
        let failed = try await sandbox.fk("barrel", "sync", "pub", "--delete", "--yes")
        #expect(failed.status == 1 && failed.errors.contains("nothing more was deleted"), "\(failed)")
        #expect(try tree(sandbox)["a"] == "1")
        folder.change { $0.refused = [] }
        try await sandbox.done("barrel", "sync", "pub", "--delete", "--yes")
        #expect(try tree(sandbox) == folder.state.withLock(\.files))
    }

    @Test("an empty folder makes room for a new file of its name") func emptyFolder() async throws {
        let folder = try Folder(Self.files)
        let sandbox = try await fetched(folder)
        try FileManager.default.createDirectory(
            atPath: "\(sandbox.files)/pub/new/deep/er", withIntermediateDirectories: true)
        folder.change { $0.files["new"] = "1" }
        try await sandbox.done("barrel", "sync", "pub", "--delete", "--yes")
        #expect(try tree(sandbox) == folder.state.withLock(\.files))
    }

    @Test("a choice that nothing meets any more is in step, and what it had is gone") func nothingChosen() async throws
    {
        let folder = try Folder(["a.txt": "1", "b": "2"])
        let sandbox = try Sandbox()
        try await sandbox.done("get", "-r", folder.url, "--include", "*.txt")
        folder.change { $0.files["a.txt"] = nil }
        let synced = try await sandbox.done("barrel", "sync", "pub", "--delete", "--yes", "--max-delete", "100%")
        #expect(synced.output == "deleted a.txt\n")
    }

    @Test("a time in a listing that the file may keep when it changes again is no version") func tooNew() throws {
        let now = Date(timeIntervalSince1970: 1_795_725_851)  // 2026-11-26 20:44:11 UTC
        for (text, isTooNew) in [
            ("26-Nov-2026 20:44  12", true), ("26-Nov-2026 20:45 12", true), ("26-Nov-2026 20:41 12", false),
            ("2026-11-26 20:44 12", true), ("2026-11-26 22:14 12", true), ("2026-11-26 22:20 12", false),
            ("Thu, 26 Nov 2026 20:44:10 GMT 12", true), ("Thu, 26 Nov 2026 20:44:05 GMT 12", false),
            ("2026-11-26T20:44:11.5Z 12", true), ("2026-Nov-26 20:44:11", true), ("25-Nov-2026 20:44", false),
            ("26-Nov-2025 20:44", false), ("20:44 12", false), ("12", false), ("", false), ("99-Foo-2026 20:44", false),
        ] {
            #expect((ListedTime(text)?.isTooNew(at: now) ?? false) == isTooNew, "\(text)")
        }
        #expect(ListedTime("26-Nov-2026 20:44:11")?.seconds == 1_795_725_851)
        #expect(ListedTime("29-Feb-2028 00:00:00")?.seconds == 1_835_395_200)
    }

    @Test("a gone file that another barrel has too stays, and leaves this one") func shared() async throws {
        let folder = try Folder(Self.files)
        let sandbox = try await fetched(folder)
        // The same task in two barrels.
        try await sandbox.done("get", "-q", folder.server.url("/pub/a"), "-o", "a", "-d", "pub", "-b", "other")
        folder.change { $0.files["a"] = nil }
        let synced = try await sandbox.done("barrel", "sync", "pub", "--delete", "--yes")
        #expect(synced.output == "gone a\n" && synced.errors.contains("has it too"), "\(synced)")
        #expect(try tree(sandbox)["a"] == "1")
        #expect(try await sandbox.done("barrel", "sync", "pub", "--delete", "--yes").output == "")
        #expect(try await sandbox.done("barrel", "show", "other").output.contains("1 of 1 complete"))
    }

    @Test("what is gone stays and is told; --delete takes what is ours and unedited")
    func deletion() async throws {
        let folder = try Folder(Self.files)
        let sandbox = try await fetched(folder)
        // A file of another origin in the same barrel is none of the source's.
        folder.server.route("/other") { _ in .ok([9]) }
        try await sandbox.done("get", folder.server.url("/other"), "-b", "pub", "-d", "pub")
        folder.change {
            $0.files["a"] = nil
            $0.files["s/x"] = nil
        }
        try sandbox.put("edited", "pub/a")
        let told = try await sandbox.done("barrel", "sync", "pub")
        #expect(told.output.split(separator: "\n").sorted() == ["gone a", "gone s/x"])
        #expect(try tree(sandbox).count == 7)
        // Nobody can be asked here.
        let refused = try await sandbox.fk("barrel", "sync", "pub", "--delete")
        #expect(refused.status == 2 && refused.errors.contains("--yes") && sandbox.exists("pub/s/x"))
        let deleted = try await sandbox.done("barrel", "sync", "pub", "--delete", "--yes")
        #expect(deleted.output.split(separator: "\n").sorted() == ["deleted s/x", "gone a"])
        #expect(deleted.errors.contains("a is gone from the source and stays here: it was changed after fk wrote it"))
        #expect(try tree(sandbox).keys.sorted() == ["a", "b", "c", "d", "other", "s/y"])
        #expect(try sandbox.bytes("pub/a") == Array("edited".utf8))
    }

    @Test("an entry that cannot be used is not gone: a subfolder was moved, and a link leads to it")
    func linkedFolder() async throws {
        let folder = try Folder(Self.files)
        let sandbox = try await fetched(folder)
        let moved = try TemporaryFolder()
        try FileManager.default.moveItem(atPath: "\(sandbox.files)/pub/s", toPath: "\(moved.path)/s")
        try FileManager.default.createSymbolicLink(
            atPath: "\(sandbox.files)/pub/s", withDestinationPath: "\(moved.path)/s")
        let result = try await sandbox.fk("barrel", "sync", "pub", "--delete", "--yes", "--max-delete", "100%")
        #expect(result.status == 1 && !result.output.contains("deleted"), "\(result)")
        #expect(result.errors.contains("a part could not be used, so nothing counts as gone"), "\(result.errors)")
        for name in ["x", "y"] { #expect(FileManager.default.fileExists(atPath: "\(moved.path)/s/\(name)")) }
        // What the server does not have any more is not deleted through the link either.
        folder.change { $0.files = $0.files.filter { !$0.key.hasPrefix("s/") } }
        let gone = try await sandbox.fk("barrel", "sync", "pub", "--delete", "--yes", "--max-delete", "100%")
        #expect(gone.output == "gone s/x\ngone s/y\n" || gone.output == "gone s/y\ngone s/x\n", "\(gone)")
        for name in ["x", "y"] { #expect(FileManager.default.fileExists(atPath: "\(moved.path)/s/\(name)")) }
    }

    @Test("a barrel's folder that was moved, with a link in its place, is the same") func linkedBarrel() async throws {
        let folder = try Folder(Self.files)
        let sandbox = try await fetched(folder)
        try FileManager.default.moveItem(atPath: "\(sandbox.files)/pub", toPath: "\(sandbox.files)/disk")
        try FileManager.default.createSymbolicLink(
            atPath: "\(sandbox.files)/pub", withDestinationPath: "\(sandbox.files)/disk")
        let count = folder.server.requests.count
        let same = try await sandbox.done("barrel", "sync", "pub", "--delete", "--yes")
        #expect(same.output == "" && same.errors == "pub: 0 new, 0 changed, 6 same, 0 gone\n", "\(same)")
        #expect(folder.asked(since: count) == [])
        folder.change { $0.files["a"] = nil }
        #expect(try await sandbox.done("barrel", "sync", "pub", "--delete", "--yes").output == "deleted a\n")
        #expect(!sandbox.exists("disk/a") && sandbox.exists("disk/b"))
    }

    @Test("a file whose new version never came is changed, and stays if it was edited")
    func unfinishedRenewal() async throws {
        let folder = try Folder(Self.files)
        let sandbox = try await fetched(folder)
        folder.change {
            $0.files["a"] = "22"
            $0.files["b"] = "33"
            $0.refused = ["a", "b"]
        }
        // The listing has other times, and the servers do not give the files.
        #expect(try await sandbox.fk("barrel", "sync", "pub").status == 1)
        let dry = try await sandbox.fk("barrel", "sync", "pub", "--dry-run")
        #expect(dry.output.contains("changed - a\n") && dry.output.contains("changed - b\n"), "\(dry)")
        try sandbox.put("edited", "pub/a")
        folder.change {
            $0.files["a"] = nil
            $0.files["b"] = nil
        }
        let gone = try await sandbox.done("barrel", "sync", "pub", "--delete", "--yes")
        #expect(gone.output.split(separator: "\n").sorted() == ["deleted b", "gone a"], "\(gone)")
        #expect(gone.errors.contains("a is gone from the source and stays here: it was changed"), "\(gone.errors)")
        #expect(try sandbox.bytes("pub/a") == Array("edited".utf8) && !sandbox.exists("pub/b"))
    }

    @Test("files of the same source in another folder are not gone") func elsewhere() async throws {
        let folder = try Folder(Self.files)
        let sandbox = try await fetched(folder)
        try await sandbox.done("get", "-r", folder.url, "-b", "pub", "-d", "other")
        let result = try await sandbox.done("barrel", "sync", "pub", "--delete", "--max-delete", "100%", "--yes")
        #expect(!result.output.contains("gone") && !result.output.contains("deleted"), "\(result.output)")
        for name in ["other/a", "other/s/x", "pub/a"] { #expect(sandbox.exists(name)) }
    }

    @Test(
        "more than --max-delete allows: nothing is deleted",
        arguments: [
            (3, nil, true), (4, nil, false), (2, "1", false), (2, "2", true), (5, "100%", true), (1, "0", false),
            (2, "33%", false), (2, "34%", true),
        ] as [(Int, String?, Bool)])
    func limit(gone: Int, limit: String?, isAllowed: Bool) async throws {
        let folder = try Folder(Self.files)
        let sandbox = try await fetched(folder)
        folder.change { for name in $0.files.keys.sorted().prefix(gone) { $0.files[name] = nil } }
        let words = ["barrel", "sync", "pub", "--delete", "--yes"] + (limit.map { ["--max-delete", $0] } ?? [])
        let result = try await sandbox.fk(words)
        #expect(result.status == (isAllowed ? 0 : 1), "\(result.errors)")
        #expect(try tree(sandbox).count == (isAllowed ? 6 - gone : 6))
        #expect(isAllowed || result.errors.contains("--max-delete"))
    }

    @Test("where a listing failed, nothing counts as gone and nothing is deleted", arguments: ["", "s/"])
    func failing(path: String) async throws {
        let folder = try Folder(Self.files)
        let sandbox = try await fetched(folder)
        folder.change {
            $0.failing = [path]
            $0.files["a"] = nil
            $0.files["n"] = "new"
        }
        let result = try await sandbox.fk(
            "barrel", "sync", "pub", "--delete", "--max-delete", "100%", "--yes")
        #expect(
            result.status == 1 && !result.output.contains("gone") && !result.output.contains("deleted"),
            "\(result.output)")
        #expect(try Set(tree(sandbox).keys).isSuperset(of: Self.files.keys))
        // What was listed is followed all the same.
        #expect(sandbox.exists("pub/n") == (path == "s/"))
    }

    @Test("words of the first command hold: what they leave out is not gone")
    func words() async throws {
        let folder = try Folder(Self.files)
        let sandbox = try await fetched(folder)
        try await sandbox.done("get", "-r", folder.url, "--exclude", "s/*", "--exclude", "a")
        folder.change { $0.files["b"] = nil }
        let result = try await sandbox.done("barrel", "sync", "pub", "--delete", "--yes")
        #expect(result.output == "deleted b\n")
        #expect(try tree(sandbox).keys.sorted() == ["a", "c", "d", "s/x", "s/y"])
    }

    @Test("an emptied folder deletes nothing: it is more than half")
    func emptied() async throws {
        let folder = try Folder(Self.files)
        let sandbox = try await fetched(folder)
        folder.change { $0.files = [:] }
        let result = try await sandbox.fk("barrel", "sync", "pub", "--delete", "--yes")
        #expect(result.status == 1)
        #expect(try tree(sandbox).count == 6)
    }

    @Test("a file that fk did not write stays, whatever its server says")
    func foreign() async throws {
        let folder = try Folder(["a": "1", "b": "2"])
        let sandbox = try Sandbox()
        try FileManager.default.createDirectory(atPath: "\(sandbox.files)/pub", withIntermediateDirectories: true)
        try sandbox.put("mine", "pub/a")
        try await sandbox.done("get", "-r", folder.url, "--skip")
        folder.change { $0.files["a"] = "changed" }
        let result = try await sandbox.done("barrel", "sync", "pub")
        #expect(result.errors.contains("a has another version and stays as it is"), "\(result.errors)")
        folder.change { $0.files["a"] = nil }
        let gone = try await sandbox.done("barrel", "sync", "pub", "--delete", "--yes")
        #expect(gone.output == "gone a\n" && gone.errors.contains("fk did not write it"), "\(gone.errors)")
        #expect(try sandbox.bytes("pub/a") == Array("mine".utf8))
    }

    @Test("a barrel without a source is refused")
    func noSource() async throws {
        let folder = try Folder(Self.files)
        let sandbox = try Sandbox()
        try await sandbox.done("get", folder.url + "a", "-b", "x")
        let result = try await sandbox.fk("barrel", "sync", "x")
        #expect(result.status == 2 && result.errors.contains("has no source"))
        #expect(try await sandbox.fk("barrel", "sync", "none").status != 0)
    }

    @Test("--json has a line for each file")
    func json() async throws {
        let folder = try Folder(["a": "1", "b": "2", "c": "3"])
        let sandbox = try await fetched(folder)
        folder.change {
            $0.files["a"] = nil
            $0.files["n"] = "new"
        }
        let result = try await sandbox.done("barrel", "sync", "pub", "--json", "--delete", "--yes")
        let lines = result.output.split(separator: "\n").filter { $0.contains("\"result\"") }
        #expect(lines.contains { $0.contains("\"name\":\"n\"") && $0.contains("\"result\":\"new\"") })
        #expect(lines.contains { $0.contains("\"name\":\"a\"") && $0.contains("\"result\":\"deleted\"") })
    }

    private static let strace: String? = Program.find("strace").flatMap { strace in
        (try? FKProgram.wait(for: strace, ["-f", "-o", "/dev/null", "true"]))?.status == 0 ? strace : nil
    }

    @Test(
        "killed at a system call of a synchronization with deletion: nothing foreign is gone, and the next one is right",
        .enabled(if: strace != nil, "strace is not installed or may not trace here"),
        arguments: ["unlink", "unlinkat", "renameat2", "rename", "pwrite64", "ftruncate"], [1, 2, 3, 5])
    func killed(call: String, count: Int) async throws {
        let folder = try Folder(Self.files)
        let sandbox = try await fetched(folder)
        folder.change {
            $0.files["a"] = "changed"
            $0.files["n"] = "new"
            for name in ["b", "c", "s/x"] { $0.files[name] = nil }
        }
        try sandbox.put("edited", "pub/c")
        try sandbox.put("foreign", "pub/mine")
        let words = ["barrel", "sync", "pub", "--delete", "--yes", "--print", "none"]
        let strace = try #require(Self.strace)
        let first = try await FKProgram.run(
            strace,
            [
                "-f", "-o", "/dev/null", "-e", "trace=\(call)", "-e", "inject=\(call):signal=KILL:when=\(count)",
                FKProgram.path,
            ] + words, environment: ["FK_WORK_PATH": sandbox.workPath], folder: sandbox.files)
        #expect(first.status == 137 || first.status == 0, "\(first.errors)")
        let between = try tree(sandbox)
        #expect(between["c"] == "edited" && between["mine"] == "foreign")
        for (name, text) in folder.state.withLock(\.files) where name != "a" && name != "n" {
            #expect(between[name] == text)
        }
        #expect(["1", "changed"].contains(between["a"]))
        try await sandbox.done(words)
        var expected = folder.state.withLock(\.files)
        expected["c"] = "edited"
        expected["mine"] = "foreign"
        #expect(try tree(sandbox).filter { !$0.key.contains("/.") && !$0.key.hasPrefix(".") } == expected)
    }
}
