import TestSupport
import Testing

@Suite("The response chain")
struct ResponseChainTests {
    static let content = Bytes.pattern(count: 1_000)

    @Test("a middleware that moves the file: the task's path follows, the next middleware sees it")
    func moves() async throws {
        let bench = try await Bench(content: Self.content)
        let target = bench.folder.file("moved.bin")
        let seen = Observed<URL?>(nil)
        bench.chains.onResponse("response step", priority: 1) { response in
            try FileManager.default.moveItem(at: #require(response.fileURL), to: target)
            response.fileURL = target
        }
        bench.chains.onResponse("response step", priority: 2) { response in
            seen.update { $0 = response.fileURL }
        }
        let id = try await bench.add("a.bin")
        let info = try #require(await bench.finished(id))
        #expect(info.state == .complete && info.path == target.path)
        #expect(seen.value == target)
        #expect(try bench.folder.read("moved.bin") == Self.content)
        #expect(try bench.stored(id).path == target.path)
        #expect(try await bench.control.trash(.id(id))[0].applied)
        #expect(!FileManager.default.fileExists(atPath: target.path))
    }

    @Test("a middleware that moves the file into a work path fails, and the file does not keep that name")
    func intoWorkPath() async throws {
        let bench = try await Bench(content: Self.content)
        let target = bench.workPath.middlewaresPath
        bench.chains.onResponse("response step") { response in
            guard let file = response.fileURL else { return }
            let place = URL(fileURLWithPath: target)
            try FileManager.default.moveItem(at: file, to: place)
            response.fileURL = place
        }
        let error = try #require(await bench.finished(try await bench.add("a.bin"))?.error)
        #expect(
            error.code == .middleware && error.message.contains("is in the work path \(bench.workPath.root),"),
            "\(error)")
        #expect(!FileManager.default.fileExists(atPath: target) && bench.names.isEmpty)
    }

    @Test(
        "a middleware that names no regular file fails the attempt by its name, and nothing stays behind",
        arguments: ["none", "folder"])
    func namesNoFile(_ name: String) async throws {
        let bench = try await Bench(content: Self.content)
        let named = bench.folder.file(name)
        if name == "folder" { try FileManager.default.createDirectory(at: named, withIntermediateDirectories: false) }
        bench.chains.onResponse("response step") { response in
            response.fileURL = named
        }
        let id = try await bench.add("a.bin")
        for _ in 0..<2 {
            let info = try #require(await bench.finished(id))
            #expect(
                info.state == .error && info.error?.message.contains("names \(named.path) as the finished file") == true
            )
            #expect(!bench.names.contains("a.bin"))
            _ = try await bench.control.retry(.id(id))
        }
        _ = await bench.finished(id)
        #expect(try await bench.control.trash(.id(id))[0].applied)
        #expect(bench.names == [])
    }

    @Test(
        "a middleware that sets an error, or removes the file, fails the task; the next one hears of no file",
        arguments: [true, false])
    func sets(_ setsError: Bool) async throws {
        let heard = Observed<[String]>([])
        let bench = try await Bench(content: Self.content)
        bench.chains.onResponse("picky", priority: 1) { response in
            guard response.error == nil else { return }
            if setsError { response.error = DownloadError(.rejected, "bad") } else { response.fileURL = nil }
        }
        bench.chains.onResponse("after", priority: 2) { response in
            heard.update { $0.append(response.error?.code.rawValue ?? "complete") }
        }
        let info = try #require(await bench.finished(try await bench.add("a.bin")))
        let code: DownloadError.Code = setsError ? .rejected : .middleware
        #expect(info.state == .error && info.error?.code == code)
        #expect(await heard.wait { !$0.isEmpty } == [code.rawValue])
    }

    struct Rejection: Error, CustomStringConvertible { var description: String { "not a picture" } }

    @Test("a rejected file: error with that reason, set aside, never under its final name; all hear of the failure")
    func rejects() async throws {
        let heard = Observed<[String]>([])
        let bench = try await Bench(content: Self.content)
        bench.chains.onResponse("judge", priority: 1) { response in
            if response.error == nil { throw Rejection() }
            heard.update { $0.append("judge \(response.error?.code.rawValue ?? "-") \(response.fileURL == nil)") }
        }
        bench.chains.onResponse("after", priority: 2) { response in
            heard.update { $0.append("after \(response.error?.code.rawValue ?? "-")") }
        }
        let id = try await bench.add("a.bin")
        let error = try #require(await bench.finished(id)?.error)
        #expect(error.code == .rejected)
        #expect(error.message.contains("judge") && error.message.contains("not a picture"))
        #expect(await heard.wait { $0.count >= 2 } == ["judge rejected true", "after rejected"])
        let aside = FileNameRules.rejectedName(for: "a.bin", id: id)
        #expect(bench.names == [aside])
        #expect(try bench.out(aside) == Self.content)
        #expect(bench.transport.requests.count == 1)
        let record = try bench.stored(id)
        #expect(record.state == .error && record.path == nil && record.received == 0)
        #expect(try await bench.control.trash(.id(id))[0].after == .unknown)
        #expect(bench.names == [])
    }

    @Test("a DownloadError keeps its code")
    func keepsCode() async throws {
        let bench = try await Bench(content: Self.content)
        bench.chains.onResponse("response step") { response in
            guard response.error == nil else { return }
            throw DownloadError(.init("virus"), "found")
        }
        let id = try await bench.add("a.bin")
        #expect(await bench.finished(id)?.error?.code.rawValue == "virus")
    }

    @Test("RetryRequest fetches the file again from 0, after its delay, within the attempts")
    func retryRequest() async throws {
        let bench = try await Bench(content: Self.content)
        bench.chains.onResponse("picky") { response in
            guard response.error == nil else { return }
            if response.task.attempt < 3 { throw RetryRequest(reason: "stale copy", delay: .seconds(30)) }
        }
        let id = try await bench.add("a.bin")
        for attempt in 1...2 {
            await bench.reached("a.bin", .idle, times: attempt + 1)
            #expect(await bench.messager.error(.id(id))?.message.contains("stale copy") == true)
            await bench.advance(29)
            #expect(bench.transport.requests.count == attempt)
            await bench.advance(1)
        }
        #expect(await bench.finished(id)?.state == .complete)
        #expect(bench.sent("Range") == ["-", "-", "-"])
        #expect(try bench.out("a.bin") == Self.content)
    }

    @Test("RetryRequest without end: error after the last attempt")
    func retryRequestForEver() async throws {
        let bench = try await Bench(content: Self.content, settings: { $0.retry.maxAttempts = 2 })
        bench.chains.register(response: ResponseStep { _ in throw RetryRequest(reason: "never good") })
        let id = try await bench.add("a.bin")
        await bench.reached("a.bin", .idle, times: 2)
        await bench.advance(1)
        let info = try #require(await bench.finished(id))
        #expect(info.state == .error && info.attempts == 2)
        #expect(info.error?.message.contains("never good") == true)
        #expect(!bench.names.contains("a.bin"))
    }
}
