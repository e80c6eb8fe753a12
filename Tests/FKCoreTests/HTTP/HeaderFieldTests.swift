import TestSupport
import Testing

/// A header that cannot be sent stops the request. It never goes out without it.
@Suite("Header values that cannot be sent")
struct HeaderFieldTests {
    static let values = ["token\r\nX-Evil: 1", "token\n", "to\rken", "tok\u{0}en", "\nt"]
    private static let content = Bytes.pattern(count: 100)

    private func check(_ error: DownloadError?, _ value: String, _ name: String = "X-Token") {
        #expect(error?.code == .invalidArgument)
        #expect(error?.message.contains(name) == true, "\(error?.message ?? "no error")")
        #expect(error?.message.contains("Evil") == false, "the value is a secret")
        #expect(value.isEmpty || error?.message.contains(value) == false)
    }

    @Test("in the options of a task it is refused with the header's name", arguments: values)
    func options(_ value: String) async throws {
        let bench = try await Bench(content: Self.content)
        var builder = try Builder("http://h.example/a")
        builder.options.headers = [.init("Accept", "*/*"), .init("X-Token", value)]
        let made = builder
        check(await #expect(throws: DownloadError.self) { try await made.prepare(in: bench.downloader) }, value)
        #expect(bench.transport.requests.isEmpty)
        let reply = await bench.engine.answer(.createBarrel(name: "b", options: .init(options: made.options)))
        check(reply.failure, value)
    }

    @Test("for a task that is known as well, and its record stays", arguments: values)
    func known(_ value: String) async throws {
        let bench = try await Bench(content: Self.content)
        let id = try await bench.completed("a")
        check(
            await #expect(throws: DownloadError.self) {
                try await bench.add("a") { $0.options.headers = [.init("X-Token", value)] }
            }, value)
        #expect(try bench.stored(id).task.options.headers == nil)
    }

    enum Way: CaseIterable, Sendable {
        case set
        case add
        case all
    }

    @Test("from a middleware it ends the task with the header's name", arguments: values, Way.allCases)
    func middleware(_ value: String, _ way: Way) async throws {
        let bench = try await Bench(content: Self.content)
        bench.chains.onRequest("request step") { request, _ in
            request.setValue("old", forHTTPHeaderField: "X-Token")
            let kept = request
            switch way {
            case .set: request.setValue(value, forHTTPHeaderField: "X-Token")
            case .add: request.addValue(value, forHTTPHeaderField: "X-Token")
            case .all: request.allHTTPHeaderFields?["X-Token"] = value
            }
            #expect(kept.value(forHTTPHeaderField: "X-Token") == "old")
        }
        let id = try await bench.add("a")
        let info = await bench.finished(id)
        #expect(info?.state == .error)
        check(info?.error, value)
        #expect(bench.transport.requests.isEmpty)
    }

    @Test("a name that is none is refused as well", arguments: ["X Y", "X\r\nY", "", "X:"])
    func names(_ name: String) async throws {
        let bench = try await Bench(content: Self.content)
        let error = await #expect(throws: DownloadError.self) {
            try await bench.add("a") { $0.options.headers = [.init(name, "v")] }
        }
        #expect(error?.code == .invalidArgument && error?.message.contains("header") == true)
        bench.chains.onRequest("request step") { request, _ in
            request.setValue("v", forHTTPHeaderField: name)
        }
        let id = try await bench.add("b")
        #expect(await bench.finished(id)?.error?.code == .invalidArgument)
        #expect(bench.transport.requests.isEmpty)
    }

    @Test("what a middleware may change arrives as it was set")
    func requestStaysWhole() async throws {
        let bench = try await Bench(content: Self.content)
        bench.chains.onRequest("request step") { request, _ in
            request.setValue("1", forHTTPHeaderField: "A")
            request.addValue("2", forHTTPHeaderField: "A")
            request.setValue("x", forHTTPHeaderField: "B")
            request.setValue(nil, forHTTPHeaderField: "B")
            request.httpMethod = "POST"
            request.httpBody = Data([7])
            request.timeoutInterval = 7
        }
        try await bench.completed("a") { $0.options.headers = [.init("C", "3")] }
        let request = try #require(bench.transport.requests.first).urlRequest
        #expect(request.allHTTPHeaderFields == ["A": "1,2", "C": "3"])
        #expect(request.httpMethod == "POST" && request.httpBody == Data([7]) && request.timeoutInterval == 7)
        #expect(request.url?.absoluteString == "http://h.example/a")
    }

    @Test("in a record it ends the task, and in the user agent it is refused at once")
    func recordAndAgent() async throws {
        let first = try await Bench(isActive: false, content: Self.content)
        let id = try await first.add("a")
        await first.downloader.close()
        let path = first.workPath.infoPath(id)
        var info = try InfoFile.read(path)
        info.record.task.options.headers = [.init("X-Token", "token\n")]
        try InfoFile.update(path, record: info.record, handle: &info.handle)
        let bench = try await Bench(in: first.folder, content: Self.content)
        check(await bench.finished(id)?.error, "")
        var configure = await bench.downloader.configure
        configure.transport.userAgent = "a\r\nX-Evil: 1"
        let changed = configure
        check(
            await #expect(throws: DownloadError.self) { try await bench.downloader.update(changed) }, "", "User-Agent")
    }
}
