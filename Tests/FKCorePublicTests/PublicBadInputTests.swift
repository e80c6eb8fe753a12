import FKCompatibility
import FKCore
import FKMiddleware
import FKTesting
import Foundation
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("Bad input has an answer")
struct PublicBadInputTests {
    // MARK: Folders

    @Test(
        "a folder URL that is no file URL, or not UTF-8, is refused",
        arguments: ["https://h.example/x", "file:///tmp/%FF", "file:///tmp/a%C3/b"])
    func impossible(url: String) async throws {
        let bench = try PublicBench()
        var builder = try Builder("https://h.example/a")
        builder.folder = URL(string: url)
        await expectRefusal(builder, bench)
    }

    private func expectRefusal(_ builder: Builder, _ bench: PublicBench) async {
        let error = await #expect(throws: DownloadError.self) { try await builder.prepare(in: bench.downloader) }
        #expect(error?.code == .invalidArgument)
        #expect(error?.message.contains("its folder is") == true, "\(error?.message ?? "")")
        #expect(await bench.downloader.messager.all().isEmpty)
    }

    // MARK: Unknown and closed

    @Test("a sequence of something else than one task ends, and a problem says why")
    func wrongSelectors() async throws {
        let bench = try PublicBench()
        let messager = bench.downloader.messager
        for await _ in messager.infos(.barrel("b")) { Issue.record("an info of a barrel") }
        for await _ in messager.infos("nonsense") { Issue.record("an info of nothing") }
        for await _ in messager.attempts(.all) { Issue.record("an attempt of all") }
        // A problem is kept once.
        let codes = await bench.downloader.takeProblems().map(\.code)
        #expect(codes == [.invalidArgument, .invalidURL])
    }

    @Test("unknown ids, URLs and barrels: verbs throw .notFound, questions say that there is nothing")
    func unknown() async throws {
        let bench = try PublicBench()
        let (control, messager) = (bench.downloader.control, bench.downloader.messager)
        let id = TaskID(url: "http://none.example/")
        for selector: TaskSelector in [id.selector, "http://none.example/".selector, .barrel("none")] {
            let verbs: [(TaskSelector) async throws -> [VerbResult]] = [
                control.suspend, control.resume, control.cancel, control.retry, control.toggle, control.trash,
                control.forget,
            ]
            for verb in verbs {
                let error = await #expect(throws: DownloadError.self) { try await verb(selector) }
                #expect(error?.code == .notFound)
            }
            #expect(await messager.info(selector) == nil)
            #expect(await messager.all(selector).isEmpty)
            #expect(await messager.state(selector) == .unknown)
            for await _ in messager.infos(selector) { Issue.record("an info of nothing") }
        }
        let (url, finished) = ("http://none.example/", await messager.finished(id))
        let (error, path, info) = await (messager.error(url), messager.filePath(url), messager.info("not a url"))
        #expect(finished == nil && error == nil && path == nil && info == nil)
        #expect(await !messager.exists(url))
        await #expect(throws: DownloadError.self) { try await messager.addBarrelInfo("none") { _ in } }
        await #expect(throws: DownloadError.self) { try await control.suspend("not a url") }
    }

    @Test("after close() verbs and new tasks throw .cancelled, and questions are answered from the disk")
    func closed() async throws {
        let bench = try PublicBench()
        bench.files.serve("/a", [1])
        let (downloader, builder) = (bench.downloader, try bench.builder("/a"))
        let (control, messager) = (downloader.control, downloader.messager)
        let id = try await builder.prepare(in: downloader)
        _ = await messager.finished(id)
        await downloader.close()
        await downloader.close()
        let verbs: [(TaskSelector) async throws -> [VerbResult]] = [
            control.suspend, control.resume, control.cancel, control.retry, control.toggle, control.trash,
            control.forget, control.action,
        ]
        for verb in verbs {
            let error = await #expect(throws: DownloadError.self) { try await verb(id.selector) }
            #expect(error?.code == .cancelled)
        }
        #expect(
            await #expect(throws: DownloadError.self) { try await builder.prepare(in: downloader) }?.code == .cancelled)
        await #expect(throws: DownloadError.self) { try await messager.add(id, toBarrel: "b") }
        await #expect(throws: DownloadError.self) { try await messager.addInfo(id) { _ in } }
        await #expect(throws: DownloadError.self) { try await messager.addBarrel("x", urls: []) }
        await #expect(throws: DownloadError.self) { try await control.setRateLimit(1) }
        #expect(await downloader.takeProblems().isEmpty)
        let configure = await downloader.configure
        await #expect(throws: DownloadError.self) { try await downloader.update(configure) }
        #expect(await messager.info(id)?.state == .complete)
        #expect(await messager.finished(id)?.state == .complete)
        for await _ in messager.infos(id) { break }
        await downloader.waitUntilDrained()
        downloader.activateQueue()
        #expect(await messager.info(id)?.state == .complete)
    }

    // MARK: Twice and many

    @Test("20,000 tasks from 200 Swift tasks at once")
    func many() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("fk-many-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        let downloader = try Downloader(
            Configure(workPath: folder.appendingPathComponent("work")),
            transport: ScriptedTransport { _, _ in .status(404) })
        let ids = try await withThrowingTaskGroup(of: [TaskID].self) { group in
            for part in 0..<200 {
                group.addTask {
                    // Every second part overlaps with the one before it.
                    let numbers = (part / 2 * 200)..<(part / 2 * 200 + 200)
                    let builders = try numbers.map { try Builder("http://h.example/\($0)") }
                    return try await Builder.prepare(builders, barrel: "many", in: downloader).map { try $0.get() }
                }
            }
            return try await group.reduce(into: Set<TaskID>()) { $0.formUnion($1) }
        }
        #expect(ids.count == 20_000)
        #expect(await downloader.messager.all().count == 20_000)
        #expect(try await downloader.barrel("many").info.total == 20_000)
        await downloader.close()
        let reader = try Downloader(Configure(workPath: folder.appendingPathComponent("work")), role: .client)
        #expect(try await reader.messager.records().total == 20_000)
        await reader.close()
    }
}
