import TestSupport
import Testing

@Suite("Files of cookies")
struct CookieFileTests {
    /// Domain, whether subdomains count, path, secure, expiry, name.
    private static let cookies = [
        "# Netscape HTTP Cookie File", "", "ALL", "Set-Cookie: header=1", "a.test\tFALSE\t/\tFALSE\t0\thost\tcanary",
        ".a.test\tTRUE\t/\tFALSE\t0\tdomain\tcanary", "a.test\tFALSE\t/sub\tFALSE\t0\tpath\tcanary",
        "a.test\tFALSE\t/\tTRUE\t0\tsecure\tcanary", "a.test\tFALSE\t/\tFALSE\t1000000000\texpired\tcanary",
        "#HttpOnly_a.test\tFALSE\t/\tFALSE\t4102444800\thttponly\tcanary", "b.test\tFALSE\t/\tFALSE\t0\tother\tcanary",
    ].joined(separator: "\r\n")

    /// Answers for every host with the names of the cookies that it was sent.
    private func proxy() throws -> FaultServer {
        let proxy = try FaultServer()
        proxy.routeOthers { .ok(Array(Self.names($0["Cookie"]).utf8)) }
        return proxy
    }

    private func write(_ text: String, _ live: LiveBench) throws -> String {
        try live.folder.write(Array(text.utf8), to: "cookies.txt").path
    }

    private static func names(_ field: String?) -> String {
        (field ?? "").split(separator: "; ").map { String($0.prefix { $0 != "=" }) }.sorted().joined(separator: " ")
    }

    @Test(
        "libcurl's rules say which cookies of the file a request has",
        arguments: [
            ("http://a.test/x", "domain host httponly"), ("http://sub.a.test/x", "domain"),
            ("http://a.test/sub/x", "domain host httponly path"), ("http://b.test/x", "other"),
            ("http://xa.test/x", ""),
        ])
    func rules(url: String, names: String) async throws {
        let proxy = try proxy()
        let live = try LiveBench { $0.transport.proxy = proxy.url("") }
        let file = try write(Self.cookies, live)
        #expect(try await live.fetch(url) { $0.cookiePath = file }.state == .complete)
        #expect(String(decoding: try live.out("x"), as: UTF8.self) == names)
    }

    @Test("cookies of a task reach no other task, and no record", arguments: [1, 4])
    func otherTask(connections: Int) async throws {
        let content = Bytes.pattern(count: 4 << 20)
        let proxy = try FaultServer()
        proxy.routeOthers { .ranged(content, for: $0, etag: "\"1\"") }
        let live = try LiveBench {
            $0.transport.proxy = proxy.url("")
            $0.connections = .fixed(connections)
        }
        let file = try write(Self.cookies, live)
        #expect(try await live.fetch("http://a.test/with") { $0.cookiePath = file }.state == .complete)
        #expect(try await live.fetch("http://a.test/without").state == .complete)
        #expect(!proxy.requests.isEmpty)
        for request in proxy.requests {
            #expect((request["Cookie"] != nil) == request.target.hasSuffix("/with"), "\(request.target)")
        }
        await live.downloader.close()
        let records = try FileManager.default.subpathsOfDirectory(atPath: live.folder.path + "/work")
            .compactMap { FileManager.default.contents(atPath: live.folder.path + "/work/" + $0) }
        #expect(records.contains { $0.range(of: Data("cookies.txt".utf8)) != nil })
        #expect(!records.contains { $0.range(of: Data("canary".utf8)) != nil })
    }

    @Test("the file is read again at a retry")
    func retry() async throws {
        let live = try LiveBench()
        let server = try FaultServer()
        let line = "127.0.0.1\tFALSE\t/\tFALSE\t0\t"
        let file = try write(line + "old\t1\n", live)
        server.route("/a") { request in
            guard Self.names(request["Cookie"]) == "new" else {
                try? Data((line + "new\t1\n").utf8).write(to: URL(fileURLWithPath: file))
                return .status(503)
            }
            return .ok([1])
        }
        #expect(try await live.fetch(server.url("/a")) { $0.cookiePath = file }.state == .complete)
        #expect(server.requests.map { Self.names($0["Cookie"]) } == ["old", "new"])
    }

    @Test("a cookie that a redirect deletes is not read again from the file")
    func deleted() async throws {
        let live = try LiveBench()
        let server = try FaultServer()
        let file = try write("127.0.0.1\tFALSE\t/\tFALSE\t0\tsession\t1\n", live)
        server.route("/a") { _ in .redirect(to: "/b").adding("Set-Cookie", "session=; Max-Age=0; Path=/") }
        server.route("/b") { .ok(Array(Self.names($0["Cookie"]).utf8)) }
        #expect(try await live.fetch(server.url("/a")) { $0.cookiePath = file }.state == .complete)
        #expect(server.requests.map { Self.names($0["Cookie"]) } == ["session", ""])
    }

    @Test(
        "a file that is no list of cookies fails the task before anything is sent",
        arguments: [nil, "[{\"name\": \"a\"}]\n", "a=b; c=d\n"])
    func unusable(text: String?) async throws {
        let live = try LiveBench()
        let server = try FaultServer()
        if let text { _ = try write(text, live) }
        let path = live.folder.path + "/cookies.txt"
        let error = try #require(try await live.fetch(server.url("/a")) { $0.cookiePath = path }.error)
        #expect(error.code == .invalidArgument && error.message.contains(path), "\(error)")
        #expect(error.message.contains(text == nil ? "No such file" : "Netscape"))
        #expect(server.requests.isEmpty)
    }
}
