import TestSupport
import Testing

@testable import fk

@Suite("Input lists") struct ListInputTests {
    private let folder: TemporaryFolder
    private let errors: String

    init() throws {
        folder = try TemporaryFolder()
        errors = "\(folder.path)/errors"
    }

    private func read(_ text: String, _ words: [String] = []) throws -> ListedTasks {
        let path = try folder.write(text, "list")
        var arguments = ParsedArguments(command: ["get"])
        if let option = words.first { arguments.append(words.dropFirst().first ?? "", to: option) }
        var context = CommandContext(environment: [:], workingDirectory: folder.path)
        let handle = try folder.fileHandle("errors")
        defer { withExtendedLifetime(handle) {} }
        context.errors = OutputStream(handle.fileDescriptor)
        return try ListedTasks(
            ListInput(path, arguments), ListedTasks.Settings(folder: folder.path), context)
    }

    private func parse(_ text: String) throws -> [TaskDescription] { try read(text).tasks }

    private func fault(_ text: String) -> String {
        do {
            _ = try parse(text)
            return ""
        } catch {
            return "\(error)".replacing("\(folder.path)/", with: "")
        }
    }

    @Test("aria2's indented options belong to the URL above") func options() throws {
        let hex = String(repeating: "0f", count: 20)
        let entries = try parse(
            "http://h/a\n\tout=a b.iso\n  dir = /data/ü \n checksum=sha-1=\(hex)\n  header=X-A: 1\n  header=X-B: 2\nhttp://h/b"
        )
        #expect(entries[0].fileName == "a b.iso")
        #expect(entries[0].directory == "/data/ü")
        #expect(entries[0].options.checksum?.hex == hex)
        #expect(entries[0].options.headers == [.init("X-A", "1"), .init("X-B", "2")])
        #expect(entries[1].fileName == nil && entries[1].options.checksum == nil)
    }

    @Test("aria2's options that mean something act on the task; the others are named once") func otherOptions() throws {
        let list = "http://h/a\n  split=4\n  seed-time=1\n  referer=http://r/\nhttp://h/b\n  seed-time=2\n  gid=0f\n"
        let options = try parse(list)[0].options
        #expect(options.connections == .fixed(4))
        #expect(options.headers == [.init("Referer", "http://r/")])
        #expect(options.secretHeaders == ["referer"])
        let warning = try String(contentsOfFile: errors, encoding: .utf8)
        #expect(warning.hasSuffix("/list: options without a meaning here are ignored: seed-time.\n"))
    }

    @Test(
        "Faults name the source, the line and the reason",
        arguments: [
            ("http://h/a\nnonsense\n", "list:2: 'nonsense' is no URL: it has no scheme"),
            ("http:/h/a\n", "list:1: 'http:/h/a' does not begin with http://"),
            ("ftp://h/a", "list:1: 'ftp://h/a': scheme 'ftp'"),
            ("http://h/a\thttp:///x", "list:1: 'http:///x' has no host"),
            ("\n  out=x", "list:2: an option stands before"),
            ("http://h/a\n  gid2=1", "list:2: option 'gid2' is not known"),
            ("http://h/a\n  split=x", "list:2: option 'split': 'x' cannot be used"),
            ("http://h/a\n  whatever", "list:2: an indented line"),
            ("http://h/a\n  out=", "list:2: out= needs"), ("http://h/a\n  dir=", "list:2: dir= needs"),
            ("http://h/a\n  checksum=md5=12", "list:2: A md5 digest has 32"),
            ("http://h/a\n header=Range: x", "list:2: header 'Range'"),
            ("http://h/a\u{1b}[2J", "list:1: 'http://h/a\\e[2J' holds a control character"),
        ])
    func faults(text: String, start: String) {
        #expect(fault(text).hasPrefix(start), "\(fault(text))")
    }

