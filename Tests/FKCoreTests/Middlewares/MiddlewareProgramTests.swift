import TestSupport
import Testing

@Suite("Middleware programs")
struct MiddlewareProgramTests {
    static let content = Bytes.pattern(count: 1_000)

    /// A shell script as a middleware.
    private func shell(
        _ name: String, _ stage: MiddlewareProgram.Stage, _ script: String, priority: Int = 100, barrel: String? = nil,
        limit: Duration = .seconds(60), in folder: TemporaryFolder
    ) throws -> MiddlewareProgram {
        try MiddlewareProgram(
            name: name, stage: stage, priority: priority, barrel: barrel, timeLimit: limit,
            arguments: ["/bin/sh", "-c", script], directory: folder.path)
    }

    private func lines(_ bench: Bench, _ name: String) -> [String] {
        ((try? String(contentsOf: bench.folder.file(name), encoding: .utf8)) ?? "").split(separator: "\n").map(
            String.init)
    }

    private func history(_ bench: Bench, _ id: TaskID, of name: String) throws -> [String] {
        try bench.stored(id).history.filter { $0.by == name }.map(\.what)
    }

    @Test("programs and middlewares in Swift stand in one chain: by priority, ties in order of registration")
    func order() async throws {
        let bench = try await Bench(content: Self.content)
        let programs = bench.downloader.programs
        func register(_ name: String, _ priority: Int) {
            bench.chains.onRequest(name, priority: priority) { request, _ in
                let trace = request.value(forHTTPHeaderField: "X-Trace") ?? ""
                request.setValue("\(trace)\(name) ", forHTTPHeaderField: "X-Trace")
            }
        }
        let add =
            #"t=$(sed 's/.*"X-Trace":"\([^"]*\)".*/\1/;/^{/s/.*//'); printf '{"headers":{"X-Trace":"%sNAME "}}' "$t""#
        func program(_ name: String, _ priority: Int) async throws {
            try await programs.add(
                shell(
                    name, .request, add.replacingOccurrences(of: "NAME", with: name), priority: priority,
                    in: bench.folder))
        }
        register("swift50", 50)
        try await program("p100", 100)
        register("swift100", 100)
        try await program("p5", 5)
        try await program("p100b", 100)
        let id = try await bench.completed("a")
        #expect(bench.sent("X-Trace") == ["p5 swift50 p100 swift100 p100b "])
        #expect(try programs.list().map(\.name) == ["p100", "p5", "p100b"])
        #expect(try history(bench, id, of: "p5") == ["changed the header X-Trace"])
    }

    @Test("a program changes URL and headers of one attempt: nothing of it is stored, and the next attempt asks again")
    func attempt() async throws {
        let bench = try await Bench { request, number in .file(Self.content, to: request, cut: number == 1 ? 400 : nil)
        }
        try await bench.downloader.programs.add(
            shell(
                "sign", .request,
                #"n=$(sed 's/.*"attempt":\([0-9]*\).*/\1/'); echo "{\"url\":\"http://h.example/b?sig=canary$n\",\"headers\":{\"X-Key\":\"canary$n\",\"x-own\":null,\"Range\":\"bytes=7-9\"}}""#,
                in: bench.folder))
        let id = try await bench.add("a") { $0.options.headers = [.init("X-Own", "1"), .init("X-Other", "2")] }
        await bench.retried("a", after: 1)
        #expect(await bench.finished(id)?.state == .complete)
        #expect(bench.transport.requests.map { $0.urlRequest.url?.query } == ["sig=canary1", "sig=canary2"])
        #expect(bench.sent("X-Key") == ["canary1", "canary2"])
        #expect(bench.sent("X-Own") == ["-", "-"] && bench.sent("X-Other") == ["2", "2"])
        #expect(bench.sent("Range") == ["-", "bytes=400-"], "the range is the engine's")
        #expect(bench.transport.requests.allSatisfy { $0.secretHeaders.isSuperset(of: ["x-key"]) })
        let raw = try InfoFile.rawPayload(bench.workPath.infoPath(id))
        #expect(!raw.contains("canary"))
        #expect(try history(bench, id, of: "sign") == ["changed the URL and the headers Range, X-Key, x-own"])
    }

