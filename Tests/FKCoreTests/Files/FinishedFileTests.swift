import TestSupport
import Testing

@testable import FKEngine

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// Verbs while a finished file is compared after another boot.
@Suite("A finished file while it is compared")
struct ComparisonTests {
    static let content = Bytes.pattern(count: 300_000)

    /// A task that is complete since another boot, in an engine that cannot read files yet.
    struct Scene {
        let bench: Bench
        let id: TaskID

        init(isComparing: Bool = true) async throws {
            let first = try await Bench(content: ComparisonTests.content)
            id = try await first.add("a")
            #expect(await first.finished(id)?.state == .complete)
            await first.downloader.close()
            try first.workPath.change(id) { $0.bootID = "another boot" }
            bench = try await Bench(in: first.folder, isActive: false, content: ComparisonTests.content)
            guard isComparing else { return }
            bench.engine.diskWork.suspend()
            await bench.engine.activate()
            await bench.reached("a", .action)
        }

        func release() { bench.engine.diskWork.resume() }
    }

    @Test(
        "suspend and cancel while a finished file is compared end the comparison and nothing else",
        arguments: [Verb.suspend, .cancel])
    func ends(_ verb: Verb) async throws {
        let scene = try await Scene()
        async let given = scene.bench.engine.apply(verb, to: .all)
        await scene.bench.reached("a", .complete)
        scene.release()
        let result = try #require(try await given.first)
        #expect(result.before == .complete && result.after == .complete && result.applied)
        #expect(await scene.bench.state(scene.id) == .complete)
        #expect(scene.bench.names == ["a"])
        let record = try scene.bench.stored(scene.id)
        // It is still to be proven: the next engine looks again.
        #expect(record.state == .complete && record.bootID == "another boot" && record.synced != true)
        #expect(record.path != nil && record.attempts == 1)
        await scene.bench.downloader.close()
        let next = try await Bench(in: scene.bench.folder, content: Self.content)
        #expect(await next.finished(scene.id)?.state == .complete)
        #expect(try next.stored(scene.id).synced == true)
        #expect(next.transport.requests.isEmpty && next.names == ["a"])
    }

    @Test("asked for again after that, the file is compared after all")
    func again() async throws {
        let scene = try await Scene()
        async let given = scene.bench.control.cancel(.id(scene.id))
        await scene.bench.reached("a", .complete)
        scene.release()
        #expect(try await given[0].applied)
        try await scene.bench.add("a")
        #expect(await scene.bench.finished(scene.id)?.state == .complete)
        #expect(try scene.bench.stored(scene.id).synced == true)
        #expect(scene.bench.transport.requests.isEmpty && scene.bench.names == ["a"])
    }

    @Test(
        "other verbs change nothing meanwhile, and the comparison ends as it would",
        arguments: [Verb.action, .resume, .retry])
    func others(_ verb: Verb) async throws {
        let scene = try await Scene()
        let result = try #require(try await scene.bench.engine.apply(verb, to: .all, forAll: true).first)
        #expect(result.before == .complete && result.after == .complete && !result.applied)
        scene.release()
        #expect(await scene.bench.finished(scene.id)?.state == .complete)
        #expect(try scene.bench.stored(scene.id).synced == true && scene.bench.names == ["a"])
    }

    @Test("toggle changes nothing either")
    func toggle() async throws {
        let scene = try await Scene()
        #expect(try await scene.bench.engine.perform(.toggle(.all)).first?.applied == false)
        scene.release()
        #expect(await scene.bench.finished(scene.id)?.state == .complete && scene.bench.names == ["a"])
    }

    @Test("trash meanwhile deletes the file, which is the task's own")
    func trash() async throws {
        let scene = try await Scene()
        async let given = scene.bench.control.trash(.id(scene.id))
        await scene.bench.reached("a", .unknown)
        scene.release()
        #expect(try await given[0].applied)
        #expect(scene.bench.names == [])
    }

    @Test(
        "while nothing runs, no verb touches a complete task that is yet to be compared",
        arguments: [Verb.action, .suspend, .resume, .cancel, .retry])
    func atRest(_ verb: Verb) async throws {
        let scene = try await Scene(isComparing: false)
        let result = try #require(try await scene.bench.engine.apply(verb, to: .all).first)
        #expect(!result.applied && result.after == .complete && result.note.contains("complete"))
        #expect(scene.bench.names == ["a"])
        let record = try scene.bench.stored(scene.id)
        #expect(record.state == .complete && record.bootID == "another boot")
    }

    @Test("what is written into the record meanwhile leaves it complete, and yet to be compared")
    func written() async throws {
        let scene = try await Scene()
        #expect(try await scene.bench.engine.perform(.setAttributes(.id(scene.id), ["k": "v"])) == 1)
        let record = try scene.bench.stored(scene.id)
        #expect(record.state == .complete && record.bootID == "another boot" && record.attempts == 1)
        #expect(record.task.attributes == ["k": "v"])
        scene.release()
        #expect(await scene.bench.finished(scene.id)?.state == .complete)
    }

    @Test("a finished file that cannot be written to is compared all the same")
    func busy() async throws {
        // Not even root may open a program for writing while it runs.
        let program = [UInt8](try Data(contentsOf: URL(fileURLWithPath: "/bin/sleep")))
        let first = try await Bench(content: program)
        let id = try await first.completed("a")
        await first.downloader.close()
        try first.workPath.change(id) { $0.bootID = "another boot" }
        try FileManager.default.setAttributes([.posixPermissions: 0o555], ofItemAtPath: first.out + "/a")
        let sleep = try ChildProcess(["\(first.out)/a", "1000"])
        defer {
            kill(sleep.pid, SIGKILL)
            _ = sleep.end()
        }
        let bench = try await Bench(in: first.folder, content: program)
        #expect(await bench.finished(id)?.state == .complete)
        let record = try bench.stored(id)
        #expect(record.synced == true && record.error == nil && record.path == bench.out + "/a")
        #expect(bench.transport.requests.isEmpty && bench.names == ["a"])
    }

    @Test(
        "one that cannot even be read stays complete, and is named",
        .enabled(if: geteuid() != 0, "root may read everything"))
    func unreadable() async throws {
        let scene = try await Scene(isComparing: false)
        chmod(scene.bench.out + "/a", 0)
        await scene.bench.engine.activate()
        await scene.bench.engine.waitUntilDrained()
        #expect(await scene.bench.state(scene.id) == .complete)
        #expect(
            await scene.bench.downloader.takeProblems().contains { $0.message.contains("/a could not be compared") })
        #expect(try scene.bench.stored(scene.id).bootID == "another boot")
        chmod(scene.bench.out + "/a", 0o600)
    }
}

extension WorkPath {
    /// Changes a record on the disk, while no engine has it.
    func change(_ id: TaskID, _ change: (inout RecordDraft) throws -> Void) throws {
        var contents = try InfoFile.read(infoPath(id))
        try contents.record.edit(change)
        try InfoFile.update(infoPath(id), record: contents.record, handle: &contents.handle, rangesChanged: true)
    }
}
