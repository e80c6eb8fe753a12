import Foundation
import TestSupport
import Testing

@testable import fk

@Suite("Signed lists and files, end to end")
final class SignedCommandTests: ServedSuite {

    override init() throws {
        try super.init()
        server.route("/a") { .ranged(Array("a".utf8), for: $0, etag: "\"1\"") }
        try sandbox.put("\(server.url("/a"))\n", "list.txt")
        try sandbox.put("a", "a.file")
        for name in ["k", "other"] { try run("minisign", "-G", "-W", "-p", "\(name).pub", "-s", "\(name).sec") }
        try run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "ssh")
    }

    private func run(_ name: String, _ words: String...) throws {
        try Program.run(name, words, in: URL(fileURLWithPath: sandbox.files))
    }

    private func read(_ name: String) throws -> [UInt8] {
        [UInt8](try Data(contentsOf: URL(fileURLWithPath: "\(sandbox.files)/\(name)")))
    }

    private static let lists = [
        ["get", "-d", "out", "-i"], ["barrel", "create", "b", "-i"], ["barrel", "import", "b"],
    ]

    @Test("a signed list is taken, by minisign and by ssh, beside it or named", arguments: lists)
    func taken(words: [String]) async throws {
        try run("minisign", "-S", "-s", "k.sec", "-m", "list.txt")
        try run("ssh-keygen", "-q", "-Y", "sign", "-f", "ssh", "-n", "file", "list.txt")
        let literal = String(decoding: try read("ssh.pub"), as: UTF8.self).trimmingCharacters(in: .newlines)
        for options in [["--signed-by", "k.pub"], ["--signed-by", literal, "--signature", "list.txt.sig"]] {
            // A barrel takes lists of one key.
            let words = words.map { $0 == "b" ? "b\(options.count)" : $0 }
            let result = try await sandbox.fk(words + ["list.txt"] + options)
            #expect(result.status == 0, "\(result.errors)")
        }
    }

    @Test("a list that the key has not signed is refused: no request, no task, status 1", arguments: lists)
    func refused(words: [String]) async throws {
        let none = try await sandbox.fk(words + ["list.txt", "--signed-by", "k.pub"])
        #expect(none.status == 1 && none.errors.contains("list.txt.minisig"), "\(none.errors)")
        try run("minisign", "-S", "-s", "other.sec", "-m", "list.txt")
        let other = try await sandbox.fk(words + ["list.txt", "--signed-by", "k.pub"])
        #expect(other.status == 1 && other.errors.contains("list.txt was refused: its signature is by the key"))
        try run("minisign", "-S", "-s", "k.sec", "-m", "list.txt")
        try sandbox.put("\(server.url("/b"))\n", "list.txt")
        let changed = try await sandbox.fk(words + ["list.txt", "--signed-by", "k.pub"])
        #expect(changed.status == 1 && changed.errors.contains("its signature does not match its bytes"))
        #expect(server.requests.isEmpty)
        #expect(try await !sandbox.fk("list").output.contains("127.0.0.1"))
    }

    @Test("a barrel and its lock keep the signer, and take no list of another one or of none")
    func pinned() async throws {
        try run("minisign", "-S", "-s", "k.sec", "-m", "list.txt")
        #expect(try await sandbox.fk("barrel", "import", "b", "list.txt", "--signed-by", "k.pub").status == 0)
        let key = String(decoding: try read("k.pub"), as: UTF8.self).split(separator: "\n")[1]
        #expect(
            try await sandbox.fk("barrel", "export", "b", "--format", "lock").output.contains("\"signedBy\":\"\(key)\"")
        )
        try run("minisign", "-S", "-s", "other.sec", "-m", "list.txt")
        let other = String(decoding: try read("other.pub"), as: UTF8.self).split(separator: "\n")[1]
        for words in Self.lists + [["get", "-b", "b", "-i"], ["barrel", "add", "b", "-i"]] where words.contains("b") {
            let result = try await sandbox.fk(words + ["list.txt", "--signed-by", "other.pub"])
            #expect(
                result.status == 1 && result.errors.contains(key) && result.errors.contains(other), "\(result.errors)")
            let unsigned = try await sandbox.fk(words + ["list.txt"])
            #expect(unsigned.status == 1 && unsigned.errors.contains("by no key"), "\(unsigned.errors)")
        }
        #expect(server.requests.isEmpty)
    }

    @Test("a list at a URL: its bytes are proven as they were received, and names are relative to it")
    func fetched() async throws {
        try sandbox.put("\(String(repeating: "0", count: 64))  a.bin\n", "SHA256SUMS")
        try run("minisign", "-S", "-s", "k.sec", "-m", "SHA256SUMS")
        let (sums, signature) = (try read("SHA256SUMS"), try read("SHA256SUMS.minisig"))
        server.route("/d/SHA256SUMS") { $0.index == 0 ? .ok(sums) : .ok(sums + [10]) }
        server.route("/d/SHA256SUMS.minisig") { _ in .ok(signature) }
        let url = server.url("/d/SHA256SUMS?v=/2")
        try await sandbox.done("barrel", "import", "b", url, "--signed-by", "k.pub")
        #expect(try await sandbox.done("barrel", "export", "b").output.contains(server.url("/d/a.bin")))
        let key = String(decoding: try read("k.pub"), as: UTF8.self).split(separator: "\n")[1]
        #expect(try await sandbox.done("barrel", "show", "b").output.contains("lists signed by \(key)"))
        for name in ["b", "c"] {
            let changed = try await sandbox.fk("barrel", "import", name, url, "--signed-by", "k.pub")
            #expect(changed.status == 1 && changed.errors.contains("does not match its bytes"), "\(changed.errors)")
        }
        #expect(try await sandbox.fk("barrel", "show", "c").status == 4)
        let none = try await sandbox.fk("barrel", "import", "c", server.url("/none"), "--signed-by", "k.pub")
        #expect(none.status == 1 && none.errors.contains("404"), "\(none.errors)")
    }

    @Test("info and barrel show name the signer of a list and of a file")
    func shown() async throws {
        try run("minisign", "-S", "-s", "k.sec", "-m", "list.txt")
        try run("minisign", "-S", "-s", "k.sec", "-m", "a.file")
        let key = String(decoding: try read("k.pub"), as: UTF8.self).split(separator: "\n")[1]
        try await sandbox.done("barrel", "import", "b", "list.txt", "--signed-by", "k.pub")
        let info = try await sandbox.done("info", server.url("/a"))
        #expect(info.output.contains("list.txt, signed by \(key)"))
        let list = #""signer": "\#(key)""#
        #expect(try await sandbox.done("info", server.url("/a"), "--json").output.contains(list))
        #expect(try await sandbox.done("barrel", "show", "b").output.contains("lists signed by \(key)"))
        for words in [["barrel", "show", "b", "--json"], ["barrel", "list", "--json"]] {
            #expect(try await sandbox.done(words).output.contains(#""signedBy": "\#(key)""#))
        }
        try await sandbox.done(
            "get", server.url("/a"), "-d", "out", "--signed-by", "k.pub", "--signature", "a.file.minisig")
        #expect(try await sandbox.done("info", "a", "--json").output.contains(#""signedBy": "\#(key)""#))
    }

    @Test("the signer that a lock names is a claim: shown as one, not stated, and compared with a proven signer")
    func claimed() async throws {
        try run("minisign", "-S", "-s", "k.sec", "-m", "list.txt")
        try await sandbox.done("barrel", "import", "real", "list.txt", "--signed-by", "k.pub")
        let lock = try await sandbox.done("barrel", "export", "real", "--format", "lock").output
        let key = String(String(decoding: try read("k.pub"), as: UTF8.self).split(separator: "\n")[1])
        #expect(lock.contains("\"signedBy\":\"\(key)\""))
        try sandbox.put(lock, "x.lock")
        server.route("/x.lock") { _ in .ok(Array(lock.utf8)) }
        for (name, place) in [("file", "x.lock"), ("url", server.url("/x.lock"))] {
            try await sandbox.done("barrel", "import", name, place, "-d", name)
            let shown = try await sandbox.done("barrel", "show", name).output
            #expect(shown.contains("signer \(key), as a lock claims: no signature was verified"), "\(shown)")
            #expect(!shown.contains("signed by"))
            let json = try await sandbox.json("barrel", "show", name)
            #expect(json.isNull("signedBy") && json.text("claimedSigner") == key)
            let again = try await sandbox.done("barrel", "export", name, "--format", "lock").output
            #expect(!again.contains("signedBy"))
            // The same lock again is taken; a list of another signer, or of none, is not.
            try await sandbox.done("barrel", "import", name, place, "-d", name)
            #expect(try await sandbox.fk("barrel", "import", name, "list.txt").status == 1)
            try run("minisign", "-S", "-s", "other.sec", "-m", "list.txt")
            let other = try await sandbox.fk("barrel", "import", name, "list.txt", "--signed-by", "other.pub")
            #expect(other.status == 1 && other.errors.contains("claimed to be signed by the key \(key)"), "\(other)")
            // The proven signer takes the place of the claim.
            try run("minisign", "-S", "-s", "k.sec", "-m", "list.txt")
            try await sandbox.done("barrel", "import", name, "list.txt", "--signed-by", "k.pub")
            #expect(try await sandbox.done("barrel", "show", name).output.contains("lists signed by \(key)"))
        }
    }

    /// A script in the place of cosign, which is no package of Debian. It keeps its arguments and what it was given.
    @Test("cosign gets the key, the bundle or the signature, and the list")
    func cosign() async throws {
        let programs = try TemporaryFolder()
        let path = "\(programs.path):/usr/bin:/bin"
        let sandbox = try Sandbox(environment: ["PATH": path])
        let pem = "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"
        try sandbox.put(pem, "cosign.pub")
        try sandbox.put("\(server.url("/a"))\n", "list.txt")
        let get = ["get", "-d", "out", "-i", "list.txt", "--signed-by", "cosign.pub", "--signature", "s"]
        let missing = try await sandbox.fk(get)
        #expect(missing.status == 2 && missing.errors.contains("install the package cosign"), "\(missing.errors)")
        _ = try Program.writeScript(
            """
            #!/bin/sh
            [ -f \(programs.path)/refuse ] && echo "error: invalid signature" >&2 && exit 1
            echo "$@" > \(programs.path)/arguments
            cp key proof \(programs.path) && cat > \(programs.path)/blob
            """, to: "\(programs.path)/cosign")
        let new =
            #"{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","messageSignature":{"signature":"AA=="}}"#
        for (signature, option, proof) in [
            ("MEUC==\n", "--signature", "MEUC==\n"), (new, "--bundle", new),
            // Its own key must not count, in any spelling.
            (
                #"{"base64Signature":"MEUC==","cert":"b3RoZXI=","mediaType":"dev.sigstore.bundle"}"#, "--signature",
                "MEUC=="
            ),
            (
                #"{"messageSignature":1,"BASE64signature":"MEUC==","Cert":"b3RoZXI="}"#, "--bundle",
                #"{"messageSignature":1}"#
            ),
        ] {
            try sandbox.put(signature, "s")
            #expect(try await sandbox.fk(get).status == 0)
            func kept(_ name: String) throws -> String {
                try String(contentsOfFile: "\(programs.path)/\(name)", encoding: .utf8)
            }
            let arguments = "verify-blob --key key \(option) proof --insecure-ignore-tlog=true -\n"
            #expect(try kept("arguments") == arguments && kept("key") == pem)
            #expect(try kept("blob") == "\(server.url("/a"))\n")
            let isSame = try kept("proof") == proof
            func json(_ text: String) throws -> NSDictionary? {
                try JSONSerialization.jsonObject(with: Data(text.utf8)) as? NSDictionary
            }
            #expect(try isSame || json(kept("proof")) == json(proof))
        }
        try sandbox.put("{}", "s")
        #expect(try await sandbox.fk(get).errors.contains("no bundle of Sigstore"))
        try sandbox.put("MEUC==", "s")
        try Data().write(to: URL(fileURLWithPath: "\(programs.path)/refuse"))
        let refused = try await sandbox.fk(get)
        #expect(refused.status == 1 && refused.errors.contains("cosign does not accept its signature: error: invalid"))
    }

    @Test("a file's signature is looked for beside its URL, and a wrong one costs no byte of the file")
    func file() async throws {
        let missing = try await sandbox.fk("get", server.url("/a"), "-d", "out", "--signed-by", "k.pub")
        #expect(missing.status == 1 && missing.errors.contains("/a.minisig"), "\(missing.errors)")
        try run("minisign", "-S", "-s", "other.sec", "-m", "a.file")
        let wrong = try read("a.file.minisig")
        server.route("/a.minisig") { _ in .ok(wrong) }
        let refused = try await sandbox.fk("get", server.url("/a"), "-d", "out", "--signed-by", "k.pub")
        #expect(refused.status == 1 && refused.errors.contains("its signature is by the key"))
        #expect(!server.requests.contains { $0.path == "/a" })
        try run("minisign", "-S", "-s", "k.sec", "-m", "a.file")
        let right = try read("a.file.minisig")
        server.route("/a.minisig") { _ in .ok(right) }
        let taken = try await sandbox.fk("get", server.url("/a"), "-d", "out", "--signed-by", "k.pub")
        #expect(taken.status == 0, "\(taken.errors)")
        #expect(try read("out/a") == Array("a".utf8))
    }

    @Test("a list of digests is proven before it is used")
    func digests() async throws {
        let digest = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"
        try sandbox.put("\(digest)  a\n", "SUMS")
        try run("minisign", "-S", "-s", "k.sec", "-m", "SUMS")
        let words = ["get", server.url("/a"), "-d", "out", "--checksum", "@SUMS", "--signed-by"]
        let refused = try await sandbox.fk(words + ["other.pub"])
        #expect(refused.status == 1 && refused.errors.contains("SUMS was refused"), "\(refused.errors)")
        #expect(server.requests.isEmpty)
        #expect(try await sandbox.fk(words + ["k.pub"]).status == 0)
    }

    @Test("a list at a URL without a key is read, and a missing one is said to be missing")
    func unsignedURL() async throws {
        let result = try await sandbox.fk("get", "-i", server.url("/none/SHA256SUMS"))
        #expect(result.status != 0 && result.errors.contains("HTTP 404"), "\(result.errors)")
    }

    @Test("an option that cannot be used ends with 2")
    func usage() async throws {
        for words in [
            ["get", server.url("/a"), "--signed-by", "none.pub"], ["get", server.url("/a"), "--signed-by", "list.txt"],
            ["get", server.url("/a"), "--signature", "x"], ["get", "-i", "-", "--signed-by", "k.pub"],
            ["barrel", "import", "b", "hf:a/b", "--signed-by", "k.pub"],
        ] {
            let result = try await sandbox.fk(words)
            #expect(result.status == 2 && result.errors.contains("--sign"), "\(words) \(result.errors)")
        }
    }

    @Test("a URL beside a signed list, or for a barrel of signed lists, is refused and named: status 2")
    func unproven() async throws {
        try run("minisign", "-S", "-s", "k.sec", "-m", "list.txt")
        let url = server.url("/u")
        func refused(_ words: String...) async throws {
            let result = try await sandbox.fk(words)
            #expect(result.status == 2 && result.errors.contains(url), "\(words): \(result.errors)")
        }
        try await refused("get", "-d", "out", "-i", "list.txt", "--signed-by", "k.pub", url)
        try await refused("barrel", "create", "b", "-i", "list.txt", "--signed-by", "k.pub", url)
        try await sandbox.done("barrel", "import", "b", "list.txt", "--signed-by", "k.pub")
        try await refused("barrel", "add", "b", url)
        try await refused("barrel", "add", "b", url, "-i", "list.txt", "--signed-by", "k.pub")
        try await refused("barrel", "create", "b", url)
        try await refused("get", "-b", "b", "-d", "out", url)
        #expect(server.requests.isEmpty)
        // Another key's signature of the file does not help, that of the barrel's key does.
        server.route("/u") { _ in .ok(Array("a".utf8)) }
        for (name, status) in [("other", 2), ("k", 0)] as [(String, Int32)] {
            try run("minisign", "-S", "-s", "\(name).sec", "-m", "a.file", "-x", "\(name).sig")
            let result = try await sandbox.fk(
                "get", "-b", "b", "-d", "out", url, "--signed-by", "\(name).pub", "--signature", "\(name).sig")
            #expect(result.status == status, "\(result.errors)")
        }
    }

    @Test("relative names of a signed list are at the host that was named, wherever that redirects") func ownHost()
        async throws
    {
        try sandbox.put("\(String(repeating: "0", count: 64))  a.bin\n", "SHA256SUMS")
        try run("minisign", "-S", "-s", "k.sec", "-m", "SHA256SUMS")
        let (sums, signature) = (try read("SHA256SUMS"), try read("SHA256SUMS.minisig"))
        let other = try FaultServer()
        other.route("/x/SHA256SUMS") { _ in .ok(sums) }
        server.route("/d/SHA256SUMS") { _ in .redirect(to: other.url("/x/SHA256SUMS")) }
        server.route("/d/SHA256SUMS.minisig") { _ in .ok(signature) }
        try await sandbox.done("barrel", "import", "b", server.url("/d/SHA256SUMS"), "--signed-by", "k.pub")
        #expect(try await sandbox.done("barrel", "export", "b").output.contains(server.url("/d/a.bin")))
    }
}
