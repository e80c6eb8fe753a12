import TestSupport
import Testing

@testable import fk

@Suite("The program itself") struct ProgramTests {
    @Test("--version prints both versions and touches nothing") func version() async throws {
        let result = try await FKProgram.run(
            ["--version"], environment: ["HOME": "/nowhere", "FK_WORK_PATH": "/nowhere"])
        #expect(result.status == 0 && result.errors.isEmpty)
        let lines = result.output.split(separator: "\n")
        #expect(lines.first == "fk \(Version.text)")
        #expect(lines.count == 2)
    }

    @Test(
        "--version --json is one object",
        arguments: [["--version", "--json"], ["--json", "--version"], ["-q", "--json", "--version"]])
    func versionJSON(words: [String]) async throws {
        let result = try await FKProgram.run(words)
        let object = try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [String: String]
        #expect(object?["version"] == Version.text)
        #expect(result.status == 0)
    }

    @Test("Every command has help, reached in two ways, at most 80 columns wide") func help() async throws {
        let context = CommandContext(environment: [:], workingDirectory: "/")
        for spec in CommandTable.all {
            let text = HelpText(usesColor: false).text(spec.path)
            #expect(text.split(separator: "\n").allSatisfy { Columns.width(of: $0) < 80 }, "\(spec.name)")
            #expect(text.contains(spec.summary))
            #expect(spec.options.allSatisfy { text.contains("--\($0.long)") })
            #expect(spec.refusedOptions.allSatisfy { !text.contains("--\($0)") })
            for words in [spec.path + ["-h"], ["help"] + spec.path] {
                let command = try Dispatcher(context: context).command(words)
                #expect((command as? HelpCommand)?.topic == spec.path)
            }
        }
        for topic in [[], ["barrel"], ["config"]] {
            let text = HelpText(usesColor: false).text(topic)
            #expect(text.split(separator: "\n").allSatisfy { Columns.width(of: $0) < 80 })
        }
    }

    @Test(
        "Help on a narrow terminal: no word is divided, and only commands and names of options are longer",
        arguments: [30, 40, 60])
    func narrowHelp(width: Int) {
        for topic in CommandTable.all.map(\.path) + [[], ["barrel"], ["config"]] {
            let wide = HelpText(usesColor: false).text(topic)
            let narrow = HelpText(usesColor: false, width: width).text(topic)
            #expect(wide.split { $0 == " " || $0 == "\n" } == narrow.split { $0 == " " || $0 == "\n" }, "\(topic)")
            let long = narrow.split(separator: "\n").filter { Columns.width(of: $0) > width }
            #expect(
                long.allSatisfy { line in
                    let words = line.split(separator: " ")
                    return line.hasPrefix("  ") && (words.first?.hasPrefix("-") ?? false)
                        || line.hasPrefix("  fk ") || words.count == 1
                }, "\(topic): \(long)")
        }
    }

    @Test(
        "On a terminal help has colour and stays within 80 columns; NO_COLOR and dumb terminals get none",
        .needsPseudoTerminal)
    func helpOnTerminal() async throws {
        func run(_ environment: [String: String], _ words: [String] = ["help"]) async throws -> PseudoTerminal.Output {
            try await offPool {
                try PseudoTerminal(columns: 80, rows: 24).run(FKProgram.path, words, environment: environment)
            }
        }
        let colored = try await run(["TERM": "xterm"])
        #expect(colored.status == 0)
        #expect(colored.raw.contains("\u{1b}[1mUsage:"))
        #expect(colored.screen.contains("Usage:"))
        #expect(colored.screen.allSatisfy { Columns.width(of: $0) <= 80 })
        #expect(try await !run(["TERM": "xterm", "NO_COLOR": "1"]).raw.contains("\u{1b}"))
        #expect(try await !run(["TERM": "dumb"]).raw.contains("\u{1b}"))
        #expect(try await !run(["TERM": "xterm"], ["help", "--color", "never"]).raw.contains("\u{1b}"))
        #expect(try await run(["TERM": "xterm"], ["gte"]).raw.contains("\u{1b}[31mfk:"))
    }

    @Test("Through a pipe there is no colour unless asked for") func pipes() async throws {
        #expect(try await !FKProgram.run(["help"], environment: ["TERM": "xterm"]).output.contains("\u{1b}"))
        #expect(try await FKProgram.run(["help", "--color=always"]).output.contains("\u{1b}[1m"))
    }

    @Test("A reader that goes away is no error") func closedPipe() async throws {
        let result = try await FKProgram.run("/bin/sh", ["-c", "{ \"$0\" help; echo $? >&2; } | true", FKProgram.path])
        #expect(result.errors == "0\n")
    }

    @Test("Settings are saved, shown, and removed") func config() async throws {
        let folder = try TemporaryFolder()
        let work = "\(folder.path)/state/fk"
        func fk(_ words: String...) async throws -> FKProgram.Output {
            try await FKProgram.run(words + ["--work-path", work], folder: folder.path)
        }
        let defaults = try await fk("config", "show").output
        #expect(defaults.contains("jobs = 3 (default)\n") && defaults.contains("connections = auto (default)\n"))
        #expect(try await fk("config", "get", "jobs").output == "3\n")
        #expect(!FileManager.default.fileExists(atPath: work))
        #expect(try await fk("config", "set", "jobs", "8").status == 0)
        #expect(try await fk("config", "set", "proxy", "http://u:secret@p").status == 0)
        #expect(try await fk("config", "set", "directory", "sub").status == 0)
        let shown = try await fk("config", "show").output
        for line in [
            "jobs = 8 (default: 3)", "directory = \(folder.path)/sub (", "proxy = http://***@p (",
            "retry = 4 (default)",
        ] {
            #expect(shown.contains(line), "\(shown)")
        }
        #expect(try await fk("config", "get", "jobs").output == "8\n")
        #expect(try await fk("config", "unset", "jobs").status == 0)
        #expect(try await fk("config", "get", "jobs").output == "3\n")
        #expect(try await fk("config", "get", "nothing").status == 2)
        let json =
            try await JSONSerialization.jsonObject(with: Data(fk("config", "show", "--json").output.utf8))
            as? [String: Any]
        #expect(json?["jobs"] is NSNull)
        #expect(try await fk("config", "path").output == "\(work)/config\n")
        let mode = try FileManager.default.attributesOfItem(atPath: work)[.posixPermissions] as? Int
        #expect(mode == 0o700)
    }
}