    @Test("a program that sends the request to another origin: the task's secrets do not follow, its own do")
    func otherOrigin() async throws {
        let bench = try await Bench(content: Self.content)
        try await bench.downloader.programs.add(
            shell(
                "resolve", .request,
                #"echo '{"url": "http://cdn.example/b?sig=1", "headers": {"Authorization": "for the cdn"}}'"#,
                in: bench.folder))
        try await bench.completed("a") {
            $0.options.headers = [
                .init("X-Token", "t"), .init("Cookie", "c"), .init("Authorization", "a"), .init("X-Open", "o"),
            ]
            $0.options.secretHeaders = ["X-Token"]
        }
        #expect(bench.sent("X-Token") == ["-"] && bench.sent("Cookie") == ["-"])
        #expect(bench.sent("Authorization") == ["for the cdn"] && bench.sent("X-Open") == ["o"])
    }

    @Test("a program of the stage failure asks for another attempt, at a time, from an address, or fails the task")
    func failures() async throws {
        let bench = try await Bench { request, _ in
            request.urlRequest.url?.path == "/new" ? .file(Self.content, to: request) : .status(409)
        }
        try await bench.downloader.programs.add(
            shell(
                "decide", .failure,
                #"""
                in=$(cat)
                case $in in
                *'"status":409'*'/late"'*) test -e late && exit 0; touch late; echo '{"retry": {"after": 30}}';;
                *'/moved"'*) echo '{"retry": {"from": "http://h.example/new"}}';;
                *'/dead"'*) echo '{"fail": "it is gone"}';;
                *'/broken"'*) echo '{"retry": 5}';;
                esac
                """#, in: bench.folder))
        let late = try await bench.add("late")
        await bench.retried("late", after: 30)
        #expect(await bench.finished(late)?.attempts == 2)
        #expect(await bench.finished(try await bench.add("moved"))?.state == .complete)
        let dead = try await bench.add("dead")
        #expect(
            await bench.finished(dead)?.error?.message == "The middleware program decide fails the task: it is gone")
        let broken = try await bench.add("broken")
        #expect(await bench.finished(broken)?.error?.status == 409)
        #expect(try history(bench, late, of: "decide") == ["asks for another attempt in 30.0 s"])
        #expect(
            try history(bench, broken, of: "decide")
                == ["wrote a retry that is not an object with \"after\" and \"from\""])
    }

    @Test("a program of the stage head refuses a file before its first byte")
    func heads() async throws {
        let bench = try await Bench { request, _ in
            let isPage = request.urlRequest.url?.path == "/page"
            return .file(Self.content, to: request, fields: isPage ? [.init("Content-Type", "text/html")] : [])
        }
        try await bench.downloader.programs.add(
            shell(
                "look", .head, #"grep -q '"content-type":"text.*html"' && echo '{"fail": "a page"}'; exit 0"#,
                in: bench.folder))
        let page = try #require(await bench.finished(try await bench.add("page")))
        #expect(
            page.error?.message == "The middleware program look refused the file by its head: a page"
                && page.count.received == 0)
        #expect(await bench.finished(try await bench.add("a"))?.state == .complete)
    }

    @Test("status 75: another attempt; any other: the error has the program's name and its reason, nothing is sent")
    func verdicts() async throws {
        let bench = try await Bench(content: Self.content)
        try await bench.downloader.programs.add(
            shell("judge", .request, "test -e ok && exit 0; touch ok; echo 'not yet' >&2; exit 75", in: bench.folder))
        let id = try await bench.add("a")
        await bench.reached("a", .idle, times: 2)
        #expect(bench.transport.requests.isEmpty)
        #expect(try await bench.record(id).error?.message == "The middleware program judge asks for a retry: not yet")
        await bench.advance(1)
        #expect(await bench.finished(id)?.state == .complete)
        try await bench.downloader.programs.remove(named: "judge")
        try await bench.downloader.programs.add(
            shell("judge", .request, "echo no http://x/?key=canary >&2; exit 1", in: bench.folder))
        let other = try await bench.add("b")
        let error = try #require(await bench.finished(other)?.error)
        #expect(error.code == .rejected)
        #expect(error.message == "The middleware program judge refused the request: no http://x/?key=***")
        #expect(bench.transport.requests.count == 1)
    }

    @Test("a response program gets path and digest; it may link the file elsewhere, and the old place is removed")
    func moves() async throws {
        let bench = try await Bench(content: Self.content)
        try await bench.downloader.programs.add(
            shell(
                "move", .response,
                #"""
                q=$(cat); echo "$q" > question
                p=$(echo "$q" | sed 's/.*"path":"\([^"]*\)".*/\1/'); mkdir -p moved
                ln "$p" moved/b && echo "{\"path\":\"$PWD/moved/b\"}"
                """#, in: bench.folder))
        let id = try await bench.add("a.bin", barrel: "x")
        let info = try #require(await bench.finished(id))
        #expect(
            info.state == .complete && info.path == bench.folder.file("moved/b").path, "\(info.error?.message ?? "")")
        #expect(bench.names == [])
        #expect(try bench.folder.read("moved/b") == Self.content)
        let question = try JSONDecoder().decode(
            Question.self, from: Data(contentsOf: bench.folder.file("question")))
        #expect(question.stage == "response" && question.id == id.hex && question.url == "http://h.example/a.bin")
        #expect(question.path == "\(bench.out)/a.bin" && question.digest == ["sha-256": Bytes.sha256(Self.content)])
        #expect(question.barrels == ["x"] && question.attempt == 1 && question.headers["etag"] == "\"1\"")
        #expect(try history(bench, id, of: "move") == ["moved the file to \(info.path ?? "")"])
        #expect(try await bench.control.trash(.id(id))[0].applied)
        #expect(!FileManager.default.fileExists(atPath: bench.folder.file("moved/b").path))
    }

    private struct Question: Decodable {
        let stage, id, url: String
        let path: String?
        let digest: [String: String]?
        let headers: [String: String]
        let barrels: [String]
        let attempt: Int
    }

    @Test(
        "a response program that rejects: the file never has its final name; 75 has it fetched again; it does not run for failures"
    )
    func rejects() async throws {
        let bench = try await Bench(content: Self.content)
        try await bench.downloader.programs.add(
            shell("check", .response, "echo x >> runs; test $(wc -l < runs) -gt 1 && exit 0; exit 75", in: bench.folder)
        )
        let id = try await bench.add("a")
        await bench.retried("a", after: 1)
        #expect(await bench.finished(id)?.state == .complete)
        #expect(bench.transport.requests.count == 2)
        try await bench.downloader.programs.remove(named: "check")
        try await bench.downloader.programs.add(
            shell("check", .response, "echo y >> runs; echo bad >&2; exit 1", in: bench.folder))
        let other = try await bench.add("b")
        let error = try #require(await bench.finished(other)?.error)
        #expect(error.code == .rejected && error.message == "The middleware program check rejected the file: bad")
        #expect(bench.names == [FileNameRules.rejectedName(for: "b", id: other), "a"])
        #expect(lines(bench, "runs") == ["x", "x", "y"])
        try await bench.downloader.programs.remove(named: "check")
        try await bench.downloader.programs.add(
            shell("check", .response, #"echo '{"path": "/no/such/file"}'"#, in: bench.folder))
        let third = try await bench.add("c")
        #expect(
            await bench.finished(third)?.error?.message
                == "The middleware program check says that it has moved the file to /no/such/file, but there is no file."
        )
    }

    @Test("a response program that names another file as the moved one is refused: the received file is not removed")
    func movesToAnother() async throws {
        let bench = try await Bench(content: Self.content)
        try bench.folder.write([1, 2, 3], to: "other")
        let other = bench.folder.file("other").path
        try await bench.downloader.programs.add(
            shell("move", .response, #"echo "{\"path\":\"$PWD/other\"}""#, in: bench.folder))
        let id = try await bench.add("a")
        let error = try #require(await bench.finished(id)?.error)
        #expect(
            error.code == .middleware
                && error.message
                    == "The middleware program move says that it has moved the file to \(other), but the file there has 3 bytes, not \(Self.content.count)."
        )
        #expect(bench.names == [FileNameRules.rejectedName(for: "a", id: id)])
        #expect(try bench.out(bench.names[0]) == Self.content)
        #expect(try bench.folder.read("other") == [1, 2, 3])
    }

    @Test("a download program is told of each state in order, also of the last one before the downloader closes")
    func states() async throws {
        let bench = try await Bench(content: Self.content)
        try await bench.downloader.programs.add(
            shell("note", .download, #"sed 's/.*"state":"\([a-z]*\)".*/\1/' >> states"#, in: bench.folder))
        try await bench.downloader.programs.add(shell("angry", .download, "echo never >&2; exit 1", in: bench.folder))
        let id = try await bench.add("a")
        #expect(await bench.finished(id)?.state == .complete, "a program of this stage changes nothing")
        await bench.downloader.close()
        #expect(lines(bench, "states") == ["idle", "action", "complete"])
        #expect(try history(bench, id, of: "note") == ["was told: complete"])
        #expect(try history(bench, id, of: "angry") == ["The middleware program angry failed: never"])
        #expect(await bench.downloader.takeProblems().map(\.message) == ["The middleware program angry failed: never"])
    }

    @Test("programs that listen hold back none that decides, and each end is told")
    func slowListener() async throws {
        let bench = try await Bench(content: Self.content)
        let programs = bench.downloader.programs
        // More tasks than a stage has slots; none of these programs ends before all files are there.
        let wait =
            #"s=$(sed 's/.*"state":"\([a-z]*\)".*/\1/'); while [ ! -e go ]; do sleep 0.05; done; echo $s >> states"#
        try await programs.add(shell("listen", .download, wait, in: bench.folder))
        try await programs.add(shell("decide", .request, "exit 0", in: bench.folder))
        let count = 10 * ProcessInfo.processInfo.activeProcessorCount + 4
        var ids: [TaskID] = []
        for number in 0..<count { ids.append(try await bench.add("f\(number)")) }
        for id in ids { #expect(await bench.finished(id)?.state == .complete) }
        try bench.folder.write([], to: "go")
        // `close` waits for programs 30 s at most, and a busy machine needs longer to start all of these.
        let told = try await eventually {
            lines(bench, "states").count { $0 == "complete" } == count ? count : nil
        }
        #expect(told == count)
        await bench.downloader.close()
    }

    @Test(
        "a barrel's program handles its members only; a removed one handles nothing; false in the settings leaves all out"
    )
    func scopes() async throws {
        let folder = try TemporaryFolder()
        do {
            let bench = try await Bench(in: folder, content: Self.content)
            try await bench.downloader.programs.add(shell("b", .request, "exit 1", barrel: "x", in: folder))
            try await bench.completed("a")
            let inside = try await bench.add("b", barrel: "x")
            #expect(await bench.finished(inside)?.state == .error)
            await #expect(throws: DownloadError.self) { try await bench.downloader.programs.remove(named: "c") }
            await bench.downloader.close()
            #expect(bench.chains.request.isEmpty)
        }
        do {
            let bench = try await Bench(in: folder, content: Self.content) { $0.runsMiddlewarePrograms = false }
            #expect(try bench.downloader.programs.list().map(\.name) == ["b"])
            try await bench.completed("c", barrel: "x")
            await bench.downloader.close()
        }
        // The list is the work path's: another engine runs them again.
        let bench = try await Bench(in: folder, content: Self.content)
        let id = try await bench.add("d", barrel: "x")
        #expect(await bench.finished(id)?.state == .error)
    }

    @Test("a program that an application registers itself, without the work path's list")
    func ownRegistration() async throws {
        let ends = Observed<[String]>([])
        let bench = try await Bench(content: Self.content)
        bench.chains.register(
            request: try shell("key", .request, #"echo '{"headers":{"X-Key":"k"}}'"#, in: bench.folder).middleware())
        bench.chains.register(
            download: try shell("note", .download, "exit 3", in: bench.folder).middleware { _, state, error in
                ends.update { $0.append("\(state) \(error?.message ?? "")") }
            })
        try await bench.completed("a")
        #expect(bench.sent("X-Key") == ["k"])
        await bench.downloader.close()
        #expect(ends.value.last == "complete The middleware program note failed: exit status 3")
        #expect(ends.value.count == 3)
    }

    @Test(
        "suspending a task whose program hangs ends the program at once",
        arguments: [MiddlewareProgram.Stage.request, .response])
    func suspended(_ stage: MiddlewareProgram.Stage) async throws {
        let bench = try await Bench(content: Self.content)
        try await bench.downloader.programs.add(
            shell(
                "hang", stage, "test -e pid && exit 0; echo $$ > pid; sleep 1000",
                limit: .seconds(stage == .request ? 1_000 : 2), in: bench.folder))
        let id = try await bench.add("a")
        _ = try await eventually { lines(bench, "pid").first }
        try await bench.control.suspend(.id(id))
        #expect(await bench.finished(id)?.state == .suspend)
        let pid = try #require(lines(bench, "pid").first.flatMap(Int32.init))
        #expect(try await eventually { kill(pid, 0) != 0 ? true : nil } == true)
        try await bench.control.resume(.id(id))
        try await bench.expect("a", Self.content, of: id)
    }
}
