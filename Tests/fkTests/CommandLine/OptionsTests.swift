import FKManifests
import TestSupport
import Testing

@testable import fk

@Suite("Command options") struct OptionsTests {
    private static let context = CommandContext(environment: ["HOME": "/home/me"], workingDirectory: "/work-nowhere")

    private func parsed(_ words: [String]) throws -> ParsedArguments {
        guard case .command(_, let arguments) = try CommandTable.parser.parse(words) else {
            throw UsageError("not a command")
        }
        return arguments
    }

    private func get(_ words: String...) throws -> GetOptions { try GetOptions(parsed(["get"] + words), Self.context) }

    private func message(_ words: String...) -> String { message(words) }

    private func message(_ words: [String]) -> String {
        do {
            _ = try Dispatcher(context: Self.context).command(words)
            return ""
        } catch {
            return error is UsageError ? "\(error)" : "not a usage error: \(error)"
        }
    }

    @Test("get makes descriptions with everything it was told") func get() throws {
        let hex = String(repeating: "ab", count: 32)
        let folder = try TemporaryFolder()
        let authorities = try folder.write("-----BEGIN CERTIFICATE-----\n", "ca.pem")
        let cookies = try folder.write("h\tFALSE\t/\tFALSE\t0\ta\t\n", "cookies.txt")
        let options = try get(
            "https://h/a", "-d", "out", "-o", "sub/n.iso", "--mirror", "https://m/a", "--checksum", "sha256=\(hex)",
            "-H",
            "X-Key:  v ", "-H", "Accept: */*", "-x", "4", "--retry", "0", "--timeout", "2.5", "--max-size", "1.5K",
            "--min-free", "2K",
            "--insecure", "--skip", "--proxy", "socks5://p:1", "--cacert", authorities, "--cookies", cookies, "-b",
            "grp",
            "-j4",
            "--limit-rate", "2m", "--durability", "power", "--transport", "urlsession", "--detach")
        let task = try #require(options.input.tasks.first)
        #expect(task.url == "https://h/a")
        #expect(task.mirrors == ["https://m/a"])
        #expect(task.directory == "/work-nowhere/out/sub")
        #expect(task.fileName == "n.iso")
        #expect(task.options.checksum?.description == "sha-256=\(hex)")
        #expect(task.options.headers == [.init("X-Key", "v"), .init("Accept", "*/*")])
        #expect(task.options.secretHeaders == ["x-key"])
        #expect(task.options.connections == .fixed(4))
        #expect(task.options.maxAttempts == 1)
        #expect(task.options.timeout == .seconds(2.5))
        #expect(task.options.maxSize == 1536)
        #expect(task.options.minFree == 2_048 && options.run.minFree == 2_048)
        #expect(task.options.insecure == true)
        #expect(task.options.existing == .skip)
        #expect(task.options.proxy == "socks5://p:1")
        #expect(task.options.caPath == authorities && task.options.cookiePath == cookies)
        #expect(options.barrel == "grp")
        #expect(options.run.jobs == 4 && options.run.rateLimit == 2 << 20 && options.run.detach)
        #expect(options.run.durability == .power)
        #expect(options.run.transport == .urlSession)
    }

    @Test("Without options a file goes into the present folder and nothing else is decided") func plain() throws {
        let task = try #require(try get("http://h/a").input.tasks.first)
        #expect(task.directory == "/work-nowhere")
        #expect(task.fileName == nil && task.options == TaskOptions())
    }

