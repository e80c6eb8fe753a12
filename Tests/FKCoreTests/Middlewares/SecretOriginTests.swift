import TestSupport
import Testing

@testable import FKEngine
@testable import FKTransport

/// A task with every kind of secret, and every way in which its URL can change. What libcurl would send is compared.
@Suite("Secrets of a task whose URL changes")
struct SecretOriginTests {
    enum Way: String, CaseIterable, Sendable {
        case mirror, port, scheme, offered, relinked, retriedFrom, program, programThatRepeats, middleware, refreshed
    }

    private static let content = Bytes.pattern(count: 1_000)
    private static let own = "http://user:canary-login@own.example/a"

    private func other(_ way: Way) -> String {
        switch way {
        case .port: "http://own.example:81/a"
        case .scheme: "https://own.example/a"
        default: "http://other.example/a"
        }
    }

    private func options(_ options: inout TaskOptions) {
        options.headers = [
            .init("Cookie", "s=canary-cookie"), .init("X-Api-Key", "canary-key"), .init("X-Marked", "canary-marked"),
            .init("X-Open", "o"),
        ]
        options.secretHeaders = ["X-Marked"]
        options.netrc = true
        options.cookiePath = "/canary-cookies"
    }

    /// All secrets that libcurl would send with a request.
    private func secrets(_ request: TransportRequest) throws -> Set<String> {
        let outgoing = try OutgoingRequest(request)
        var found = Set(outgoing.headers.filter { $0.value.contains("canary") }.map(\.name))
        if outgoing.credentials != nil { found.insert("login") }
        if outgoing.usesNetrc { found.insert("netrc") }
        if request.options.cookiePath != nil { found.insert("cookies") }
        #expect(!outgoing.url.contains("canary"))
        return found
    }

    private static let all: Set<String> = ["Cookie", "X-Api-Key", "X-Marked", "login", "netrc", "cookies"]

