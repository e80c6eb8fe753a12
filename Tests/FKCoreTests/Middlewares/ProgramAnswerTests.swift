import TestSupport
import Testing

@testable import FKEngine

@Suite("What a middleware program says")
struct ProgramAnswerTests {
    private func answer(_ text: String, _ stage: MiddlewareProgram.Stage = .request) throws -> ProgramAnswer {
        try ProgramAnswer(Array(text.utf8), stage)
    }

    private func fault(_ text: String, _ stage: MiddlewareProgram.Stage = .request) -> String? {
        do { _ = try answer(text, stage) } catch { return (error as? ProgramAnswer.Fault)?.text }
        return nil
    }

    @Test(
        "no output, white space and an empty object change nothing",
        arguments: ["", " \n\t", "{}", "{ }\n", "{\"url\":null}"])
    func nothing(_ text: String) throws {
        for stage in MiddlewareProgram.Stage.allCases { #expect(try answer(text, stage) == ProgramAnswer()) }
    }

    @Test("a request's URL and headers; null removes a header; the URL gets its normal form")
    func request() throws {
        let answer = try answer(#"{"url": "HTTP://h.example/a b?sig=%2f", "headers": {"X-Sig": "1", "X-Old": null}}"#)
        #expect(answer.url == "http://h.example/a%20b?sig=%2f")
        #expect(answer.headers == ["X-Sig": "1", "X-Old": nil])
        #expect(answer.path == nil)
    }

    @Test("the whole question may come back: members of other stages mean nothing")
    func echo() throws {
        let task = TaskContext(
            id: TaskID(url: "http://h.example/a"), originalURL: try #require(URL(string: "http://h.example/a")))
        var request = URLRequest(url: task.originalURL)
        request.setValue("1", forHTTPHeaderField: "X-Own")
        #expect(try ProgramAnswer(ProgramQuestion(request, task).json, .request).headers == ["X-Own": "1"])
        let state = try ProgramAnswer(ProgramQuestion(.error, DownloadError(.timeout, "late"), task).json, .download)
        #expect(state == ProgramAnswer())
        let response = DownloadResponse(task: task, fileURL: URL(fileURLWithPath: "/d/a"))
        let file = try ProgramAnswer(ProgramQuestion(response, path: "/d/a", sha256: "00").json, .response)
        #expect(file.path == "/d/a" && file.url == nil && file.headers.isEmpty)
    }

    @Test(
        "anything else is a fault that quotes no value",
        arguments: [
            ("hello", "wrote 5 bytes that are not a JSON object"), ("[]", "wrote 2 bytes that are not a JSON object"),
            ("{", "wrote 1 bytes that are not a JSON object"), ("{} {}", "wrote 5 bytes that are not a JSON object"),
            (#"{"URL": "x"}"#, #"wrote the unknown member "URL""#),
            (#"{"header": {}}"#, #"wrote the unknown member "header""#),
            (#"{"url": 1}"#, "wrote a url that is not a text"), (#"{"url": {}}"#, "wrote a url that is not a text"),
            (#"{"headers": []}"#, "wrote headers that are not an object of texts"),
            (#"{"headers": {"a": 1}}"#, "wrote headers that are not an object of texts"),
            (#"{"headers": {"a b": "secret"}}"#, #"wrote the header "a b", which is not a name"#),
            (
                #"{"headers": {"a": "secret\r\nb: c"}}"#,
                "wrote a line end or a zero byte into the value of the header a"
            ),
        ])
    func garbage(_ text: String, _ expected: String) { #expect(fault(text) == expected) }

    @Test(
        "URLs that cannot be used", arguments: ["file:///etc/passwd", "no", "http://", "http://a:99999/", "ftp://h/a"])
    func badURL(_ url: String) throws {
        #expect(try #require(fault("{\"url\": \"\(url)\"}")).hasPrefix("wrote a URL that cannot be used"))
        #expect(fault("{\"url\": \"\(url)\"}")?.hasSuffix(".") == false)
    }

    @Test("another address for the next attempt is for the stage failure alone") func from() throws {
        let text = #"{"retry": {"from": "http://h/a"}}"#
        #expect(try answer(text, .failure).retry?.from == "http://h/a")
        #expect(fault(text, .head) == #"wrote a retry with "from", which only the stage failure has"#)
    }

    @Test("the path of a moved file is absolute; more headers than 100 are refused; garbage that is not UTF-8")
    func path() throws {
        #expect(try answer(#"{"path": "/a/b"}"#, .response).path == "/a/b")
        #expect(fault(#"{"path": "a/b"}"#, .response) == #"wrote the path "a/b", which is not absolute"#)
        #expect(fault(#"{"path": 1}"#, .response) == "wrote a path that is not a text")
        let many = (0..<101).map { "\"h\($0)\": \"\"" }.joined(separator: ",")
        #expect(fault("{\"headers\": {\(many)}}") == "wrote more than 100 headers")
        #expect(throws: ProgramAnswer.Fault.self) { try ProgramAnswer([0x7b, 0xff, 0xfe, 0x7d], .request) }
        let deep = String(repeating: "[", count: 100_000)
        #expect(fault("{\"url\": \(deep)") != nil)
    }

    // MARK: Verdicts

    private func verdict(_ end: ProgramResult.End, _ output: String = "", _ errors: String = "") -> ProgramVerdict {
        ProgramVerdict(
            ProgramResult(end: end, output: Array(output.utf8), errors: Array(errors.utf8)), .request,
            timeLimit: .seconds(10))
    }

    @Test("status 0 accepts, 75 asks for a retry, any other refuses with the first line of standard error")
    func statuses() {
        #expect(verdict(.exited(0), "", "a warning") == .accept(ProgramAnswer()))
        #expect(verdict(.exited(75)) == .retry("exit status 75"))
        #expect(verdict(.exited(75), "garbage", "\n  not yet \nmore") == .retry("not yet"))
        #expect(verdict(.exited(1)) == .reject("exit status 1"))
        #expect(verdict(.exited(255), "", "no key\nmore") == .reject("no key"))
    }

    @Test(
        "a program that did not do its work is broken: the error names it, and is retried only if the system lacked something"
    )
    func broken() throws {
        let cases: [(ProgramResult.End, String)] = [
            (.signalled(11), "The middleware program sign was ended by signal 11 (Segmentation fault)."),
            (.timedOut, "The middleware program sign did not end within 10 s and was killed."),
            (.flooded, "The middleware program sign wrote more than 1 MiB and was killed."),
            (
                .heldOpen,
                "The middleware program sign left a process behind that keeps its output open; its process group was killed."
            ),
            (
                .notStarted("there is no program x", isRetryable: false),
                "The middleware program sign did not run: there is no program x."
            ),
            (.exited(0), "The middleware program sign wrote 1 bytes that are not a JSON object."),
        ]
        for (end, message) in cases {
            let error = try #require(verdict(end, "x").error(of: "sign", "refused the request"))
            #expect(error.code == .middleware && error.message == message && !error.isRetryable)
        }
        let lacking = verdict(.notStarted(String(cString: strerror(EMFILE)), isRetryable: true)).error(of: "s", "")
        #expect(lacking?.isRetryable == true && lacking?.isOutOfDescriptors == true)
        let retry = try #require(verdict(.exited(75), "", "busy").error(of: "sign", ""))
        #expect(retry.isRetryable && retry.message == "The middleware program sign asks for a retry: busy")
        let refusal = try #require(verdict(.exited(2), "", "bad").error(of: "sign", "rejected the file"))
        #expect(refusal.code == .rejected && refusal.message == "The middleware program sign rejected the file: bad")
    }

    @Test("a reason is one short line without control characters, and without the secrets of URLs and of the request")
    func reasons() throws {
        #expect(ProgramReason.text(Array("\u{1b}[31mred\u{202e}\n".utf8)) == "\\e[31mred\\u{202e}")
        #expect(ProgramReason.text(Array(" \r\n\n".utf8)) == nil)
        #expect(ProgramReason.text([0xff, 0x41]) == "\u{fffd}A")
        let long = try #require(ProgramReason.text([UInt8](repeating: 0x61, count: 20_000)))
        #expect(long.count == ProgramReason.maxLength && long.hasSuffix("…"))
        let text = "no http://u:p@h/a?token=canary&x=1 and http://h/?sig=canary"
        #expect(ProgramReason.text(Array(text.utf8)) == "no http://***@h/a?token=***&x=1 and http://h/?sig=***")
    }

    // MARK: Descriptions

    @Test("a description is checked, and its JSON is read again as it was")
    func description() throws {
        let program = try MiddlewareProgram(
            name: "sign", stage: .request, priority: 5, barrel: "b", timeLimit: .milliseconds(1_500),
            arguments: ["python3", "a b.py", ""], directory: "/d")
        #expect(try StoreJSON.decode(MiddlewareProgram.self, from: StoreJSON.encode(program)) == program)
        let bad: [() throws -> MiddlewareProgram] = [
            { try .init(name: "", stage: .request, arguments: ["a"]) },
            { try .init(name: "a/b", stage: .request, arguments: ["a"]) },
            { try .init(name: "a\n", stage: .request, arguments: ["a"]) },
            { try .init(name: String(repeating: "a", count: 65), stage: .request, arguments: ["a"]) },
            { try .init(name: "a", stage: .request, priority: 0, arguments: ["a"]) },
            { try .init(name: "a", stage: .request, timeLimit: .zero, arguments: ["a"]) },
            { try .init(name: "a", stage: .request, timeLimit: .seconds(3_601), arguments: ["a"]) },
            { try .init(name: "a", stage: .request, arguments: []) },
            { try .init(name: "a", stage: .request, arguments: [""]) },
            { try .init(name: "a", stage: .request, arguments: ["a", "b\0"]) },
            { try .init(name: "a", stage: .request, arguments: [String](repeating: "a", count: 1_001)) },
            { try .init(name: "a", stage: .request, arguments: ["a", String(repeating: "a", count: 16 << 10)]) },
            { try .init(name: "a", stage: .request, arguments: ["a"], directory: "here") },
            { try .init(name: "a", stage: .request, barrel: "", arguments: ["a"]) },
        ]
        for make in bad {
            #expect { _ = try make() } throws: { ($0 as? DownloadError)?.code == .invalidArgument }
        }
    }

    @Test("the environment is exactly six variables")
    func environment() {
        let variables = ProgramEnvironment.variables(.response, "00ff", inherited: ProgramEnvironment.inherited)
        #expect(
            variables.map { $0.prefix { $0 != "=" } } == ["FK_STAGE", "FK_TASK_ID", "PATH", "HOME", "LANG", "TMPDIR"])
        #expect(variables[0] == "FK_STAGE=response" && variables[1] == "FK_TASK_ID=00ff")
        #expect(variables.allSatisfy { !$0.hasSuffix("=") })
    }

    // MARK: The list

    @Test("the list of a work path: kept in order, names are unique, the same again changes nothing")
    func list() throws {
        let folder = try TemporaryFolder()
        let workPath = WorkPath(folder.file("work"))
        try workPath.open(create: true)
        #expect(try MiddlewareProgram.List(in: workPath).programs == [])
        let first = try MiddlewareProgram(name: "b", stage: .request, arguments: ["a"])
        let second = try MiddlewareProgram(name: "a", stage: .response, arguments: ["a"])
        var list = MiddlewareProgram.List()
        #expect(try list.add(first) && list.add(second))
        #expect(try !list.add(first))
        let other = try MiddlewareProgram(name: "b", stage: .download, arguments: ["a"])
        #expect { _ = try list.add(other) } throws: { ($0 as? DownloadError)?.code == .invalidArgument }
        try list.write(in: workPath)
        #expect(try MiddlewareProgram.List(in: workPath).programs == [first, second])
        #expect { try list.remove(named: "c") } throws: { ($0 as? DownloadError)?.code == .notFound }
        try list.remove(named: "b")
        #expect(list.programs == [second])
        for number in 1..<MiddlewareProgram.List.maxCount {
            _ = try list.add(MiddlewareProgram(name: "n\(number)", stage: .request, arguments: ["a"]))
        }
        let last = try MiddlewareProgram(name: "last", stage: .request, arguments: ["a"])
        #expect { _ = try list.add(last) } throws: { ($0 as? DownloadError)?.code == .invalidArgument }
    }

    @Test(
        "a damaged list is an error with its path; one of a later version is left alone",
        arguments: [
            ("", DownloadError.Code.corruptInfo), ("{", .corruptInfo), ("{\"format\":1}", .corruptInfo),
            ("{\"format\":1,\"programs\":[{\"name\":\"a\"}]}", .corruptInfo),
            (
                "{\"format\":1,\"programs\":[{\"name\":\"a/b\",\"stage\":\"request\",\"priority\":1,\"timeLimit\":1,\"program\":[\"x\"],\"directory\":\"/\"}]}",
                .invalidArgument
            ), ("{\"format\":2,\"new\":[]}", .laterVersion),
        ])
    func damaged(_ text: String, _ code: DownloadError.Code) throws {
        let folder = try TemporaryFolder()
        let workPath = WorkPath(folder.file("work"))
        try workPath.open(create: true)
        try Data(text.utf8).write(to: URL(fileURLWithPath: workPath.middlewaresPath))
        #expect {
            _ = try MiddlewareProgram.List(in: workPath)
        } throws: { error in
            let error = error as? DownloadError
            return error?.code == (code == .invalidArgument ? .corruptInfo : code)
                && error?.message.contains(workPath.middlewaresPath) == true
        }
        #expect(throws: DownloadError.self) {
            _ = try Engine(
                configure: Configure(workPath: folder.file("work")), scope: .all,
                transport: ScriptedTransport { request, _ in .file([], to: request) })
        }
        #expect(!EngineLock.isHeld(workPath))
    }
}