    @Test(
        "Refusals name the option, the value and what is allowed",
        arguments: [
            (["-x", "0"], "-x: '0'", "1 to 256, or auto"), (["-x", "257"], "-x: '257'", "1 to 256"),
            (["-j", "-1"], "-j: '-1'", "1 to 256"), (["-j", "1e3"], "-j: '1e3'", "1 to 256"),
            (["-j", ""], "-j: ''", "1 to 256"), (["--limit-rate", "10Q"], "--limit-rate: '10Q'", "500K"),
            (["--limit-rate", "-1"], "--limit-rate: '-1'", "500K"), (["--retry", "+1"], "--retry: '+1'", "0 to 1000"),
            (["--timeout", "0"], "--timeout: '0'", "1 to 86400"),
            (["--timeout", "inf"], "--timeout: 'inf'", "1 to 86400"),
            (["--max-size", "0"], "--max-size: '0'", "at least 1 byte"),
            (["--durability", "proces"], "--durability: 'proces'", "Did you mean 'process'?"),
            (["--transport", "culr"], "--transport: 'culr'", "curl"),
            (["--color", "maybe"], "--color: 'maybe'", "auto, always, never"),
            (["--proxy", "ftp://p"], "--proxy: 'ftp://p'", "socks5"), (["-o", "dir/"], "-o: 'dir/'", "-d"),
            (["-o", ".."], "-o: '..'", "-d"),
            (["-o", String(repeating: "é", count: 128)], "-o: the name", "255 bytes"),
            (["-b", "a/b"], "\"a/b\" cannot be a barrel's name", "slash"),
            (["-b", ""], "\"\" cannot be a barrel's name", "empty"),
            (["--checksum", "crc=1"], "--checksum:", "sha-256"),
            (["--mirror", "ftp://m/a"], "--mirror:", "http and https"), (["-d", ""], "-d:", "empty"),
            (["--work-path", ""], "--work-path:", "empty"),
        ])
    func refusals(words: [String], start: String, contained: String) {
        let text = message(["get", "http://h/a"] + words)
        #expect(text.hasPrefix(start), "\(text)")
        #expect(text.contains(contained), "\(text)")
    }

