import TestSupport
import Testing

@testable import fk

/// A file goes to the place that was named, or nowhere.
@Suite("Places")
final class PlaceTests: ServedSuite {

    override init() throws {
        try super.init()
        server.routeOthers { .ok(Array($0.target.utf8)) }
    }

    /// Runs a line of `sh`, in which `$FK` is the program, in the folder for files.
    private func shell(_ line: String, _ environment: [String: String] = [:]) async throws -> FKProgram.Output {
        let own = [
            "FK": FKProgram.path, "FK_WORK_PATH": sandbox.workPath, "URL": server.url("/f"), "LC_ALL": "C.UTF-8",
        ]
        return try await FKProgram.run(
            "/bin/sh", ["-c", line], environment: own.merging(environment) { $1 }, folder: sandbox.files)
    }

    /// Every file that is not in the work path. A folder whose name is not UTF-8 cannot be looked at by its text.
    private func files() -> [String] {
        let all = FileManager.default.enumerator(atPath: sandbox.folder.path)?.allObjects as? [String] ?? []
        return all.filter { name in
            var isFolder: ObjCBool = false
            let path = "\(sandbox.folder.path)/\(name)"
            let isThere = FileManager.default.fileExists(atPath: path, isDirectory: &isFolder)
            return isThere && !isFolder.boolValue && !name.hasPrefix("work/")
        }
    }

    @Test("a symbolic link does not lead a list's name out of the folder", arguments: ["get", "import"])
    func link(command: String) async throws {
        let outside = "\(sandbox.folder.path)/outside"
        try FileManager.default.createDirectory(atPath: outside, withIntermediateDirectories: false)
        try FileManager.default.createSymbolicLink(atPath: "\(sandbox.files)/link", withDestinationPath: outside)
        let words = command == "get" ? ["get", "-i", "-"] : ["barrel", "import", "b", "-"]
        let list = "\(server.url("/a"))\n  out=link/x\n"
        let result = try await sandbox.start(words, input: list).end()
        #expect(
            result.status == 2 && result.errors.contains("standard input:1: 'link/x' leads out"), "\(result.errors)")
        #expect(server.requests.isEmpty)
    }

    #if os(Linux)
        @Test(
            "a name that is not UTF-8 is refused, and nothing is made in its place",
            arguments: [
                "$FK get $URL -d \"$N\"", "$FK get $URL -d$N", "$FK get $URL --directory=$N/sub",
                "$FK get $URL -o $N/x",
                "$FK get $URL -o $N", "$FK get -i $N/list", "cd $N && $FK get $URL", "cd $N && $FK get $URL -d sub",
                "cd $N && $FK barrel import b ../list", "ln -s $N link && $FK get $URL -d link",
                "ln -s $N link && $FK get $URL -d link/sub", "printf \"$URL\\n dir=$N\\n\" | $FK get -i -",
                "printf \"$URL\\n out=$N\\n\" | $FK get -i -", "$FK config set directory $N", "$FK barrel create $N",
                "FK_WORK_PATH=$PWD/$N $FK get $URL", "FK_WORK_PATH= XDG_STATE_HOME=$PWD/$N $FK get $URL",
                "FK_WORK_PATH= HOME=$PWD/$N $FK get $URL", "$FK --work-path $N get $URL", "$FK list --work-path=$N",
                "TMPDIR=$PWD/$N $FK demo", "$FK get $URL -H \"X: $N\"",
            ])
        func notText(line: String) async throws {
            try sandbox.put("\(server.url("/f"))\n", "list")
            let before = try await shell("N=$(printf 'alt\\374'); mkdir \"$N\"; { ls; ls alt*; } | od -c").output
            let result = try await shell("N=$(printf 'alt\\374'); \(line)")
            #expect(result.status == 2, "\(result.errors)")
            #expect(result.errors.contains("UTF-8"), "\(result.errors)")
            #expect(server.requests.isEmpty)
            #expect(files() == ["files/list"])
            #expect(try await shell("rm -f link; { ls; ls alt*; } | od -c").output == before)
        }

        @Test("settings that are not UTF-8 are refused")
        func settings() async throws {
            let line =
                "$FK config set jobs 2; printf 'directory = /tmp/alt\\374\\n' >> $FK_WORK_PATH/config; $FK get $URL"
            let result = try await shell(line)
            #expect(result.status == 3 && result.errors.contains("settings cannot be read"), "\(result.errors)")
            #expect(server.requests.isEmpty)
        }

        @Test("in a folder whose name is not UTF-8, what needs no current folder works")
        func absolute() async throws {
            let result = try await shell(
                "N=$(printf 'alt\\374'); mkdir $N; cd $N && $FK get $URL -d \(sandbox.files) && $FK list && $FK help")
            #expect(result.status == 0, "\(result.errors)")
            #expect(files() == ["files/f"])
        }
    #endif

    @Test("a setting keeps every character of a folder's name")
    func settingText() throws {
        for name in ["a\u{a0}", "\u{2028}b", "c\u{85}d", "caf\u{e9}", "cafe\u{301}", "\u{301}x"] {
            let line = "directory = /x/\(name)\n"
            let directory = Settings.parse(line)["directory"]
            #expect(directory?.isExactly("/x/\(name)") == true)
        }
    }

    @Test("an option's value keeps its bytes, also behind an equals sign that carries a mark")
    func optionText() throws {
        for words in [["--directory=\u{301}x"], ["-d\u{301}x"], ["-d=\u{301}x"], ["-d", "\u{301}x"]] {
            let result = try CommandTable.parser.parse(["get", "http://h/a"] + words)
            guard case .command(_, let arguments) = result else {
                Issue.record("not a command")
                continue
            }
            #expect(arguments["directory"]?.isExactly("\u{301}x") == true, "\(words)")
        }
    }

    @Test("the folder of the demo is new, has an unforeseeable name, and is nobody else's to enter")
    func scratch() throws {
        let context = CommandContext(environment: ["TMPDIR": sandbox.files], workingDirectory: "/")
        let first = try ScratchFolder.make("fk-demo", context)
        let second = try ScratchFolder.make("fk-demo", context)
        let base = try Paths.absolute(sandbox.files, from: "/")
        #expect(first != second && first.hasPrefix("\(base)/fk-demo-"))
        for path in [first, second] {
            let attributes = try FileManager.default.attributesOfItem(atPath: path)
            #expect(attributes[.posixPermissions] as? Int == 0o700)
            #expect(!path.hasSuffix("-\(getpid())"))
        }
        #expect(throws: (any Error).self) {
            let missing = "\(sandbox.files)/missing"
            _ = try ScratchFolder.make(
                "x", CommandContext(environment: ["TMPDIR": missing], workingDirectory: "/"))
        }
    }
}
