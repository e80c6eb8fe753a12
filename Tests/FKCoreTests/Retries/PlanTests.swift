import Foundation
import TestSupport
import Testing

@testable import FKEngine

/// `Builder(plan:)`: the list of ZFRetryDownloader.
@Suite("Plans of attempts") struct PlanTests {
    static let content = Bytes.pattern(count: 300_000)
    private let a = "http://a.example/one.bin"
    private let b = "http://b.example/two.bin"

    private func prepared(_ plan: [String], sameFile: Bool = true, _ bench: Bench) async throws -> TaskID {
        var builder = try Builder(plan: plan, sameFile: sameFile)
        builder.folder = URL(fileURLWithPath: bench.out)
        return try await builder.prepare(in: bench.downloader)
    }

    /// Moves the clock over the waits between attempts until the task has ended.
    private func ended(_ id: TaskID, _ bench: Bench) async throws -> DownloadInfo {
        try await bench.advance(by: 61) { await bench.state(id).isSettled }
        return try #require(await bench.messager.info(.id(id)))
    }

    @Test("A, A, B that all fail are three requests, and no fourth")
    func fails() async throws {
        let bench = try await Bench { _, _ in .status(503) }
        let id = try await prepared([a, a, b], bench)
        let info = try await ended(id, bench)
        #expect(info.state == .error)
        #expect(bench.hosts == ["a.example", "a.example", "b.example"])
    }

    @Test("The attempts can be followed from before the task exists, by URL and by id")
    func followed() async throws {
        let bench = try await Bench { request, number in
            number < 3 ? .status(503) : .file(Self.content, to: request)
        }
        var builder = try Builder(plan: [a, a, b])
        builder.folder = URL(fileURLWithPath: bench.out)
        let id = builder.id
        let readers = [
            Task { [messager = bench.messager, a] in await messager.attempts(a).reduce(into: []) { $0.append($1.phase) }
            },
            Task { [messager = bench.messager] in
                await messager.attempts(.id(id)).reduce(into: []) { $0.append($1.phase) }
            },
        ]
        try await bench.turn { $0.attemptListeners == 2 }
        try await builder.prepare(in: bench.downloader)
        #expect(try await ended(id, bench).state == .complete)
        for reader in readers {
            // The steps of the clock may bring polled reports.
            let phases = await reader.value.filter { if case .progressed = $0 { false } else { true } }
            #expect(phases.count == 6 && phases.last == .succeeded, "\(phases)")
        }
    }

    @Test("A reader that waits for a task ends with its cancellation, with the task that goes, and with the downloader")
    func unfollowed() async throws {
        let bench = try await Bench(isActive: false, content: Self.content)
        let cancelled = Task { [messager = bench.messager] in
            for await _ in messager.attempts("http://h.example/never") {}
        }
        try await bench.turn { $0.attemptListeners == 1 }
        cancelled.cancel()
        await cancelled.value
        let gone = Task { [messager = bench.messager] in
            for await info in messager.attempts("http://h.example/gone") { Issue.record("\(info)") }
        }
        try await bench.turn { $0.attemptListeners == 1 }
        try await bench.add("gone")
        try await bench.control.trash(.all)
        await gone.value
        let closed = Task { [messager = bench.messager] in
            for await _ in messager.attempts("http://h.example/never") {}
        }
        try await bench.turn { $0.attemptListeners == 1 }
        await bench.downloader.close()
        await closed.value
    }

    @Test("Other files: each from byte 0, with its own name, whatever the one before has left or announced")
    func others() async throws {
        let other = Bytes.pattern(count: 120_000, seed: 7)
        let bench = try await Bench { request, number in
            switch number {
            // The same entity tag: two servers may count alike.
            case 1:
                .file(
                    Self.content, to: request, cut: 200_000,
                    fields: [.init("Repr-Digest", "sha-256=:\(String(repeating: "A", count: 43))=:")])
            case 2: .status(404)
            default: .file(other, to: request)
            }
        }
        let id = try await prepared([a, "http://c.example/three.bin", b], sameFile: false, bench)
        let info = try await ended(id, bench)
        #expect(info.state == .complete, "\(String(describing: info.error))")
        #expect(bench.hosts == ["a.example", "c.example", "b.example"])
        #expect(bench.sent("Range") == ["-", "-", "-"])
        #expect(info.fileName == "two.bin")
        #expect(try bench.out("two.bin") == other)
        #expect(bench.names == ["two.bin"])
    }

    @Test("Other files: a second attempt at the same entry continues its bytes")
    func continues() async throws {
        let bench = try await Bench { request, number in
            number == 1 ? .file(Self.content, to: request, cut: 200_000) : .file(Self.content, to: request)
        }
        let id = try await prepared([a, a, b], sameFile: false, bench)
        let info = try await ended(id, bench)
        #expect(info.fileName == "one.bin")
        #expect(bench.sent("Range") == ["-", "bytes=200000-"])
        #expect(try bench.out("one.bin") == Self.content)
    }

    @Test("An empty plan and an invalid address are refused")
    func refused() throws {
        #expect(throws: DownloadError.self) { try Builder(plan: []) }
        #expect(throws: DownloadError.self) { try Builder(plan: [a, "ftp://x.example/f"]) }
        let builder = try Builder(plan: [a, a, b])
        #expect(builder.url == a && builder.mirrors == [a, b] && builder.options.maxAttempts == 3)
    }
}

extension Engine {
    fileprivate var attemptListeners: Int { reporter.observers.attempts.count }
}