    @Test("What describes one file is refused for several") func singleOnly() {
        #expect(
            message("get", "http://h/a", "http://h/b", "-o", "x").hasPrefix("-o describes a single file, but 2 URLs"))
        #expect(message("get", "http://h/a", "http://h/b", "--checksum", "md5=1").hasPrefix("--checksum describes"))
    }

    @Test(
        "What is not a URL is refused with the reason",
        arguments: [
            ("", "the URL is empty"), ("h/a", "no scheme; write https://h/a"),
            ("ftp://h/a", "scheme 'ftp' is not supported"),
            ("file:///etc/passwd", "scheme 'file'"), ("http://", "has no host"), ("http:///a", "has no host"),
            ("http://:80/", "has no host"), ("http://u:p@/x", "has no host"), ("http://h/a\u{7}", "control character"),
        ])
    func urls(text: String, reason: String) {
        #expect(text.urlFault?.contains(reason) == true)
        #expect(message("get", text).contains(reason))
    }

    @Test(
        "Unusual URLs pass the first look",
        arguments: [
            "HTTP://h", "http://[::1]:80/x", "http://h/ä ö", "http://例え.jp/😀", "http://h/%zz", "https://u:p@h/?q#f",
        ])
    func goodURLs(text: String) {
        #expect(text.urlFault == nil)
    }

    @Test("Every word that is shown for a state selects it, and so does the stored word") func states() throws {
        for state in DownloadState.allCases where state != .unknown {
            for word in [state.shown, state.rawValue] {
                #expect(try parsed(["list", "--state", word]).state()?.states.contains(state) == true, "\(word)")
            }
        }
        #expect(ShownState.allCases.flatMap(\.states).count == DownloadState.allCases.count - 1)
        #expect(message("list", "--state", "done").contains("waiting, running, suspended, cancelled, failed, complete"))
        #expect(message("list", "--state", "stopped").contains("is not one of"))
    }

    @Test("Verbs take tasks, a barrel, a state or --all: exactly one of them") func verbs() throws {
        func targets(_ words: [String]) throws -> VerbTargets { try VerbTargets(parsed(words)) }
        #expect(message("suspend").contains("is missing"))
        #expect(message("suspend", "--all", "-b", "x").contains("--all or -b, not both"))
        #expect(message("forget", "--all", "-b", "x").contains("--all or -b, not both"))
        #expect(message("forget", "-b", "x", "--state", "error").contains("-b or --state, not both"))
        #expect(message("forget", "--state", "eror").contains("Did you mean 'error'?"))
        guard case .all = try targets(["suspend", "--all"]), case .barrel("b") = try targets(["rm", "-b", "b"]),
            case .state(.failed) = try targets(["retry", "--state", "error"]),
            case .tasks(let some, all: false) = try targets(["trash", "-y", "http://h/a", "ABCDEF12"]),
            case .tasks(_, all: true) = try targets(["suspend", "a.iso", "--all"])
        else {
            Issue.record("other targets")
            return
        }
        #expect(some == [.url("http://h/a"), .idPrefix("abcdef12")])
    }

    @Test("A task is named by its URL, the beginning of its id, its file's name, or a pattern")
    func references() throws {
        #expect(TaskReference("http://h/*") == .url("http://h/*"))
        #expect(TaskReference("s3://b/k") == .object("s3://b/k"))
        #expect(TaskReference("ABCDEF12") == .idPrefix("abcdef12"))
        for name in ["abcde", "xyz123456", "ａｂｃｄｅｆ", "big.iso"] { #expect(TaskReference(name) == .name(name)) }
        for text in ["./a.iso", "/d/abcdef", "d/a"] { #expect(TaskReference(text) == .path(text)) }
        for text in ["*.iso", "a?", "[ab].zip", "d/*"] { #expect(TaskReference(text) == .glob(text)) }
    }

    @Test("Work path: option, then environment, then the system's place") func workPath() throws {
        func path(_ environment: [String: String], _ words: String...) throws -> String {
            let context = CommandContext(environment: environment, workingDirectory: "/nowhere")
            return try GlobalOptions(parsed(["list"] + words), context).workPath
        }
        #expect(try path(["FK_WORK_PATH": "/a"], "--work-path", "b//c/./d/../e/") == "/nowhere/b/c/e")
        #expect(try path(["FK_WORK_PATH": "/a-b"]) == "/a-b")
        #if os(Linux)
            #expect(try path(["FK_WORK_PATH": "", "XDG_STATE_HOME": "/state-x", "HOME": "/h-x"]) == "/state-x/fk")
            #expect(try path(["XDG_STATE_HOME": "relative", "HOME": "/h-x"]) == "/h-x/.local/state/fk")
        #endif
    }

    @Test("Paths are the same before and after the folder exists") func stablePaths() throws {
        let folder = try TemporaryFolder()
        let before = try Paths.absolute("x/../y/z", from: folder.path)
        try FileManager.default.createDirectory(atPath: "\(folder.path)/y/z", withIntermediateDirectories: true)
        #expect(try Paths.absolute("y/z/", from: folder.path) == before)
        #expect(before == "\(folder.path)/y/z")
        try FileManager.default.createSymbolicLink(atPath: "\(folder.path)/link", withDestinationPath: "y/z")
        #expect(try Paths.absolute("link/../new", from: folder.path) == "\(folder.path)/y/new")
    }

    @Test("barrel create keeps folder and options for later members") func barrel() throws {
        let options = try BarrelCreateOptions(
            parsed(["barrel", "create", "n", "http://h/a", "-d", "/d-x", "-H", "A: b", "-x2"]), Self.context)
        #expect(options.name == "n" && options.input.directory == "/d-x")
        #expect(options.input.shared.headers == [.init("A", "b")])
        #expect(options.input.shared.connections == .fixed(2))
        #expect(options.input.tasks.map(\.url) == ["http://h/a"])
        #expect(message("barrel", "add", "n").contains("is missing"))
    }

    @Test("A list gives each file its own name, folder and digest") func list() throws {
        let folder = try TemporaryFolder()
        let path = try folder.write(
            "http://h/a\n  out=x/y.bin\n  dir=/data-x\nhttp://h/b\thttp://m/b\n header=X-Y: z\n", "list")
        let tasks = try get("-i", path, "-d", "/d-x", "-H", "A: b").input.tasks
        #expect(tasks.map(\.directory) == ["/data-x/x", "/d-x"])
        #expect(tasks.map(\.fileName) == ["y.bin", nil])
        #expect(tasks[1].mirrors == ["http://m/b"])
        #expect(tasks[1].options.headers == [.init("A", "b"), .init("X-Y", "z")])
        #expect(tasks[0].options.headers == [.init("A", "b")])
        #expect(message("get", "-i", "/nowhere/list").contains("/nowhere/list: No such file"))
    }

    @Test("Settings that many processes change at once are all kept") func settingsAtOnce() throws {
        let folder = try TemporaryFolder()
        DispatchQueue.concurrentPerform(iterations: 24) { number in
            do {
                _ = try Settings.change(workPath: folder.path) { $0.bases["b\(number)"] = "/b/\(number)" }
            } catch {
                Issue.record(error)
            }
        }
        #expect(try Settings.read(workPath: folder.path).bases.count == 24)
    }

    @Test("a saved value is checked as the option is, under the setting's name")
    func checks() throws {
        let wrong = [
            "jobs": "0", "connections": "300", "limit-rate": "fast", "min-free": "-1", "disk-budget": "0",
            "retry": "1001",
            "timeout": "0", "durability": "never", "transport": "ftp", "directory": "a ", "parts-folder": "a\n",
            "proxy": "gopher://h", "cacert": "a ",
        ]
        let arguments = ParsedArguments(command: ["config", "set"])
        for option in SavedOption.all {
            let value = try #require(wrong[option.name], "\(option.name) has no wrong value here")
            let error = try #require(throws: UsageError.self) { try option.check(value, arguments) }
            let name = option.name == "proxy" ? "--proxy" : option.name
            #expect(error.message.hasPrefix("\(name): "), "\(error)")
        }
        let names = try #require(throws: UsageError.self) { try SavedOption.named("job", arguments) }
        #expect(names.message.hasSuffix("Did you mean 'jobs'?"))
        for (name, value) in ["disk-budget": "none", "connections": "auto", "limit-rate": "0", "directory": "/a b"] {
            try SavedOption.named(name, arguments).check(value, arguments)
        }
    }

    @Test("settings that cannot be read stop what depends on them, and no help") func unreadable() async throws {
        let sandbox = try Sandbox()
        try FileManager.default.createDirectory(atPath: sandbox.workPath, withIntermediateDirectories: true)
        try Data([0xff]).write(to: URL(fileURLWithPath: "\(sandbox.workPath)/config"))
        for words in [["list"], ["get", "http://127.0.0.1:1/a"], ["config", "show"]] {
            let result = try await sandbox.fk(words)
            #expect(result.status != 0 && result.errors.contains("/config is not UTF-8 text"), "\(words) \(result)")
        }
        for words in [["config", "path"], ["man"], ["help", "get"], ["completions", "bash"]] {
            let result = try await sandbox.fk(words)
            #expect(result.status == 0 && result.errors == "", "\(words) \(result)")
        }
    }

    @Test("Lines of the settings without effect are named with their numbers, and stay in the file")
    func ignoredLines() async throws {
        let sandbox = try Sandbox()
        try FileManager.default.createDirectory(atPath: sandbox.workPath, withIntermediateDirectories: true)
        let path = "\(sandbox.workPath)/config"
        try Data("# a comment\n\nlimit-rate 100K\njbos = 9\r\njobs = 2\nretry =\nbase.x = y\n".utf8)
            .write(to: URL(fileURLWithPath: path))
        for words in [["list"], ["config", "show"]] {
            let result = try await sandbox.fk(words)
            let warnings = result.errors.split(separator: "\n").filter { $0.contains(" has no effect: ") }
            #expect(result.status == 0 && warnings.count == 4, "\(words) \(result)")
            for (line, reason) in [(3, "no '='"), (4, "mean 'jobs'?"), (6, "no value"), (7, "absolute")] {
                #expect(
                    warnings.contains { $0.contains("\(path), line \(line), has") && $0.contains(reason) }, "\(result)")
            }
        }
        try await sandbox.done("config", "set", "jobs", "3")
        let text = try String(contentsOfFile: path, encoding: .utf8)
        #expect(text == "jobs = 3\nlimit-rate 100K\njbos = 9\nretry =\nbase.x = y\n")
    }

    @Test("Saved settings stand in for options that were not given") func settings() throws {
        let folder = try TemporaryFolder()
        var settings = Settings()
        settings["jobs"] = "7"
        settings["directory"] = "/saved-x"
        settings["proxy"] = "http://u:p@proxy"
        try settings.write(workPath: folder.path)
        #expect(try Settings.read(workPath: folder.path) == settings)
        let mode = try FileManager.default.attributesOfItem(atPath: "\(folder.path)/config")[.posixPermissions] as? Int
        #expect(mode == 0o600)
        var arguments = try parsed(["get", "http://h/a", "-d", "own"])
        let spec = try #require(CommandTable.all.first { $0.path == ["get"] })
        try settings.fill(&arguments, of: spec, workPath: folder.path)
        #expect(arguments["jobs"] == "7" && arguments["directory"] == "own")
        settings["jobs"] = "0"
        var without = ParsedArguments(command: ["get"])
        let fault = #expect(throws: CommandFailure.self) {
            try settings.fill(&without, of: spec, workPath: folder.path)
        }
        #expect(fault?.status == 2)
        #expect(fault?.message.hasPrefix("\(folder.path)/config: jobs: ") == true, "\(fault as Any)")
        settings["jobs"] = nil
        settings["directory"] = "~/saved"
        try settings.fill(&without, of: spec, workPath: folder.path, home: "/home/me")
        #expect(without["directory"] == "/home/me/saved")
    }

    @Test("a saved file of authorities that is not there is named with the settings, and not as an option")
    func savedAuthorities() async throws {
        let sandbox = try Sandbox()
        try FileManager.default.createDirectory(atPath: sandbox.workPath, withIntermediateDirectories: true)
        let path = "\(sandbox.workPath)/config"
        try Data("cacert = /nowhere/ca.pem\n".utf8).write(to: URL(fileURLWithPath: path))
        let result = try await sandbox.fk("get", "http://127.0.0.1:1/a")
        #expect(result.status == 2 && result.errors.hasPrefix("fk: \(path): cacert: "), "\(result)")
        #expect(!result.errors.contains("--cacert") && !result.errors.contains("fk help"))
    }
}

