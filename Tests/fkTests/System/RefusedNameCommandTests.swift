import TestSupport
import Testing

@testable import fk

/// strace plays a disk like exFAT: it refuses each call that would make the name.
@Suite(
    "A disk that refuses a name for its characters", .enabled(if: Program.find("strace") != nil))
final class RefusedNameCommandTests: ServedSuite {
    private static let content = Bytes.pattern(count: 300_000)

    /// Runs `fk get` with these words on a disk that refuses the names.
    private func get(_ words: String..., refusing names: [String]) async throws -> FKProgram.Output {
        let calls = "openat,renameat,renameat2,linkat"
        return try await FKProgram.run(
            try #require(Program.find("strace")),
            ["-f", "-o", "/dev/null"] + names.flatMap { ["-P", $0] }
                + ["-e", "trace=\(calls)", "-e", "inject=\(calls):error=EINVAL", FKProgram.path, "get", "-d"]
                + [sandbox.files, "--retry", "0"] + words,
            environment: FKProgram.environment(["FK_WORK_PATH": sandbox.workPath]), folder: sandbox.files)
    }

    /// The usual name of the part.
    private func part(_ url: String, _ name: String, isAskedFor: Bool = false) -> String {
        var task = TaskDescription(url: url)
        task.directory = sandbox.files
        if isAskedFor { task.fileName = name }
        return FileNameRules.partName(for: name, id: task.id)
    }

    @Test("the server's name is refused after all bytes came: they are kept, and why says which character")
    func serversName() async throws {
        server.routeOthers { _ in
            .ok(Self.content, headers: ["Content-Disposition": "attachment; filename=\"log 15:50:04.txt\""])
        }
        let result = try await get(server.url("/get"), refusing: ["log 15:50:04.txt"])
        #expect(result.status == 0, "\(result.errors)")
        #expect(try sandbox.bytes("log 15_50_04.txt") == Self.content)
        #expect(server.requests.count == 1)
        #expect(try await sandbox.done("why", server.url("/get")).output.contains("refuses ':'"))
    }

    @Test("the URL's name is refused: another one is used from the first byte on")
    func urlsName() async throws {
        server.routeOthers { _ in .ok(Self.content) }
        let (url, name) = (server.url("/IMG_15:50:04.jpg"), "IMG_15:50:04.jpg")
        let result = try await get(url, refusing: [name, part(url, name)])
        #expect(result.status == 0, "\(result.errors)")
        #expect(try sandbox.bytes("IMG_15_50_04.jpg") == Self.content)
        #expect(server.requests.count == 1)
    }

    @Test("a name that was asked for is refused before a byte is fetched, and the error names the character")
    func askedFor() async throws {
        server.routeOthers { _ in .ok(Self.content) }
        let url = server.url("/a")
        let result = try await get("-o", "a:b", url, refusing: ["a:b", part(url, "a:b", isAskedFor: true)])
        #expect(result.status == 1 && server.requests.isEmpty)
        #expect(
            result.errors.contains("refuses the name \"a:b\" because of ':': choose another name with -o."),
            "\(result.errors)")
    }
}
