import TestSupport
import Testing

@testable import fk

/// Finished files that are damaged, missing or changed on their servers, with the real program.
@Suite("fk verify, barrel missing, barrel refresh")
final class VerifyCommandTests: ServedSuite {
    private static let mib = 1 << 20
    private let large = Bytes.pattern(count: 5 * VerifyCommandTests.mib + 1_234)
    private let small = Bytes.pattern(count: 3_000)

    override init() throws {
        try super.init()
        server.serve("/large", large)
        server.serve("/small", small)
    }

    /// Inverts bytes of a file in place, as a damaged disk does: the file's time stays, in whole seconds as some disks store it.
    private func flip(_ name: String, at offsets: Int...) throws {
        let path = "\(sandbox.files)/\(name)"
        let date = try #require(try FileManager.default.attributesOfItem(atPath: path)[.modificationDate] as? Date)
        let handle = try FileHandle(forUpdating: URL(fileURLWithPath: path))
        defer {
            try? handle.close()
            let time = Date(timeIntervalSince1970: date.timeIntervalSince1970.rounded(.down))
            try? FileManager.default.setAttributes([.modificationDate: time], ofItemAtPath: path)
        }
        for offset in offsets {
            try handle.seek(toOffset: UInt64(offset))
            let byte = try #require(try handle.read(upToCount: 1)?.first)
            try handle.seek(toOffset: UInt64(offset))
            try handle.write(contentsOf: Data([~byte]))
        }
    }

    @Test("a link that was there already and was kept is followed")
    func keptLink() async throws {
        try await sandbox.done("get", server.url("/small"), "-o", "real")
        try FileManager.default.createSymbolicLink(atPath: "\(sandbox.files)/link", withDestinationPath: "real")
        let kept = try await sandbox.done("get", server.url("/small"), "-o", "link", "--skip").errors
        #expect(kept.contains("was there before\n1 of 1 complete\n"), "nothing was fetched: \(kept)")
        let result = try await sandbox.fk("verify", "--all")
        #expect(result.status == 0 && result.errors == "1 right, 1 unverifiable\n", "\(result.errors)")
    }

    private func ranges(_ path: String) -> [String] { server.requests(path).dropFirst().map { $0["Range"] ?? "-" } }

    @Test("a file is named by its path") func path() async throws {
        for folder in ["one", "two"] { try await sandbox.done("get", server.url("/small"), "-d", folder) }
        for path in ["two/small", "./one/../two/small", "\(sandbox.files)/two/small"] {
            #expect(try await sandbox.json("info", path).text("path") == "\(sandbox.files)/two/small")
        }
        #expect(try await sandbox.done("verify", "one/small").errors == "1 right\n")
        try await sandbox.done("forget", "one/small")
        let gone = try await sandbox.fk("info", "one/small")
        #expect(gone.status == 4 && gone.errors.contains("There is no task 'one/small'"), "\(gone.errors)")
    }

    @Test("members of one name are told apart by their folders: verify, barrel refresh, barrel show")
    func sameNames() async throws {
        let urls = ["/small", "/large"].map { server.url($0) }
        try sandbox.put("\(urls[0])\n out=s1/x.txt\n\(urls[1])\n out=s2/x.txt\n", "list")
        try await sandbox.done("barrel", "import", "b", "-d", "d", "list")
        try await sandbox.done("barrel", "run", "b")
        try flip("d/s2/x.txt", at: 7)
        for words in [["-b", "b"], ["--all"], ["d/s1/x.txt", "d/s2/x.txt"]] {
            let lines = try await sandbox.fk(["verify"] + words).output.split(separator: "\n").sorted()
            #expect(lines == ["damaged s2/x.txt", "right s1/x.txt"])
        }
        let shown = try await sandbox.done("barrel", "show", "b").output
        #expect(shown.contains(" s1/x.txt") && shown.contains(" s2/x.txt"), "\(shown)")
        let refreshed = try await sandbox.fk("barrel", "refresh", "b").output
        #expect(refreshed.contains(" s1/x.txt\n") && refreshed.contains(" s2/x.txt\n"), "\(refreshed)")
    }

    @Test("-q names damaged, missing and repaired files only")
    func quiet() async throws {
        #expect(try await sandbox.fk("get", "-x", "1", server.url("/large"), server.url("/small")).status == 0)
        try flip("large", at: 7)
        let found = try await sandbox.fk("verify", "--all", "-q")
        #expect(found.output == "damaged large\n" && found.errors == "", "\(found.errors)")
        let mended = try await sandbox.fk("verify", "--all", "-q", "--repair")
        #expect(mended.output == "damaged large\nrepaired large\n" && mended.errors == "", "\(mended.errors)")
        #expect(try await sandbox.fk("verify", "--all", "-q").output == "")
    }

