import TestSupport
import Testing

@testable import fk

@Suite("Work paths that are not as they should be, settings, the demo")
final class WorkPathCommandTests: ServedSuite {
    private let body = Bytes.pattern(count: 100_000)

    override init() throws {
        try super.init()
        server.serve("/a", body)
        server.serve("/b", body)
    }

    private static let everyCommand = [
        ["get", "http://127.0.0.1:1/a"], ["run"], ["list"], ["info", "abcdef"], ["why", "abcdef"], ["watch"],
        ["suspend", "--all"], ["trash", "--all", "-y"], ["barrel", "list"], ["barrel", "show", "x"],
        ["barrel", "create", "x"], ["barrel", "run", "x"], ["get", "--detach", "http://127.0.0.1:1/a"],
    ]

    @Test("A file in its place ends with 3 and is left alone", arguments: everyCommand) func file(words: [String])
        async throws
    {
        try "mine".write(toFile: sandbox.workPath, atomically: false, encoding: .utf8)
        let result = try await sandbox.fk(words)
        #expect(result.status == 3, "\(result.errors)")
        #expect(result.output == "" && result.errors.contains(sandbox.workPath))
        #expect(try String(contentsOfFile: sandbox.workPath, encoding: .utf8) == "mine")
    }

    @Test("A FIFO in place of the settings is an error with its name, and is not waited for")
    func settingsFIFO() async throws {
        let path = sandbox.workPath + "/config"
        try await sandbox.done("config", "set", "jobs", "2")
        try FileManager.default.removeItem(atPath: path)
        #expect(mkfifo(path, 0o600) == 0)
        for words in [["config", "show"], ["config", "set", "jobs", "3"], ["get", server.url("/a")]] {
            let result = try await sandbox.fk(words)
            #expect(result.status != 0 && result.errors.contains(path), "\(words): \(result.errors)")
            #expect(!result.errors.contains("Error Domain="))
        }
        #expect(server.requests.isEmpty)
    }

    @Test("fk info says whether a finished file is on the disk itself, and what becomes of one that is not")
    func synced() async throws {
        func fk(boot: String, _ words: String...) async throws -> String {
            let environment = ["FK_WORK_PATH": sandbox.workPath, "FK_BOOT_ID": boot]
            let files = sandbox.files
            let result = try await FKProgram.run(words, environment: environment, folder: files)
            #expect(result.status == 0, "\(result.errors)")
            return result.output
        }
        func isSynced(boot: String, _ url: String) async throws -> Bool? {
            try JSON(try await fk(boot: boot, "info", url, "--json"))["synced"] as? Bool
        }
        let (a, b) = (server.url("/a"), server.url("/b"))
        _ = try await fk(boot: "1", "get", a)
        _ = try await fk(boot: "1", "get", b, "--durability", "power")
        #expect(try await isSynced(boot: "1", b) == true)
        #expect(try await isSynced(boot: "1", a) == false)
        #expect(try await fk(boot: "1", "info", b).contains("on the disk itself"))
        #expect(try await fk(boot: "1", "info", a).contains("not yet; after a power cut"))
        #expect(try await fk(boot: "2", "info", a).contains("the system went down since"))
        _ = try await fk(boot: "2", "run")
        #expect(try await isSynced(boot: "2", a) == true)
        #expect(try await fk(boot: "2", "why", a).contains("proof: the file is whole"))
        #expect(server.requests("/a").count == 1)
        _ = try await fk(boot: "2", "barrel", "create", "later", server.url("/c"))
        #expect(try await isSynced(boot: "2", server.url("/c")) == nil)
    }

    @Test("One of a later version ends with 3 and is left alone", arguments: everyCommand)
    func laterVersion(words: [String]) async throws {
        let layout = "\(sandbox.workPath)/layout"
        try FileManager.default.createDirectory(
            atPath: sandbox.workPath, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        try "99\n".write(toFile: layout, atomically: false, encoding: .utf8)
        let result = try await sandbox.fk(words)
        #expect(result.status == 3, "\(result.errors)")
        #expect(result.errors.contains("99"))
        #expect(try FileManager.default.contentsOfDirectory(atPath: sandbox.workPath) == ["layout"])
    }

    @Test("A work path that is given stands in every hint") func hints() async throws {
        let other = "\(sandbox.folder.path)/an other"
        let result = try await sandbox.fk("barrel", "create", "set", server.url("/a"), "--work-path", other)
        #expect(result.output.contains("fk barrel run set --work-path '\(other)'"))
        try await sandbox.done("barrel", "run", "set", "--work-path", other)
        #expect(!FileManager.default.fileExists(atPath: sandbox.workPath))
    }

    @Test("The demo kills a run, continues it, and proves every byte")
    func demo() async throws {
        let result = try await sandbox.done("demo", "-d", "demo", "--limit-rate", "0", "--no-progress")
        #expect(result.output.contains("SIGKILL") || result.errors.contains("SIGKILL"))
        #expect(result.output.contains("twice"))
        #expect(result.output.contains("36 of 36 files right"))
        #expect(try FileManager.default.contentsOfDirectory(atPath: "\(sandbox.files)/demo").count == 36)
        #expect(!FileManager.default.fileExists(atPath: sandbox.workPath), "the demo has a work path of its own")
    }
}
