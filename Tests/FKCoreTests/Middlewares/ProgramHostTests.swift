import TestSupport
import Testing

@testable import FKEngine

/// Programs as the system runs them.
@Suite("Running middleware programs")
struct ProgramHostTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    /// Runs a shell script.
    private func run(
        _ script: String, input: String = "", limit: Duration = .seconds(60), _ arguments: [String] = [],
        on host: ProgramHost = .shared
    ) async throws -> ProgramResult {
        try await host.run { [path = folder.path] in
            ProgramCall(
                path: "/bin/sh", arguments: ["sh", "-c", script, "sh"] + arguments,
                environment: ProgramEnvironment.variables(.request, "7", inherited: ProgramEnvironment.inherited),
                directory: path, input: Array(input.utf8), timeLimit: limit)
        }
    }

    private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

    /// True while a process of that id is there and not a zombie.
    private func isAlive(_ pid: String) -> Bool {
        guard let pid = Int32(pid.trimmingCharacters(in: .whitespacesAndNewlines)) else { return false }
        guard let status = try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8) else {
            return kill(pid, 0) == 0 && !FileManager.default.fileExists(atPath: "/proc/self")
        }
        return status.split(separator: ")").last?.split(separator: " ").first != "Z"
    }

    private func dies(_ file: String) async throws -> Bool {
        let pid = try #require(
            await eventually {
                (try? String(contentsOfFile: "\(folder.path)/\(file)", encoding: .utf8)).flatMap {
                    $0.hasSuffix("\n") ? $0 : nil
                }
            })
        return try await eventually { isAlive(pid) ? nil : true } ?? false
    }

    @Test("input, output, errors and the exit status; arguments are passed as they are, the folder is the given one")
    func streams() async throws {
        let result = try await run(
            "cat; echo no >&2; printf '%s|' \"$@\"; pwd; exit 3", input: "hello\n", ["a b", "", "$HOME;*"])
        #expect(result.end == .exited(3))
        #expect(text(result.output) == "hello\na b||$HOME;*|\(folder.path)\n")
        #expect(text(result.errors) == "no\n")
    }

    @Test("a large input that is read slowly, and one that is not read at all")
    func input() async throws {
        let large = String(repeating: "x", count: 900_000)
        #expect(
            text(try await run("wc -c", input: large).output).trimmingCharacters(in: .whitespacesAndNewlines)
                == "900000")
        #expect(try await run("exec 0<&-; exit 0", input: large).end == .exited(0))
        #expect(try await run("exit 4", input: large).end == .exited(4))
    }

    @Test("the environment has six variables, and no descriptor of this process is open, close-on-exec or not")
    func surroundings() async throws {
        // One that an application forgot to mark.
        let leak = open("/dev/null", O_RDONLY)
        defer { close(leak) }
        let result = try await run("/usr/bin/env | cut -d= -f1 | sort; ls /proc/self/fd 2>/dev/null | wc -l")
        let lines = text(result.output).split(separator: "\n").map(String.init)
        let own = ["_", "PWD", "SHLVL", "OLDPWD"]
        #expect(
            lines.dropLast().filter { !own.contains($0) } == [
                "FK_STAGE", "FK_TASK_ID", "HOME", "LANG", "PATH", "TMPDIR",
            ])
        #if os(Linux)
            // 0, 1, 2, and the folder that ls reads.
            #expect(lines.last == "4")
        #endif
    }

    @Test("a program that hangs is killed with its children at its time limit, and leaves no zombie")
    func hangs() async throws {
        let result = try await run(
            "echo before; sleep 1000 & echo $! > child; echo $$ > self; wait", limit: .milliseconds(300))
        #expect(result.end == .timedOut)
        #expect(text(result.output) == "before\n")
        #expect(try await dies("child"))
        #expect(try await dies("self"))
    }

    @Test("signals that can be ignored do not help it")
    func stubborn() async throws {
        let result = try await run(
            "trap '' TERM INT HUP; echo $$ > self; while :; do sleep 1; done", limit: .milliseconds(300))
        #expect(result.end == .timedOut)
        #expect(try await dies("self"))
    }

    @Test("a program that floods its output is killed; a flood of errors is drained and its beginning kept")
    func floods() async throws {
        #expect(
            try await run(
                "echo $$ > self; while :; do echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; done"
            ).end == .flooded)
        #expect(try await dies("self"))
        #expect(try await run("head -c 1048576 /dev/zero").output.count == 1 << 20)
        #expect(try await run("head -c 1048577 /dev/zero").end == .flooded)
        let errors = try await run("echo first >&2; head -c 5000000 /dev/zero >&2; exit 1")
        #expect(errors.end == .exited(1) && errors.errors.count == ProgramProcess.maxErrorBytes)
        #expect(text(Array(errors.errors.prefix(6))) == "first\n")
    }

    @Test("a process that is left behind: killed; an error only if it keeps the output open")
    func leftBehind() async throws {
        let quiet = try await run("sleep 1000 > /dev/null 2>&1 < /dev/null & echo $! > child; echo fine")
        #expect(quiet.end == .exited(0) && text(quiet.output) == "fine\n")
        #expect(try await dies("child"))
        let loud = try await run("sleep 1000 & echo $! > other; echo fine")
        #expect(loud.end == .heldOpen)
        #expect(try await dies("other"))
        // One that ends within a second is waited for.
        let late = try await run("(sleep 0.2; echo late) & echo early")
        #expect(late.end == .exited(0) && text(late.output) == "early\nlate\n")
    }

    @Test("a crash is told by its signal; a program that cannot be started by the reason")
    func crashes() async throws {
        #expect(try await run("kill -SEGV $$").end == .signalled(SIGSEGV))
        let script = "\(folder.path)/script"
        func failure(_ content: String, mode: Int = 0o755) async throws -> String? {
            _ = try Program.writeScript(content, to: script, mode: mode)
            let program = try MiddlewareProgram(name: "p", stage: .request, arguments: [script], directory: folder.path)
            let task = TaskContext(id: TaskID(url: "http://h/"), originalURL: try #require(URL(string: "http://h/")))
            guard
                case .broken(let text, _) = try await ProgramHost.shared.ask(
                    program, ProgramQuestion(.complete, nil, task))
            else {
                return nil
            }
            return text
        }
        #expect(try await failure("#!/bin/sh\n") == nil)
        #expect(
            try await failure("#!/no/such\n")
                == "did not run: the interpreter in the first line of \(script) is missing")
        #expect(
            try await failure("no program")
                == "did not run: \(script) is neither a program nor a script with an interpreter in its first line (#!)"
        )
        do {
            #expect(
                try await failure("#!/bin/sh\n", mode: 0o644)
                    == "did not run: \(script) is not executable; run: chmod +x \(script)")
        }
        try FileManager.default.removeItem(atPath: script)
        let missing = try MiddlewareProgram(name: "p", stage: .request, arguments: [script], directory: "/")
        #expect { _ = try missing.locate() } throws: {
            ($0 as? DownloadError)?.message == "there is no program \(script)"
        }
        let unknown = try MiddlewareProgram(
            name: "p", stage: .request, arguments: ["no-such-program-7"], directory: "/")
        #expect {
            _ = try unknown.locate()
        } throws: {
            ($0 as? DownloadError)?.message.hasPrefix("there is no program no-such-program-7 in the folders of PATH")
                == true
        }
        let gone = try await ProgramHost.shared.run {
            ProgramCall(
                path: "/bin/sh", arguments: ["sh"], environment: [], directory: "/no/such", input: [],
                timeLimit: .seconds(9))
        }
        #expect(gone.end == .notStarted("the folder /no/such that it runs in is missing", isRetryable: false))
    }

    @Test("a program that is open for writing is tried again: it may be in an editor's hands")
    func busy() async throws {
        let script = try Program.writeScript("#!/bin/sh\n", to: folder.file("script").path)
        let path = folder.path
        func end() async throws -> ProgramResult.End {
            try await ProgramHost.shared.run {
                ProgramCall(
                    path: script, arguments: [script], environment: [], directory: path, input: [],
                    timeLimit: .seconds(60))
            }.end
        }
        let writer = try FileHandle(forWritingTo: folder.file("script"))
        #expect(
            try await end() == .notStarted("\(script) is open for writing, so it cannot be run now", isRetryable: true))
        try writer.close()
        #expect(try await eventually { try await end() == .exited(0) ? true : nil } == true)
    }

    @Test("no more programs at once than slots; callers that wait are served in order, and may be cancelled")
    func slots() async throws {
        let host = ProgramHost(slots: 3)
        let path = folder.path
        let counting = "mkdir at.$$; ls -d at.* | wc -l; sleep 0.05; rmdir at.$$"
        let most = try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<24 {
                group.addTask {
                    let result = try await host.run {
                        ProgramCall(
                            path: "/bin/sh", arguments: ["sh", "-c", counting],
                            environment: ["PATH=/usr/bin:/bin"], directory: path, input: [], timeLimit: .seconds(60))
                    }
                    let text = String(decoding: result.output, as: UTF8.self)
                    return Int(text.trimmingCharacters(in: .whitespacesAndNewlines)) ?? 99
                }
            }
            return try await group.reduce(0, max)
        }
        #expect((1...3).contains(most))

        let slots = ProgramSlots(1)
        try await slots.acquire()
        let order = Observed<[Int]>([])
        let waiting = (0..<3).map { number in
            Task {
                try await slots.acquire()
                order.update { $0.append(number) }
                slots.release()
            }
        }
        waiting[1].cancel()
        await #expect(throws: CancellationError.self) { try await waiting[1].value }
        slots.release()
        _ = await order.wait { $0.count >= 2 }
        #expect(Set(order.value) == [0, 2])
        try await slots.acquire()
        slots.release()
    }

    @Test("a cancelled caller: the program and its children are killed at once, and the slot is free again")
    func cancelled() async throws {
        let host = ProgramHost(slots: 1)
        let task = Task { try await run("echo $$ > self; sleep 1000 & echo $! > child; wait", on: host) }
        _ = try await eventually {
            (try? String(contentsOfFile: "\(folder.path)/child", encoding: .utf8))?.hasSuffix("\n") == true ? true : nil
        }
        task.cancel()
        await #expect(throws: CancellationError.self) { _ = try await task.value }
        #expect(try await dies("self"))
        #expect(try await dies("child"))
        #expect(try await run("exit 0", on: host).end == .exited(0))
    }

    #if os(Linux)
        @Test("300 runs leave no descriptor and no zombie")
        func leaks() async throws {
            func children() -> Int {
                let pid = "\(getpid())"
                return (try? FileManager.default.contentsOfDirectory(atPath: "/proc"))?.count { name in
                    guard let status = try? String(contentsOfFile: "/proc/\(name)/stat", encoding: .utf8),
                        let fields = status.split(separator: ")").last?.split(separator: " "), fields.count > 1
                    else { return false }
                    return fields[0] == "Z" && fields[1] == pid
                } ?? 0
            }
            let host = ProgramHost(slots: 8)
            let before = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<300 {
                    group.addTask {
                        let script = ["exit 0", "sleep 1000", "kill -9 $$"][number % 3]
                        _ = try await run(script, limit: .milliseconds(200), on: host)
                    }
                }
                try await group.waitForAll()
            }
            // Other tests run at the same time: their zombies are reaped, too.
            #expect(try await eventually { children() == 0 ? true : nil } == true)
            let isClean = try await eventually {
                try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count < before + 250 ? true : nil
            }
            #expect(isClean == true)
        }
    #endif
}
