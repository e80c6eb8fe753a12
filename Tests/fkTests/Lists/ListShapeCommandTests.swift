import Foundation
import TestSupport
import Testing

@testable import fk

/// Lists of other programs at the command line: compressed, at a URL, with the owner's columns, and again with other contents.
@Suite("Lists as people have them, end to end") final class ListShapeCommandTests: ServedSuite {
    private func serve(_ name: String, _ text: String) -> String {
        let body = Array(text.utf8)
        server.serve("/\(name)", body)
        return "\(Bytes.sha256(body))  \(name)\n"
    }

    @Test("A changed list takes new digests and lines, and names members that went", arguments: ["import", "get"])
    func again(way: String) async throws {
        let (a, c) = (serve("a.bin", "one"), serve("c.bin", "three"))
        try sandbox.put(a + serve("b.bin", "two") + c, "SUMS")
        let base = ["--base", server.url("/")]
        let take =
            way == "import"
            ? ["barrel", "import", "set", "SUMS", "-d", "got"] + base : ["get", "-q", "-i", "SUMS", "-d", "got"] + base
        try await sandbox.done(take)
        if way == "import" { try await sandbox.done("barrel", "run", "set", "-q") }
        #expect(try sandbox.bytes("got/b.bin") == Array("two".utf8))

        let b = serve("b.bin", "two, and more")
        try sandbox.put(a + b + serve("d.bin", "four"), "SUMS")
        let result = try await sandbox.fk(take)
        #expect(result.status == 0, "\(result)")
        if way == "import" {
            #expect(result.output.contains("1 added, 1 changed, 1 known already"), "\(result)")
            #expect(
                result.errors.contains("1 member of the barrel is not in the list any more, and stays: c.bin"),
                "\(result)")
            // The old file stays until the new one is whole.
            #expect(try sandbox.bytes("got/b.bin") == Array("two".utf8))
            try await sandbox.done("barrel", "run", "set", "-q")
        }
        #expect(try sandbox.bytes("got/b.bin") == Array("two, and more".utf8))
        #expect(try sandbox.bytes("got/d.bin") == Array("four".utf8))
        #expect(try sandbox.bytes("got/c.bin") == Array("three".utf8))
        let same = try await sandbox.fk(take)
        #expect(same.status == 0 && !same.output.contains("changed"), "\(same)")
    }

    @Test("The digest of a command, and that of another list, is not replaced by a list") func otherList() async throws
    {
        let line = serve("a.bin", "one")
        let digest = String(line.prefix(64))
        try await sandbox.done("get", "-q", "--checksum", digest, server.url("/a.bin"), "-d", "got")
        try sandbox.put(line.replacing(digest, with: Bytes.sha256(Array("other".utf8))), "SUMS")
        let result = try await sandbox.fk("get", "-q", "-i", "SUMS", "--base", server.url("/"), "-d", "got")
        #expect(result.status == 1, "\(result)")
        #expect(try sandbox.bytes("got/a.bin") == Array("one".utf8))
    }

    @Test("A list at a URL is read by get -i, into a folder of its own, and again when it has changed") func url()
        async throws
    {
        _ = serve("lists/SUMS", serve("lists/a.bin", "one").replacing("lists/", with: ""))
        let result = try await sandbox.fk("get", "-q", "-i", server.url("/lists/SUMS"))
        #expect(result.status == 0, "\(result)")
        #expect(try sandbox.bytes("SUMS/a.bin") == Array("one".utf8))
        _ = serve("lists/SUMS", serve("lists/a.bin", "another").replacing("lists/", with: ""))
        try await sandbox.done("get", "-q", "-i", server.url("/lists/SUMS"))
        #expect(try sandbox.bytes("SUMS/a.bin") == Array("another".utf8))
        let table = serve("t.csv", "id,label\n1,x\n").isEmpty
        #expect(!table)
        _ = serve("data/1", "data")
        try await sandbox.done(
            "get", "-q", "-i", server.url("/t.csv"), "--url-template", server.url("/data/") + "{id}", "--column",
            "name=label", "-d", "t")
        #expect(try sandbox.bytes("t/x") == Array("data".utf8))
    }

    @Test("Compressed lists are unpacked, from files, pipes and servers", arguments: ["gzip", "xz", "zstd"])
    func compressed(program: String) async throws {
        guard let packed = try Self.pack(Array("\(serve("a.bin", "one"))".utf8), program) else { return }
        let suffix = ["gzip": "gz", "xz": "xz", "zstd": "zst"][program] ?? ""
        try Data(packed).write(to: URL(fileURLWithPath: "\(sandbox.files)/SUMS.\(suffix)"))
        let base = ["--base", server.url("/")]
        try await sandbox.done(["get", "-q", "-i", "SUMS.\(suffix)", "-d", "one"] + base)
        #expect(try sandbox.bytes("one/a.bin") == Array("one".utf8))
        server.serve("/SUMS.\(suffix)", packed)
        let result = try await sandbox.fk("barrel", "import", "set", server.url("/SUMS.\(suffix)"))
        #expect(result.status == 0 && result.errors.contains("was unpacked with \(program)"), "\(result)")
        try Data(packed.dropLast(6)).write(to: URL(fileURLWithPath: "\(sandbox.files)/cut.\(suffix)"))
        let cut = try await sandbox.fk(["get", "-i", "cut.\(suffix)"] + base)
        #expect(cut.status == 2 && cut.errors.contains("damaged or not whole"), "\(cut)")
    }

    /// Packs bytes with a program; nil if it is not installed.
    private static func pack(_ bytes: [UInt8], _ program: String) throws -> [UInt8]? {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = [program, "-c"]
        let (input, output) = (Pipe(), Pipe())
        process.standardInput = input
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try process.run()
        try input.fileHandleForWriting.write(contentsOf: bytes)
        try input.fileHandleForWriting.close()
        let data = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        return process.terminationStatus == 0 ? [UInt8](data) : nil
    }

    @Test("Columns and template are checked before anything is read") func options() async throws {
        try sandbox.put("File,n\n\(server.url("/a.bin")),x.bin\n", "t.csv")
        _ = serve("a.bin", "one")
        for (options, reason) in [
            (["--column", "url"], "is not FIELD=NAME"), (["--column", "color=n"], "is not FIELD=NAME"),
            (["--url-template", "http://h/x"], "no column's name is in braces"),
            (["--url-template", "x{n}"], "has no scheme"),
            (["--column", "url=Other"], "no column 'Other', but 'File', 'n'"),
        ] {
            let result = try await sandbox.fk(["get", "-i", "t.csv"] + options)
            #expect(result.status == 2 && result.errors.contains(reason), "\(result)")
        }
        // A list of URLs has no columns, wherever it is.
        try sandbox.put("\(server.url("/a.bin"))\n", "urls")
        server.serve("/addresses", Array("\(server.url("/a.bin"))\n".utf8))
        for list in ["urls", server.url("/addresses")] {
            let result = try await sandbox.fk("get", "-i", list, "--url-template", "http://h/{n}")
            #expect(result.status == 2 && result.errors.contains("--url-template is about the columns"), "\(result)")
        }
        try await sandbox.done("get", "-q", "-i", "t.csv", "--column", "url=File", "--column", "name=n")
        #expect(try sandbox.bytes("x.bin") == Array("one".utf8))
    }

    @Test("Each cause of a failed import from a URL is said as itself") func reasons() async throws {
        server.serve("/urls.txt", Array("https://h.example/a\nnot a url\n".utf8))
        server.serve("/cut.json", Array("[{\"url\":\"https://h.example/a\"".utf8))
        server.serve("/Packages", Array("Package: nano\nFilename: x\n".utf8))
        for (path, reason) in [
            ("none", "HTTP 404"), ("urls.txt", "line 2"), ("cut.json", "it is not whole"),
            ("Packages", "apt-get download"),
        ] {
            let result = try await sandbox.fk("barrel", "import", "set", server.url("/\(path)"))
            #expect(result.status != 0 && result.errors.contains(reason), "\(result)")
        }
    }

    @Test("URLs that would give two files one name are named before anything starts") func twins() async throws {
        let text = "\(server.url("/x/data.csv"))\n\(server.url("/x/data.csv"))\n\(server.url("/y/data.csv?v=1"))\n"
        try sandbox.put(text, "u.txt")
        let result = try await sandbox.fk("barrel", "import", "set", "u.txt")
        #expect(
            result.errors.contains(
                "1 URL would give a file the name of another one, such as 'data.csv' on lines 1 and 3"), "\(result)")
    }
}
