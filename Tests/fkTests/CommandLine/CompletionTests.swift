import TestSupport
import Testing

@testable import fk

/// The completion scripts in real shells. `fk` is a function there that prints its arguments.
@Suite("Completions in real shells") struct CompletionTests {
    /// Names that a shell could take for something else, and the beginnings that are typed.
    static let names = [
        "plain", "my b'ar", "sub$(touch pwned)", "tick`touch pwned`", "a:b@c=d", "semi;touch pwned", "q\"uote", "star*",
        "été",
    ]

    private let sandbox: Sandbox
    private let folder: TemporaryFolder

    init() async throws {
        sandbox = try Sandbox()
        folder = try TemporaryFolder()
        for name in Self.names { #expect(try await sandbox.fk("barrel", "create", name).status == 0) }
        try FileManager.default.createSymbolicLink(atPath: "\(folder.path)/fk", withDestinationPath: FKProgram.path)
    }

    private var environment: [String: String] {
        [
            "PATH": "\(folder.path):/usr/bin:/bin", "FK_WORK_PATH": sandbox.workPath, "TERM": "xterm",
            "LC_ALL": "C.UTF-8", "HOME": folder.path, "INPUTRC": "/dev/null",
        ]
    }

    /// Runs bash on a terminal and types lines, each once the one before has been answered.
    ///
    /// - Returns: the arguments that `fk` got, a line each, as `<one><two>`.
    private func bash(_ lines: [String]) throws -> [String] {
        let start = try folder.write(
            """
            cd \(sandbox.files)
            PS1='ready> '
            bind 'set bell-style none'; bind 'set enable-bracketed-paste off'
            source <(fk completions bash)
            fk() { printf '<%s>' "$@" >> \(folder.path)/args; echo >> \(folder.path)/args; }
            """, "rc")
        let result = try type(lines, to: "/bin/bash", ["--noprofile", "--rcfile", start, "-i"])
        #expect(result.status == 0, "\(result.raw)")
        #expect(!FileManager.default.fileExists(atPath: "\(sandbox.files)/pwned"), "\(result.raw)")
        return calls
    }

    /// What `fk` was called with so far, a line each.
    private var calls: [String] { ((try? folder.text("args")) ?? "").split(separator: "\n").map(String.init) }

    /// Types lines to a shell, each once the command of the one before was called.
    private func type(_ lines: [String], to shell: String, _ words: [String]) throws -> PseudoTerminal.Output {
        let terminal = try PseudoTerminal(columns: 200, rows: 50)
        var typed = 0
        let all = lines + ["exit 0\n"]
        return try terminal.run(shell, words, environment: environment.merging(["ZDOTDIR": folder.path]) { $1 }) {
            text in
            guard typed < all.count, text.contains("ready> "), calls.count >= typed else { return }
            terminal.type(all[typed])
            typed += 1
        }
    }

    private static let hasBash = FileManager.default.isExecutableFile(atPath: "/bin/bash")

    @Test(
        "bash: a barrel's name is completed and quoted, whatever is in it", .needsPseudoTerminal,
        .enabled(if: hasBash, "needs bash"))
    func bashNames() throws {
        let lines = [
            "fk barrel show pl\t\n", "fk barrel show my\t\n", "fk barrel show my\\ \t\n", "fk barrel show sub\t\n",
            "fk barrel show ti\t\n", "fk barrel show a:\t\n", "fk barrel show a:b@c\t\n", "fk barrel show semi\t\n",
            "fk list -b q\t\n", "fk list --barrel=st\t\n", "fk --json barrel run plain ét\t\n",
            "fk barrel show \"sub\t\n",
        ]
        let got = try bash(lines)
        #expect(
            got == [
                "<barrel><show><plain>", "<barrel><show><my b'ar>", "<barrel><show><my b'ar>",
                "<barrel><show><sub$(touch pwned)>", "<barrel><show><tick`touch pwned`>", "<barrel><show><a:b@c=d>",
                "<barrel><show><a:b@c=d>", "<barrel><show><semi;touch pwned>", "<list><-b><q\"uote>",
                "<list><--barrel=star*>", "<--json><barrel><run><plain><été>", "<barrel><show><sub$(touch pwned)>",
            ])
    }