    @Test(
        "right and damaged files, with and without a digest, one connection and several; status 1 if any is damaged",
        arguments: ["1", "4"])
    func verify(_ connections: String) async throws {
        try await sandbox.done("get", "-x", connections, server.url("/large"), server.url("/small"))
        let right = try await sandbox.fk("verify", "--all")
        #expect(right.status == 0 && right.errors == "2 right\n", "\(right.errors)")
        #expect(right.output.split(separator: "\n").sorted() == ["right large", "right small"])
        try flip("large", at: 2 * Self.mib + 77, 5 * Self.mib + 1_233)
        let damaged = try await sandbox.fk("verify", server.url("/large"))
        #expect(damaged.status == 1 && damaged.output == "damaged large\n")
        #expect(damaged.errors.contains("2097152-3145727, 5242880-5244113"), "\(damaged.errors)")
        try flip("small", at: 0)
        let json = try await sandbox.fk("verify", "--all", "--json")
        #expect(json.status == 1)
        let documents = try JSON(json.output).array
        #expect(documents.count == 2 && documents.allSatisfy { $0.text("result") == "damaged" })
        let document = try #require(documents.first { $0.text("name") == "large" })
        #expect(document.text("path") == "\(sandbox.files)/large")
        #expect(
            document.array("damaged").map { [$0.number("start"), $0.number("end")] } == [
                [2_097_152, 3_145_728], [5_242_880, 5_244_114],
            ])
        #expect(server.requests("/small").count == 1, "nothing is asked")
    }

    @Test(
        "a file that may not be read is no damaged one: status 1, and a repair leaves its task alone",
        .enabled(if: geteuid() != 0, "root may read everything"))
    func unreadable() async throws {
        server.serve("/closed", [1, 2, 3])
        try await sandbox.done("get", server.url("/closed"))
        chmod("\(sandbox.files)/closed", 0)
        defer { chmod("\(sandbox.files)/closed", 0o600) }
        for words in [["verify", "closed"], ["verify", "closed", "--repair"]] {
            let result = try await sandbox.fk(words)
            #expect(result.status == 1 && result.output == "unverifiable closed\n", "\(result)")
            #expect(result.errors.contains("it cannot be read"), "\(result)")
        }
        #expect(try await sandbox.json("info", "closed").text("state") == "complete")
    }

    @Test("--repair fetches the damaged ranges only, and the file is right again")
    func repair() async throws {
        try await sandbox.done("get", "-x", "1", server.url("/large"))
        try flip("large", at: Self.mib + 5, 3 * Self.mib)
        let result = try await sandbox.done("verify", "--all", "--repair")
        #expect(result.output.hasPrefix("damaged large\n") && result.output.hasSuffix("repaired large\n"))
        #expect(result.errors.hasSuffix("1 repaired\n"), "\(result.errors)")
        #expect(try sandbox.bytes("large") == large)
        #expect(try sandbox.names() == ["large"])
        let asked = ranges("/large")
        #expect(asked.count >= 1 && asked.allSatisfy { $0.hasPrefix("bytes=") }, "\(asked)")
        let bytes = asked.compactMap { range -> Int? in
            let ends = range.dropFirst(6).split(separator: "-").compactMap { Int($0) }
            return ends.count == 2 ? ends[1] - ends[0] + 1 : nil
        }
        #expect(bytes.count == asked.count && bytes.reduce(0, +) <= 2 * Self.mib + 2 * 4_096, "\(asked)")
        #expect(try await sandbox.fk("verify", "--all").output == "right large\n")
        let why = try await sandbox.fk("why", server.url("/large")).output
        #expect(why.contains("repair: 2097152 damaged bytes of the file are fetched again"), "\(why)")
    }

    @Test("--repair with a digest, a truncated file, a missing one")
    func others() async throws {
        let sum = "sha-256=\(Bytes.sha256(large))"
        #expect(try await sandbox.fk("get", "-o", "one", "--checksum", sum, server.url("/large")).status == 0)
        #expect(try await sandbox.fk("get", "-o", "two", "-d", "sub", server.url("/large")).status == 0)
        #expect(try await sandbox.fk("get", server.url("/small")).status == 0)
        try flip("one", at: 4 * Self.mib)
        truncate("\(sandbox.files)/sub/two", off_t(2 * Self.mib + 9))
        try FileManager.default.removeItem(atPath: "\(sandbox.files)/small")
        let found = try await sandbox.fk("verify", "--all")
        #expect(found.status == 1)
        #expect(found.output.split(separator: "\n").sorted() == ["damaged one", "damaged two", "missing small"])
        let repaired = try await sandbox.fk("verify", "--all", "--repair", "--json")
        #expect(repaired.status == 0, "\(repaired.errors)")
        #expect(
            try sandbox.bytes("one") == large && sandbox.bytes("sub/two") == large && sandbox.bytes("small") == small)
        #expect(try sandbox.names() == ["one", "small", "sub"])
        #expect(try await sandbox.fk("verify", "--all").status == 0)
    }

    @Test("a repair that is killed goes on; a file of somebody else under the name stays")
    func killed() async throws {
        try await sandbox.done("get", "-x", "1", server.url("/large"))
        try flip("large", at: Self.mib, 2 * Self.mib, 4 * Self.mib)
        let gate = Gate()
        let body = large
        let count = Observed(0)
        server.route("/large") { request in
            let response = FaultResponse.ranged(body, for: request, etag: "\"v1\"")
            let number = count.next()
            return number == 1 ? response.stalling(at: 300_000, until: gate) : response
        }
        let first = try sandbox.start("verify", "--all", "--repair")
        _ = try await sandbox.record(server.url("/large")) { $0.state == .action }
        _ = try await eventually { count.value > 0 ? true : nil }
        first.kill()
        _ = await first.end()
        gate.open()
        try await sandbox.done("run")
        #expect(try sandbox.bytes("large") == large && sandbox.names() == ["large"])
        try await sandbox.done("verify", "--all")
        try FileManager.default.removeItem(atPath: "\(sandbox.files)/large")
        try sandbox.put("mine", "large")
        let result = try await sandbox.fk("verify", "--all", "--repair")
        #expect(result.status == 0 && result.output.contains("damaged large"), "\(result.errors)")
        #expect(try String(contentsOfFile: "\(sandbox.files)/large", encoding: .utf8) == "mine")
        #expect(try sandbox.bytes("large.1") == large)
    }

    @Test("usage, unknown names, nothing finished; trash removes the checksums")
    func usage() async throws {
        #expect(try await sandbox.fk("verify", "--all").status == 4, "there is no work path")
        try await sandbox.done("barrel", "create", "b", server.url("/large"))
        for words in [["verify"], ["verify", "--all", "-b", "b"], ["verify", "--all", server.url("/large")]] {
            #expect(try await sandbox.fk(words).status == 2)
        }
        #expect(try await sandbox.fk("verify", "-b", "none").status == 4)
        #expect(try await sandbox.fk("verify", "http://none.example/").status == 4)
        let nothing = try await sandbox.fk("verify", "-b", "b")
        #expect(nothing.status == 0 && nothing.output == "" && nothing.errors == "1 not finished\n")
        // Who names a file wants it whole.
        let named = try await sandbox.fk("verify", server.url("/large"))
        #expect(named.status == 1 && named.errors == "1 not finished\n", "\(named)")
        #expect(try await sandbox.done("verify", "--all").errors == "No finished files.\n")
        try await sandbox.done("barrel", "run", "b")
        func pieces() -> [String] {
            (FileManager.default.enumerator(atPath: sandbox.workPath)?.allObjects as? [String] ?? []).filter {
                $0.hasSuffix(".pieces")
            }
        }
        #expect(pieces().count == 1)
        let path = try #require(pieces().first.map { "\(sandbox.workPath)/\($0)" })
        try flip("large", at: 9)
        // Damaged checksums are none. The record has one of the whole file, until that is synced.
        try Data([1, 2, 3]).write(to: URL(fileURLWithPath: path))
        #expect(try await sandbox.fk("verify", "--all").output == "damaged large\n")
        try await sandbox.done("trash", "-y", "--all")
        #expect(pieces().isEmpty)
    }

    @Test("barrel missing: a URL a line, status 1 while something is missing")
    func missing() async throws {
        server.route("/none") { _ in .status(404) }
        #expect(
            try await sandbox.fk("get", "-q", "-b", "b", "--retry", "0", server.url("/small"), server.url("/none"))
                .status == 1)
        let some = try await sandbox.fk("barrel", "missing", "b")
        #expect(some.status == 1 && some.output == "\(server.url("/none"))\n")
        let json = try await sandbox.fk("barrel", "missing", "b", "--json")
        #expect(json.status == 1)
        #expect(try JSON(json.output).array.map { $0.text("state") } == ["error"])
        server.serve("/none", small)
        try await sandbox.done("barrel", "retry", "b")
        try await sandbox.done("barrel", "run", "b")
        let nothing = try await sandbox.fk("barrel", "missing", "b")
        #expect(nothing.status == 0 && nothing.output == "")
        #expect(try await sandbox.fk("barrel", "missing", "none").status == 4)
    }

    @Test("barrel refresh of a lock's member: changed, the old file stays, and the message's command takes the new one")
    func refreshBound() async throws {
        let new = Bytes.pattern(count: 4_000, seed: 9)
        try sandbox.put(
            "{\"fk-lock\":1}\n{\"name\":\"f\",\"size\":\(small.count),\"sha-256\":\"\(Bytes.sha256(small))\","
                + "\"url\":\"\(server.url("/small"))\"}\n", "l.lock")
        try await sandbox.done("get", "-q", "-b", "b", "-i", "l.lock")
        server.route("/small") { .ranged(new, for: $0, etag: "\"v2\"") }
        let refresh = try await sandbox.fk("barrel", "refresh", "b")
        #expect(refresh.status == 1 && refresh.output == "changed f\n", "\(refresh)")
        #expect(refresh.errors.contains("The old file stays"), "\(refresh.errors)")
        #expect(try sandbox.bytes("f") == small)
        #expect(try await sandbox.fk("verify", "--all").output == "right f\n")
        let line = try #require(refresh.errors.split(separator: "\n").first { $0.contains("To take the new one: ") })
        let command = try #require(line.split(separator: "one: ", maxSplits: 1).last)
        let words = command.split(separator: " && ").map { $0.split(separator: " ").dropFirst().map(String.init) }
        for words in words {
            let result = try await sandbox.fk(words.map { $0.replacing("'", with: "") })
            #expect(result.status == 0, "\(words): \(result.errors)")
        }
        #expect(try sandbox.bytes("f") == new)
        #expect(try await sandbox.fk("barrel", "refresh", "b").output == "unchanged f\n")
    }

    @Test(
        "barrel refresh fetches a member whose file was deleted, although the server has the same version",
        arguments: [[], ["--checksum"]])
    func refreshMissing(binding: [String]) async throws {
        let digest = binding.isEmpty ? [] : ["sha256=\(Bytes.sha256(small))"]
        try await sandbox.done(["get", "-q", "-b", "b", server.url("/small")] + binding + digest)
        try FileManager.default.removeItem(at: URL(fileURLWithPath: "\(sandbox.files)/small"))
        let refresh = try await sandbox.done("barrel", "refresh", "b")
        #expect(refresh.output.hasPrefix("missing small\n"), "\(refresh)")
        #expect(try sandbox.bytes("small") == small)
        #expect(try await sandbox.done("barrel", "refresh", "b").output == "unchanged small\n")
    }

    @Test("barrel refresh: unchanged, changed and fetched anew, gone; the old file stays until the new one is whole")
    func refresh() async throws {
        let (old, new) = (small, Bytes.pattern(count: 70_000, seed: 9))
        for name in ["same", "new", "gone"] { server.serve("/\(name)", old) }
        let urls = ["same", "new", "gone"].map { server.url("/\($0)") }
        try await sandbox.done(["get", "-q", "-b", "b"] + urls)
        let conditions = Observed<[String]>([])
        server.route("/same") { request in
            conditions.update { $0.append(request["If-None-Match"] ?? "-") }
            return request["If-None-Match"] == "\"v1\"" ? .status(304) : .ranged(old, for: request, etag: "\"v1\"")
        }
        server.route("/gone") { _ in .status(410) }
        let gate = Gate()
        let count = Observed(0)
        server.route("/new") { request in
            let number = count.next()
            let response = FaultResponse.ranged(new, for: request, etag: "\"v2\"")
            return number == 2 ? response.stalling(at: 30_000, until: gate) : response
        }
        let refresh = try sandbox.start("barrel", "refresh", "b")
        #expect(try await eventually { count.value == 2 ? true : nil } == true)
        #expect(try sandbox.bytes("new") == old, "the old file stays")
        gate.open()
        let end = await refresh.end()
        #expect(end.status == 0, "\(end.errors)")
        #expect(end.output.split(separator: "\n").prefix(3) == ["unchanged same", "changed new", "gone gone"])
        #expect(conditions.value == ["\"v1\""])
        #expect(try sandbox.bytes("new") == new && sandbox.bytes("same") == old && sandbox.bytes("gone") == old)
        #expect(try sandbox.names() == ["gone", "new", "same"])
        let again = try await sandbox.done("barrel", "refresh", "b", "--json")
        let lines = try JSON.lines(again.output)
        #expect(
            lines.map { $0.text("result") } == ["unchanged", "unchanged", "gone"] && lines[1].text("name") == "new")
        #expect(lines[0].keys == ["name", "url", "result"])
        // A server that cannot be asked is an error, and changes nothing.
        server.route("/same") { _ in .status(500) }
        let failed = try await sandbox.fk("barrel", "refresh", "b")
        #expect(failed.status == 1 && failed.errors.contains("same: The server answered 500"))
        #expect(try sandbox.bytes("same") == old)
        try await sandbox.done("verify", "-b", "b")
    }
}
