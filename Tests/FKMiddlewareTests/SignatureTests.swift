import TestSupport
import Testing

@testable import FKMiddleware

/// Keys and signatures are made by minisign, OpenSSH and GnuPG themselves.
@Suite("Signatures")
struct SignatureTests {
    private let folder: TemporaryFolder
    private static let list = Array("https://h/a\nhttps://h/b\n".utf8)

    init() throws {
        folder = try TemporaryFolder()
        _ = try folder.write(Self.list, to: "list")
    }

    private func text(_ name: String) throws -> String { String(decoding: try folder.read(name), as: UTF8.self) }

    /// Makes the keys `NAME.pub` and `NAME.sec` of minisign.
    private func minisignKey(_ name: String) throws -> SignatureKey {
        try Program.run("minisign", ["-G", "-W", "-p", "\(name).pub", "-s", "\(name).sec"], in: folder.url)
        return try SignatureKey(contentsOf: folder.file("\(name).pub"))
    }

    private func minisign(_ name: String, _ options: [String] = []) throws -> String {
        try Program.run(
            "minisign", ["-S", "-s", "\(name).sec", "-m", "list", "-x", "sig", "-t", "of today"] + options,
            in: folder.url)
        return try text("sig")
    }

    private func refusal(_ key: SignatureKey, _ signature: String, of bytes: [UInt8] = list) -> String {
        do throws(DownloadError) { _ = try key.verify(Array(signature.utf8), of: bytes) } catch {
            return error.code == .checksumMismatch ? error.message : "\(error)"
        }
        return "accepted"
    }

    @Test("minisign's signatures are proven, prehashed and legacy, of bytes and of a file", arguments: [[], ["-l"]])
    func minisign(options: [String]) throws {
        let key = try minisignKey("a")
        let signature = try minisign("a", options)
        #expect(try MinisignSignature(Array(signature.utf8)).isPrehashed == options.isEmpty)
        #expect(try key.verify(Array(signature.utf8), of: Self.list) == key.description)
        #expect(try key.verify(Array(signature.utf8), ofFile: folder.file("list")) == key.description)
        // The key itself, its file with a comment, and lines that end in CR LF.
        #expect(try SignatureKey(key.description) == key)
        #expect(try SignatureKey(text("a.pub")) == key && SignatureKey.isLiteral(key.description))
        #expect(refusal(key, signature.replacing("\n", with: "\r\n")) == "accepted")
        #expect(refusal(key, signature, of: []).contains("does not match its bytes"))
    }

