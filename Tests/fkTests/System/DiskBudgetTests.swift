import TestSupport
import Testing

@testable import fk

/// Finished files make room for new ones where the command says how much the files may use.
@Suite("A budget of disk space on the command line")
final class DiskBudgetTests: ServedSuite {
    private let body = Bytes.pattern(count: 400_000)

    override init() throws {
        try super.init()
        for name in ["a", "b", "c", "d"] { server.serve("/\(name)", body) }
    }

    private func url(_ name: String) -> String { server.url("/\(name)") }
    private var names: [String] {
        get throws { try FileManager.default.contentsOfDirectory(atPath: sandbox.files).sorted() }
    }

    @Test("--disk-budget and its setting delete the least recently used file first, and say so also when quiet")
    func run() async throws {
        for name in ["a", "b"] { try await sandbox.done("get", url(name)) }
        let result = try await sandbox.done("get", "-q", "--disk-budget", "900K", url("c"))
        #expect(result.errors.contains("disk budget: 1 file (\(sandbox.files)/a) deleted, "), "\(result.errors)")
        #expect(result.errors.hasSuffix(" freed\n"))
        #expect(try names == ["b", "c"])
        let why = try await sandbox.done("why", url("a")).output
        #expect(why.contains("the file is gone; fetch it again with: fk retry "), "\(why)")
        let history = try await sandbox.record(url("c")) { $0.state == .complete }?.history
        #expect(history?.contains { $0.by == "disk budget" } == true)
        try await sandbox.done("config", "set", "disk-budget", "900K")
        #expect(try await sandbox.done("config", "get", "disk-budget").output == "900K\n")
        // Given on the command line, it is not the saved one.
        try await sandbox.done("get", "--disk-budget", "none", url("a"))
        #expect(try names == ["a", "b", "c"])
        let saved = try await sandbox.done("get", url("d"))
        let gone = "disk budget: 2 files (\(sandbox.files)/b, \(sandbox.files)/c) deleted, "
        #expect(saved.errors.contains(gone), "\(saved.errors)")
        #expect(try names == ["a", "d"])
        #expect(try await sandbox.fk("config", "set", "disk-budget", "0").status == 2)
    }

    @Test("a file that is larger than the budget names the option") func tooLarge() async throws {
        let result = try await sandbox.fk("get", "--disk-budget", "100K", url("a"))
        #expect(result.status == 1 && result.errors.contains("raise --disk-budget"), "\(result.errors)")
    }

    @Test("fk trim deletes until the rest fits: by use or by size, the saved budget without --to, and it asks first")
    func trim() async throws {
        server.serve("/b", Bytes.pattern(count: 500_000))
        for name in ["a", "b", "c"] { try await sandbox.done("get", url(name)) }
        let refused = try await sandbox.fk("trim", "--to", "0")
        #expect(refused.status == 2 && refused.errors.contains("--yes"), "\(refused.errors)")
        #expect(try await sandbox.fk("trim", "-y").errors.contains("--to SIZE is missing"))
        let largest = try await sandbox.done("trim", "-y", "--by", "size", "--to", "900K")
        #expect(largest.output == "\(sandbox.files)/b\n")
        #expect(largest.errors.contains(" freed, "))
        #expect(try names == ["a", "c"])
        try await sandbox.done("config", "set", "disk-budget", "500K")
        try await sandbox.done("trim", "-y")
        #expect(try names == ["c"])
        let document = try await sandbox.json("trim", "-y", "--to", "0")
        #expect(document.number("used") == 0 && document["files"] as? [String] == ["\(sandbox.files)/c"])
        #expect(try names == [])
        #expect(try await sandbox.record(url("a")) { $0.state == .complete } != nil, "the task stays")
    }

    @Test(
        "what cannot be deleted is named, counts, and does not stop the rest",
        .enabled(if: TinyDisk.isPossible, "\(TinyDisk.reason)"))
    func readOnly() async throws {
        let disk = try TinyDisk(kilobytes: 2_048)
        try await sandbox.done("get", "-b", "set", url("a"))
        try await sandbox.done("barrel", "publish", "set", "\(disk.path)/set")
        try await sandbox.done("get", "-d", disk.path, "--min-free", "0", url("b"))
        try await sandbox.done("get", url("c"))
        try disk.makeReadOnly()
        let result = try await sandbox.fk("trim", "-y", "--to", "0")
        #expect(result.status == 1 && result.output == "\(sandbox.files)/c\n", "\(result.errors)")
        #expect(result.errors.contains("folder \(disk.path)/set of the barrel set was not deleted. Cannot open "))
        #expect(result.errors.contains("Cannot remove \(disk.path)/b: "), "\(result.errors)")
        #expect(try !result.errors.contains(" 0 B in finished files") && names == ["a"])
    }

    @Test("a deleted published folder is named") func published() async throws {
        try await sandbox.done("get", "-b", "set", url("a"))
        try await sandbox.done("barrel", "publish", "set", "pub")
        let run = try await sandbox.done("get", "--disk-budget", "700K", url("b"))
        #expect(run.errors.contains(" (set) and 1 published folder (\(sandbox.files)/pub) deleted, "), "\(run.errors)")
        try await sandbox.done("barrel", "run", "set")
        try await sandbox.done("barrel", "publish", "set", "pub")
        let document = try await sandbox.json("trim", "-y", "--to", "0")
        #expect(document["folders"] as? [String] == ["\(sandbox.files)/pub"])
        #expect(try names == [])
    }

    @Test("a barrel that waits is not deleted, and the status says that more is left") func inUse() async throws {
        try await sandbox.done("get", "-b", "set", url("a"))
        try await sandbox.done("barrel", "add", "set", url("b"))
        let result = try await sandbox.fk("trim", "-y", "--to", "0")
        #expect(result.status == 1 && result.errors.contains("in use: set"), "\(result.errors)")
        #expect(try names == ["a"])
    }
}