    @Test("bash: commands, aliases, options, states and ids", .needsPseudoTerminal, .enabled(if: hasBash, "needs bash"))
    func bashWords() async throws {
        try await sandbox.done("barrel", "add", "plain", "http://h.invalid/big%20file.iso")
        let id = try #require(sandbox.reader.records().first).id
        let got = try bash([
            "fk vers\t\n", "fk forg\t --st\t fai\t\n", "fk rm --state=com\t\n", "fk info \(id.hex.prefix(6))\t\n",
            "fk why \t\n", "fk why big\t\n", "fk get --colo\talw\t\n", "fk resume big\t\n",
            "fk suspend big\tbig\t\n", "fk barrel export plain --format sha\t\n", "fk get --format sha\t\n",
            "fk barrel missing pl\t\n", "fk help barrel sho\t\n", "fk barrel show -- --js\t\n",
            "fk completions ta\t\n",
        ])
        #expect(
            got == [
                "<vers>", "<forget><--state><failed>", "<rm><--state=complete>", "<info><\(id.short)>",
                "<why><big file.iso>", "<why><big file.iso>", "<get><--color><always>",
                "<resume><big>", "<suspend><big file.iso><big>", "<barrel><export><plain><--format><sha256sums>",
                "<get><--format><sha>", "<barrel><missing><plain>", "<help><barrel><show>",
                "<barrel><show><--><--js>", "<completions><ta>",
            ])
    }

    @Test("fk prints the words for the scripts") func words() async throws {
        #expect(try await sandbox.fk("barrel", "add", "plain", "http://h.invalid/a\u{1b}.bin").status == 2)
        try await sandbox.done("barrel", "add", "plain", "http://h.invalid/a.bin")
        let names = try await sandbox.fk("completions", "barrels").output.split(separator: "\n").map(String.init)
        #expect(Set(names) == Set(Self.names))
        let id = try #require(sandbox.reader.records().first).id
        #expect(try await sandbox.fk("completions", "tasks").output == "a.bin\twaiting \(id.short)\n")
        #expect(try await sandbox.fk("completions", "ids").output == "\(id.short)\twaiting a.bin\n")
        for (verb, isOffered) in [
            ("suspend", true), ("cancel", true), ("resume", false), ("retry", false), ("verify", false),
            ("forget", true),
            ("why", true),
        ] {
            let words = try await sandbox.fk("completions", "tasks", verb).output
            #expect(words == (isOffered ? "a.bin\twaiting \(id.short)\n" : ""), "\(verb)")
        }
        let none = try await sandbox.fk("completions", "barrels", "--work-path", "nowhere")
        #expect(none.status == 0 && none.output == "" && none.errors == "")
    }

    private static let hasZsh = FileManager.default.isExecutableFile(atPath: "/usr/bin/zsh")

    @Test("zsh: a barrel's name is completed and quoted", .needsPseudoTerminal, .enabled(if: hasZsh, "needs zsh"))
    func zshNames() async throws {
        _ = try folder.write(
            """
            cd \(sandbox.files)
            PS1='ready> '; unsetopt zle_bracketed_paste beep 2> /dev/null; unset zle_bracketed_paste
            autoload -Uz compinit; compinit -u -D
            source <(fk completions zsh)
            fk() { printf '<%s>' "$@" >> \(folder.path)/args; echo >> \(folder.path)/args }
            """, ".zshrc")
        let lines = [
            "fk barrel show pl\t\n", "fk barrel show my\t\n", "fk barrel show sub\t\n", "fk barrel show a:b\t\n",
            "fk list --barrel=st\t\n", "fk rm --state com\t\n", "fk why big\t\n",
        ]
        #expect(try await sandbox.fk("barrel", "add", "plain", "http://h.invalid/big%20file.iso").status == 0)
        let result = try type(lines, to: "/usr/bin/zsh", ["-i"])
        #expect(!FileManager.default.fileExists(atPath: "\(sandbox.files)/pwned"), "\(result.raw)")
        #expect(
            calls == [
                "<barrel><show><plain>", "<barrel><show><my b'ar>", "<barrel><show><sub$(touch pwned)>",
                "<barrel><show><a:b@c=d>", "<list><--barrel=star*>", "<rm><--state><complete>", "<why><big file.iso>",
            ], "\(result.raw.suffix(2_000))")
    }

    private static let hasFish = FileManager.default.isExecutableFile(atPath: "/usr/bin/fish")

    @Test("fish: names, states and ids are offered", .enabled(if: hasFish, "needs fish"))
    func fishWords() async throws {
        try await sandbox.done("barrel", "add", "plain", "http://h.invalid/a.bin")
        let script = try folder.write(try await sandbox.fk("completions", "fish").output, "fk.fish")
        func offered(_ line: String) async throws -> [String] {
            let command = "source \(script); complete -C \"\(line)\""
            let result = try await FKProgram.run("/usr/bin/fish", ["-c", command], environment: environment)
            #expect(result.errors == "", "\(result.errors)")
            return result.output.split(separator: "\n").map { String($0.split(separator: "\t")[0]) }
        }
        #expect(try await offered("fk barrel show my") == ["my b'ar"])
        #expect(try await Set(offered("fk barrel show ")) == Set(Self.names))
        #expect(try await offered("fk list -b pl") == ["plain"])
        #expect(try await offered("fk rm --state com") == ["complete"])
        let id = try #require(sandbox.reader.records().first).id
        #expect(try await offered("fk info \(id.hex.prefix(4))") == [id.short])
        #expect(try await offered("fk why a.") == ["a.bin"])
    }
}