    @Test(
        "a signature by minisign that is not the key's of these bytes is refused with its reason",
        arguments: [[], ["-l"]])
    func refused(options: [String]) throws {
        let key = try minisignKey("a")
        let other = try minisignKey("b")
        let foreign = try minisign("b", options)
        let signature = try minisign("a", options)
        var lines = signature.split(separator: "\n").map(String.init)
        #expect(refusal(other, signature).contains("its signature is by the key"))
        #expect(refusal(key, foreign).contains("its signature is by the key"))
        #expect(refusal(key, signature, of: Self.list + [0x0a]).contains("does not match its bytes"))
        #expect(
            refusal(key, signature, of: Array("https://h/a\r\nhttps://h/b\r\n".utf8)).contains(
                "does not match its bytes"))
        #expect(refusal(key, signature.replacing("of today", with: "of old")).contains("trusted comment"))
        #expect(refusal(key, signature + signature).contains("more than one signature"))
        #expect(refusal(key, "").contains("not one of minisign"))
        #expect(refusal(key, lines[..<2].joined(separator: "\n")).contains("truncated"))
        #expect(refusal(key, String(signature.dropLast(9))).contains("truncated"))
        #expect(refusal(key, String(repeating: "a", count: 10 << 20)).contains("longer than 1 MiB"))
        var raw = try #require(Data(base64Encoded: lines[1]))
        raw[1] = UInt8(ascii: "x")
        lines[1] = raw.base64EncodedString()
        #expect(refusal(key, lines.joined(separator: "\n")).contains("another algorithm"))
        // An untrusted comment proves nothing, and is not signed.
        #expect(refusal(key, signature.replacing("untrusted comment: ", with: "untrusted comment: x")) == "accepted")
    }

    @Test("every byte of a signature by minisign counts")
    func eachByte() throws {
        let key = try minisignKey("a")
        let lines = try minisign("a").split(separator: "\n").map(String.init)
        for (line, bytes) in [(1, 74), (3, 64)] {
            for index in 0..<bytes {
                var raw = try #require(Data(base64Encoded: lines[line]))
                raw[index] ^= 1
                var changed = lines
                changed[line] = raw.base64EncodedString()
                #expect(refusal(key, changed.joined(separator: "\n")) != "accepted", "line \(line) byte \(index)")
            }
        }
    }

    @Test("OpenSSH's signatures of the namespace file are proven", arguments: ["ed25519", "ecdsa", "rsa"])
    func ssh(type: String) throws {
        for name in ["k", "other"] {
            try Program.run("ssh-keygen", ["-q", "-t", type, "-N", "", "-C", "me@h", "-f", name], in: folder.url)
        }
        let key = try SignatureKey(contentsOf: folder.file("k.pub"))
        #expect(key.scheme == .ssh && !key.description.contains("me@h"))
        #expect(try SignatureKey(key.description) == key && SignatureKey.isLiteral(key.description))
        try Program.run("ssh-keygen", ["-Y", "sign", "-f", "k", "-n", "file", "list"], in: folder.url)
        let signature = try text("list.sig")
        #expect(try key.verify(Array(signature.utf8), of: Self.list) == key.description)
        #expect(try key.verify(Array(signature.utf8), ofFile: folder.file("list")) == key.description)
        let reason = refusal(key, signature, of: [1])
        #expect(reason.contains("ssh-keygen does not accept its signature") && !reason.contains(".."), "\(reason)")
        #expect(refusal(try SignatureKey(contentsOf: folder.file("other.pub")), signature) != "accepted")
        #expect(refusal(key, String(signature.dropLast(60))) != "accepted")
        try FileManager.default.removeItem(at: folder.file("list.sig"))
        try Program.run("ssh-keygen", ["-Y", "sign", "-f", "k", "-n", "git", "list"], in: folder.url)
        #expect(refusal(key, try text("list.sig")) != "accepted", "another namespace")
    }

    @Test("OpenPGP's signatures are proven by a key ring, armored or not")
    func openPGP() throws {
        let home = folder.file("gnupg").path
        try FileManager.default.createDirectory(
            atPath: home, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        func gpg(_ words: String...) throws {
            try Program.run("gpg", ["--homedir", home, "--batch", "--yes", "--passphrase", ""] + words, in: folder.url)
        }
        defer { _ = try? Program.run("gpgconf", ["--homedir", home, "--kill", "all"]) }
        for name in ["a", "b"] {
            try gpg("--quick-gen-key", "\(name)@h", "ed25519", "sign", "never")
            try gpg("-o", "\(name).gpg", "--export", "\(name)@h")
            try gpg("-o", "\(name).asc", "--armor", "--export", "\(name)@h")
        }
        let key = try SignatureKey(contentsOf: folder.file("a.gpg"))
        #expect(try SignatureKey(contentsOf: folder.file("a.asc")) == key && key.scheme == .openPGP)
        #expect(try SignatureKey(key.description) == key)
        for options in [["--armor"], []] {
            try Program.run(
                "gpg", ["--homedir", home, "--batch", "--yes", "-u", "a@h", "-o", "sig", "-b"] + options + ["list"],
                in: folder.url)
            let signature = try folder.read("sig")
            #expect(try key.verify(signature, of: Self.list).hasPrefix("openpgp:"))
            #expect(throws: DownloadError.self) { try key.verify(signature, of: [1]) }
            #expect(throws: DownloadError.self) {
                try SignatureKey(contentsOf: folder.file("b.gpg")).verify(signature, of: Self.list)
            }
        }
        try gpg("-u", "a@h", "-o", "texts", "--armor", "--textmode", "-b", "list")
        #expect(refusal(key, try text("texts")).contains("one of a text"))
        #expect(refusal(key, try text("texts"), of: Array("https://h/a\r\nhttps://h/b \r\n".utf8)) != "accepted")
        try gpg("-u", "a@h", "-u", "b@h", "-o", "two", "-b", "list")
        let both = try SignatureKey(contentsOf: folder.write(folder.read("a.gpg") + folder.read("b.gpg"), to: "both"))
        #expect(throws: DownloadError.self) { try both.verify(folder.read("two"), of: Self.list) }
    }

    @Test(
        "the class and the digest of an OpenPGP signature decide",
        arguments: [
            ("8 00", nil), ("9 00", nil), ("10 00", nil), ("11 00", nil), ("14 00", nil), ("8 01", "one of a text"),
            ("10 02", "one of a text"), ("2 00", "SHA-1"), ("1 00", "MD5"), ("3 00", "RIPEMD-160"),
            ("99 00", "unknown digest"),
            ("2 01", "one of a text"), ("8", "does not say"),
        ] as [(String, String?)])
    func validity(fields: String, reason: String?) {
        let key = String(repeating: "A", count: 40)
        let line = "VALIDSIG \(key) 2026-11-26 1 0 4 0 22 \(fields) \(key)"
        let fault = SignatureProgram.fault(inValid: line.split(separator: " "))
        #expect(reason.map { fault?.contains($0) == true } ?? (fault == nil), "\(fault ?? "none")")
    }

    @Test(
        "a text that is no key is refused",
        arguments: [
            "", "# comment\n", "untrusted comment: minisign public key\n", "hello", "ssh-ed25519 AAAA", "RWQ=",
            "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n####\n-----END PGP PUBLIC KEY BLOCK-----",
            "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3\nRWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3",
        ])
    func noKey(text: String) {
        let error = #expect(throws: DownloadError.self) { try SignatureKey(text) }
        #expect(error?.code == .invalidArgument)
    }

    @Test("the middleware refuses a file without a signature, and one that was changed")
    func middleware() async throws {
        let key = try minisignKey("a")
        let url = try address("https://h/list")
        let signature = Array(try minisign("a").utf8)
        let response = DownloadResponse(task: try context("https://h/list"), fileURL: folder.file("list"))
        _ = try await SignatureMiddleware(key, [url: signature]).process(response)
        await #expect(throws: DownloadError.self) { try await SignatureMiddleware(key, [:]).process(response) }
        _ = try folder.write([1], to: "list")
        await #expect(throws: DownloadError.self) {
            try await SignatureMiddleware(key, [url: signature]).process(response)
        }
    }
}