    @Test("One URL with two digests or sizes is a fault with both lines") func contradiction() throws {
        let sums = ["0", "1"].map { "http://h/a\n  checksum=md5=\(String(repeating: $0, count: 32))\n" }
        #expect(fault(sums.joined()) == "list:3: line 1 has the same URL with another md5")
        #expect(fault(sums[0] + sums[0]).isEmpty)
        let table = try read("url,size\nhttp://h/a,1\nhttp://h/a,2\n")
        #expect(table.tasks.count == 1 && table.refused == 1)
        let text = try String(contentsOfFile: errors, encoding: .utf8)
        #expect(text.contains("list:3: line 2 has the same URL with another size"), "\(text)")
    }

    @Test("The options of curl that fk has are named with fk's") func curlOptions() throws {
        _ = try read("url = http://h/a\nproxy = http://p:1\n-k\nwrite-out = x\n")
        let warning = try String(contentsOfFile: errors, encoding: .utf8)
        #expect(warning.contains("ignored in the list: proxy (--proxy), k (--insecure)."), "\(warning)")
        #expect(warning.contains("options without a meaning here are ignored: write-out."), "\(warning)")
    }

    @Test("Bytes that are not UTF-8 are refused by line") func notUTF8() throws {
        let path = "\(folder.path)/bytes"
        try Data(Array("http://h/a\nhttp://h/".utf8) + [0xff, 0x0a]).write(to: URL(fileURLWithPath: path))
        #expect(throws: ListInput.Fault(source: path, line: 2, reason: "the line is not UTF-8 text")) {
            try ListInput(path).read(in: folder.path) { _, _ in }
        }
    }

    @Test("A missing file is a fault of the whole list, and a folder without bagit.txt is no bag") func unreadable() {
        #expect(throws: ListInput.Fault.self) { try ListInput("/nowhere/at/all").read(in: "/") { _, _ in } }
        #expect(
            throws: ListInput.Fault(
                source: folder.path, line: 0, reason: "a folder is a list only if it is a bag, and bagit.txt is missing"
            )
        ) {
            try ListInput(folder.path).read(in: "/") { _, _ in }
        }
    }

    // MARK: Forms

    private static let digest = String(repeating: "0f", count: 32)

    @Test("A Metalink: mirrors by priority, size, digest, subfolder, signature; a bad file is left out") func metalink()
        throws
    {
        let list = try read(
            """
            <?xml version="1.0"?>
            <metalink xmlns="urn:ietf:params:xml:ns:metalink">
            <file name="sub/a.bin"><size>12</size><hash type="sha-256">\(Self.digest)</hash><hash type="md5">\(String(repeating: "1", count: 32))</hash>
            <url priority="2">http://b/a</url><url priority="1" location="de">http://a/a</url><url>ftp://c/a</url>
            <signature mediatype="application/pgp-signature">SIG</signature></file>
            <file name="../b"><url>http://a/b</url></file>
            </metalink>
            """)
        #expect(list.tasks.count == 1 && list.refused == 1)
        let task = try #require(list.tasks.first)
        #expect(task.url == "http://a/a" && task.mirrors == ["http://b/a"])
        #expect(task.directory == "\(folder.path)/sub" && task.fileName == "a.bin")
        #expect(task.options.size == 12 && task.options.checksum?.description == "sha-256=\(Self.digest)")
        #expect(task.attributes == ["signature": "SIG", "signature-type": "application/pgp-signature"])
        let text = try String(contentsOfFile: errors, encoding: .utf8)
        #expect(text.contains("/list:6:") && text.contains("'../b': its name has '..'"))
        #expect(text.contains("not supported and left out: 1 ftp"))
    }

    @Test("--format insists, --skip-bad takes the good lines") func insisting() throws {
        #expect(throws: ListInput.Fault.self) { try read("http://h/a\n", ["format", "checksums"]) }
        let list = try read("http://h/a\nnonsense\nhttp://h/b\n", ["skip-bad"])
        #expect(list.tasks.map(\.url) == ["http://h/a", "http://h/b"] && list.refused == 1)
        #expect(try String(contentsOfFile: errors, encoding: .utf8).contains("/list:2: 'nonsense'"))
    }

    @Test("A JSON list restores folder and name and does not bind the length; a lock is relative and binds")
    func ours() throws {
        let json = try read(#"[{"url":"http://h/a","directory":"/elsewhere","fileName":"n","expected":3}]"#)
        #expect(json.tasks[0].directory == "/elsewhere" && json.tasks[0].fileName == "n")
        #expect(json.tasks[0].options == TaskOptions())
        let lock = try read(
            #"{"fk-lock":1,"barrel":"b","origin":"hf:o/r","commit":"c"}"# + "\n"
                + #"{"name":"d/a","size":3,"sha-256":"\#(Self.digest)","url":"http://h/a"}"# + "\n")
        #expect(lock.tasks[0].directory == "\(folder.path)/d" && lock.tasks[0].options.size == 3)
        #expect(lock.manifest?.facts.origin == "hf:o/r")
    }

    @Test("The folder of a bag, or one of its files, is the bag; its own files are not fetched") func bag() throws {
        let bag = "\(folder.path)/bag"
        try FileManager.default.createDirectory(atPath: "\(bag)/data", withIntermediateDirectories: true)
        for (name, text) in [
            ("bagit.txt", "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"), ("data/own.txt", "x"),
            ("manifest-sha256.txt", "\(Self.digest)  data/own.txt\n\(Self.digest)  data/sub/far.bin\n"),
            ("fetch.txt", "http://h/far 5 data/sub/far.bin\n"),
        ] { try text.write(toFile: "\(bag)/\(name)", atomically: false, encoding: .utf8) }
        for path in [bag, "\(bag)/fetch.txt", "\(bag)/bagit.txt"] {
            let context = CommandContext(environment: [:], workingDirectory: folder.path)
            let list = try ListedTasks(ListInput(path), .init(folder: folder.path), context)
            #expect(list.tasks.map(\.url) == ["http://h/far"] && list.folder == bag)
            #expect(list.tasks[0].directory == "\(bag)/data/sub" && list.tasks[0].options.size == 5)
            #expect(list.tasks[0].options.checksum?.hex == Self.digest)
        }
    }

    @Test("A fault of a bag has the file and the line where it stands") func bagFaults() throws {
        let bag = "\(folder.path)/bag"
        try FileManager.default.createDirectory(atPath: bag, withIntermediateDirectories: true)
        for (name, text) in [
            ("bagit.txt", "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"),
            ("manifest-sha256.txt", "\(Self.digest)  data/near.bin\n\(Self.digest)  data/far.bin\n"),
            ("fetch.txt", "# c\nftp://h/f 1 data/far.bin\n"),
        ] { try text.write(toFile: "\(bag)/\(name)", atomically: false, encoding: .utf8) }
        var context = CommandContext(environment: [:], workingDirectory: folder.path)
        let handle = try folder.fileHandle("errors")
        defer { withExtendedLifetime(handle) {} }
        context.errors = OutputStream(handle.fileDescriptor)
        #expect(throws: CommandFailure.self) {
            try ListedTasks(ListInput("\(bag)/fetch.txt"), .init(folder: folder.path), context)
        }
        let text = try String(contentsOfFile: errors, encoding: .utf8)
        #expect(text.contains("\(bag)/fetch.txt:2: 'ftp://h/f': ftp is not supported"), "\(text)")
        #expect(text.contains("\(bag)/fetch.txt: 'data/near.bin' has no address"), "\(text)")
    }

    @Test("A name may not leave the folder through a symbolic link") func link() throws {
        try FileManager.default.createSymbolicLink(
            atPath: "\(folder.path)/out", withDestinationPath: "/tmp")
        #expect(fault("http://h/a\n  out=out/x\n").contains("list:1: 'out/x' leads out of the folder"))
    }
}