    private func expect(_ requests: [TransportRequest], atOther count: Int, isOpen: Bool = true) throws {
        let origin = URLOrigin(Self.own)
        func isOwn(_ request: TransportRequest) -> Bool {
            request.urlRequest.url.flatMap { URLOrigin($0.absoluteString) } == origin
        }
        for request in requests where isOwn(request) { #expect(try secrets(request) == Self.all) }
        let others = requests.filter { !isOwn($0) }
        #expect(others.count >= count)
        for request in others {
            #expect(try secrets(request) == [], "\(request.urlRequest.url?.absoluteString ?? "")")
            #expect((request.urlRequest.value(forHTTPHeaderField: "X-Open") != nil) == isOpen)
        }
    }

    @Test("no secret leaves the origin it was given for, whoever names the other one", arguments: Way.allCases)
    func ways(_ way: Way) async throws {
        let other = self.other(way)
        let target = URLOrigin(other)
        let digest = try Checksum(.sha256, hex: Bytes.sha256(Self.content))
        let bench = try await Bench { request, _ in
            if request.urlRequest.url.flatMap({ URLOrigin($0.absoluteString) }) == target {
                return .file(Self.content, to: request)
            }
            return way == .offered
                ? .file(
                    Self.content, to: request, cut: 400,
                    fields: [.init("Link", "<\(other)>; rel=duplicate; pri=1")])
                : .status(404)
        }
        switch way {
        case .program, .programThatRepeats:
            let script =
                way == .program
                ? #"echo '{"url": "http://other.example/a"}'"# : #"sed 's/own\.example/other.example/g'"#
            try await bench.downloader.programs.add(
                MiddlewareProgram(
                    name: "elsewhere", stage: .request, timeLimit: .seconds(60), arguments: ["/bin/sh", "-c", script],
                    directory: bench.folder.path))
        case .middleware:
            bench.chains.onRequest("elsewhere") { request, _ in
                var parts = URLComponents(url: request.url!, resolvingAgainstBaseURL: true)!
                parts.host = "other.example"
                request.url = parts.url
            }
        case .retriedFrom: bench.chains.onFailure("elsewhere") { _ in .retry(from: URL(string: other)!) }
        default: break
        }
        let id = try await bench.add(Self.own) {
            options(&$0.options)
            if way == .offered { $0.options.checksum = digest }
            if [.mirror, .port, .scheme, .refreshed].contains(way) { $0.mirrors = [other] }
        }
        if way == .relinked {
            #expect(await bench.finished(id)?.state == .error)
            try await bench.control.relink(id, to: other)
        }
        if way == .offered { await bench.retried("a", after: 1) }
        #expect(await bench.finished(id)?.state == .complete)
        var requests = bench.transport.requests
        if way == .refreshed {
            let refresher = FileRefresher(await bench.engine.currentConfigure, bench.chains, bench.transport)
            await refresher.refresh([id]) { #expect($0.result != .gone) }
            #expect(bench.transport.requests.count == requests.count + 1)
            requests = bench.transport.requests
        }
        try expect(requests, atOther: way == .refreshed ? 2 : 1, isOpen: way != .offered)
        if way == .relinked {
            let history = try bench.stored(id).history.map(\.what)
            #expect(history.contains { $0.contains("this origin does not receive secret header") }, "\(history)")
        }
    }

    @Test("a middleware for one host does not handle a request that another one has sent elsewhere")
    func hostScope() async throws {
        let bench = try await Bench { request, _ in .file(Self.content, to: request) }
        let seen = Observed<[String]>([])
        func note(_ name: String, _ priority: Int, _ host: String) {
            bench.chains.onRequest(name, priority: priority, for: .host(host)) { request, _ in
                seen.update { $0.append(name) }
                if name == "mover" { request.url = URL(string: "http://other.example/a") }
            }
        }
        note("before", 1, "own.example")
        note("mover", 2, "own.example")
        note("after", 3, "own.example")
        bench.chains.onRequest("all", priority: 4) { _, _ in seen.update { $0.append("all") } }
        let id = try await bench.add("http://own.example/a")
        #expect(await bench.finished(id)?.state == .complete)
        #expect(seen.value == ["before", "mover", "all"])
    }

    enum Credential: String, CaseIterable, Sendable { case headers, bearer, signature, authenticator }

    private struct Login: Authenticator {
        func authenticate(_ request: inout URLRequest, for task: TaskContext) async throws {
            request.setValue("canary", forHTTPHeaderField: "Authorization")
        }
        func refresh(after failure: AttemptFailure) async throws {}
    }

    @Test(
        "the credential of a host does not go where a middleware before it has sent the request",
        arguments: Credential.allCases, [false, true])
    func hostCredential(_ credential: Credential, isMoved: Bool) async throws {
        let bench = try await Bench { request, _ in .file(Self.content, to: request) }
        if isMoved {
            bench.chains.onRequest("elsewhere", priority: 1) { request, _ in
                request.url = URL(string: "http://other.example/a")
            }
        }
        let scope = MiddlewareScope.host("OWN.example.")
        switch credential {
        case .headers:
            bench.chains.register(
                request: try HeadersMiddleware([.init("Authorization", "canary"), .init("X-Open", "o")]), for: scope)
        case .bearer: bench.chains.register(request: BearerTokenMiddleware { _ in "canary" }, for: scope)
        case .signature:
            let keys = AWSCredentials(accessKeyID: "canary", secretAccessKey: "s")
            bench.chains.register(request: try AWSSignatureMiddleware { _ in keys }, for: scope)
        case .authenticator: bench.chains.register(authenticator: Login(), for: scope)
        }
        let id = try await bench.add("http://own.example/a")
        #expect(await bench.finished(id)?.state == .complete)
        #expect(bench.hosts == [isMoved ? "other.example" : "own.example"])
        for request in bench.transport.requests.map(\.urlRequest) {
            let value = request.value(forHTTPHeaderField: "Authorization")
            #expect(isMoved ? value == nil : value?.contains("canary") == true)
            if credential == .headers { #expect((request.value(forHTTPHeaderField: "X-Open") == nil) == isMoved) }
        }
    }

    @Test("fields that a list gives for all addresses of its entry do not go to a new address")
    func relinkedList() async throws {
        let bench = try await Bench { request, _ in
            request.urlRequest.url?.host == "new.example" ? .file(Self.content, to: request) : .status(404)
        }
        let id = try await bench.add("http://own.example/a") {
            $0.mirrors = ["http://mirror.example/a"]
            ($0.options.headers, $0.options.listHeaders) = ([.init("X-Api-Key", "canary")], ["x-api-key"])
        }
        #expect(await bench.finished(id)?.state == .error)
        try await bench.control.relink(id, to: "http://new.example/a")
        #expect(await bench.finished(id)?.state == .complete)
        let keys = bench.transport.requests.map { request in
            (request.urlRequest.url?.host ?? "") + ":"
                + (request.urlRequest.value(forHTTPHeaderField: "X-Api-Key") ?? "-")
        }
        #expect(Set(keys) == ["own.example:canary", "mirror.example:canary", "new.example:-"], "\(keys)")
    }

    @Test("a task of a list from a server: its secrets go to the server that the owner has named")
    func ofList() async throws {
        let bench = try await Bench { request, _ in
            request.urlRequest.url?.host == "own.example" ? .file(Self.content, to: request) : .status(404)
        }
        let id = try await bench.add("http://other.example/a") {
            options(&$0.options)
            $0.options.secretOrigin = "http://own.example/list"
            $0.mirrors = ["http://own.example/a"]
        }
        #expect(await bench.finished(id)?.state == .complete)
        #expect(bench.hosts == ["other.example", "own.example"])
        #expect(try secrets(bench.transport.requests[0]) == [])
        #expect(try secrets(bench.transport.requests[1]) == Self.all.subtracting(["login"]))
        #expect(try bench.stored(id).task.options.secretOrigin == "http://own.example/list")
        // Of a record without an origin, no server gets them.
        let task = bench.task("http://own.example/b") {
            options(&$0.options)
            $0.options.secretOrigin = ""
        }
        #expect(task.options.headers(for: task.url, of: task.url).map(\.name) == ["X-Open"])
        #expect(task.secretOrigin == nil)
    }

    @Test("a field that a middleware sets goes with the URL that it returns, and no further")
    func ofMiddlewares() async throws {
        let bench = try await Bench(content: Self.content)
        bench.chains.onRequest("first", priority: 1) { request, _ in
            request.setValue("canary-first", forHTTPHeaderField: "X-Token")
            request.setValue("first", forHTTPHeaderField: "X-Plain")
        }
        bench.chains.onRequest("second", priority: 2) { request, _ in
            request.url = URL(string: "http://other.example/a")
            request.setValue("for other", forHTTPHeaderField: "Authorization")
        }
        try await bench.completed(Self.own) { $0.options.headers = [.init("Authorization", "canary")] }
        #expect(bench.sent("X-Token") == ["-"] && bench.sent("X-Plain") == ["first"])
        #expect(bench.sent("Authorization") == ["for other"])
    }

    @Test("what a server, a program or a middleware says of a secret is masked in the error and in the history")
    func said() async throws {
        let bench = try await Bench { _, _ in .status(404) }
        bench.chains.onFailure("quoting") { _ in
            .fail(DownloadError(.rejected, "canary-key and canary-login are wrong", isRetryable: false))
        }
        let id = try await bench.add(Self.own) { options(&$0.options) }
        let error = await bench.finished(id)?.error
        #expect(error?.message == "*** and *** are wrong")
        #expect(!"\(try bench.stored(id).history)".contains("canary"))
    }
}