@Suite("Header fields") struct HeaderFieldTests {
    @Test(
        "Name and value are taken apart",
        arguments: [
            ("A: b", "A", "b"), ("A:b", "A", "b"), ("X-1:  b c\t", "X-1", "b c"), ("A:", "A", ""),
            ("A: x:y", "A", "x:y"),
        ])
    func good(text: String, name: String, value: String) throws {
        #expect(try HeaderField.parse(text) == .init(name, value))
    }

    @Test(
        "What could become another header is refused, and no value is shown",
        arguments: [
            "Authorization secret", ": secret", "A B: secret", "A: secret\r\nB: c", "A: secret\n", "A: sec\u{0}ret",
            "Ä: secret", "Range: secret", "if-range: secret", "Transfer-Encoding: secret",
        ])
    func bad(text: String) {
        let error = #expect(throws: HeaderField.Invalid.self) { try HeaderField.parse(text) }
        #expect(error?.reason.contains("secret") == false)
    }

    @Test("All but well-known harmless headers stay with the first host") func secrets() {
        let fields: [HeaderField] = [
            .init("User-Agent", "x"), .init("Authorization", "x"), .init("X-Api-Key", "x"), .init("ACCEPT", "x"),
        ]
        #expect(HeaderField.secretNames(of: fields) == ["authorization", "x-api-key"])
    }
}