@Suite("Completions") struct CompletionScriptTests {
    private static func shell(_ name: String) -> String? {
        ["/bin", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"].map { "\($0)/\(name)" }
            .first { FileManager.default.isExecutableFile(atPath: $0) }
    }

    @Test("Scripts are valid in the shells that are here", arguments: Shell.allCases) func syntax(shell: Shell)
        async throws
    {
        guard let program = Self.shell(shell.rawValue) else { return }
        let folder = try TemporaryFolder()
        let path = try folder.write(CommandTable.completions.script(shell), "script")
        let result = try await FKProgram.run(program, ["-n", path])
        #expect(result.status == 0, "\(result.errors)")
    }

    @Test(
        "bash completes commands, options and values",
        arguments: [
            (["fk", "b"], "barrel"), (["fk", "barrel", "c"], "create cancel"),
            (["fk", "get", "--limit"], "--limit-rate"),
            (["fk", "--work-path", "list", "barrel", "sh"], "show"), (["fk", "list", "--state", "sus"], "suspended"),
            (["fk", "--color", "=", "al"], "always"), (["fk", "completions", "z"], "zsh"),
            (["fk", "get", "-d", "/us"], "/usr"), (["fk", "config", "set", "dur"], "durability"),
        ])
    func bash(words: [String], expected: String) async throws {
        guard let program = Self.shell("bash") else { return }
        let folder = try TemporaryFolder()
        let script = try folder.write(
            CommandTable.completions.script(.bash)
                + "COMP_WORDS=(\"$@\"); COMP_CWORD=$(($#-1)); COMP_LINE=\"$*\"; COMP_LINE=\"${COMP_LINE/ = /=}\"; "
                + "COMP_POINT=${#COMP_LINE}; COMP_WORDBREAKS=$' \\t\\n\"\\'><=;|&(:'; _fk; echo \"${COMPREPLY[*]}\"\n",
            "script")
        let result = try await FKProgram.run(program, ["--norc", script] + words)
        #expect(result.output == expected + "\n", "\(result.errors)")
    }
}

@Suite("Signals", .serialized) struct SignalTests {
    @Test("A signal becomes one call on an ordinary thread") func callback() async {
        let number = await withCheckedContinuation { continuation in
            let trap = SignalTrap([SIGUSR2]) { continuation.resume(returning: $0) }
            withExtendedLifetime(trap) { _ = kill(getpid(), SIGUSR2) }
        }
        #expect(number == SIGUSR2)
        signal(SIGUSR2, SIG_DFL)
    }

    @Test(
        "timeout signals the process and its group: the same signal at once is no second one",
        arguments: [(0, false), (1_000, false), (99_999_999, false), (100_000_000, true), (5_000_000_000, true)]
            as [(Int64, Bool)])
    func another(after: Int64, isAnother: Bool) {
        #expect(SignalTrap.isAnother(first: 7, now: 7 + after) == isAnother)
    }
}
