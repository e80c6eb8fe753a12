import TestSupport
import Testing

@Suite("Checksums and digests")
struct ChecksumTests {
    /// FIPS 180 and RFC 1321 vectors for the empty text and "abc".
    static let vectors: [(Checksum.Algorithm, String, String)] = [
        (.md5, "", "d41d8cd98f00b204e9800998ecf8427e"), (.md5, "abc", "900150983cd24fb0d6963f7d28e17f72"),
        (.sha1, "abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
        (.sha256, "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        (.sha256, "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            .sha384, "abc",
            "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7"
        ),
        (
            .sha512, "abc",
            "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"
        ),
    ]

    @Test("known digests, in one piece and byte by byte", arguments: vectors)
    func digest(algorithm: Checksum.Algorithm, text: String, hex: String) {
        #expect(Digester.hex(Digester.bytes(of: text, algorithm)) == hex)
        let digester = Digester(algorithm)
        for byte in text.utf8 { withUnsafeBytes(of: byte) { digester.update($0) } }
        digester.update(UnsafeRawBufferPointer(start: nil, count: 0))
        #expect(digester.hex() == hex)
        #expect(digester.hex() == hex, "asking does not end the digest")
        #expect(digester.bytes().count == algorithm.byteCount)
    }

    @Test("a digest can be asked for in the middle and goes on")
    func middle() {
        let digester = Digester(.sha256)
        Array("a".utf8).withUnsafeBytes { digester.update($0) }
        _ = digester.hex()
        Array("bc".utf8).withUnsafeBytes { digester.update($0) }
        #expect(digester.hex() == Digester.hex(Digester.bytes(of: "abc", .sha256)))
    }

    @Test("a file's digest, larger than one reading")
    func file() throws {
        let folder = try TemporaryFolder()
        let content = [UInt8](repeating: 0x61, count: (1 << 20) + 17)
        let file = try folder.write(content, to: "a")
        let whole = Digester(.sha1)
        content.withUnsafeBytes { whole.update($0) }
        #expect(try Digester.hex(ofFile: file, .sha1) == whole.hex())
        #expect(throws: (any Error).self) { try Digester.hex(ofFile: folder.file("none"), .sha1) }
    }

    @Test("a checksum is read in its usual spellings", arguments: ["sha-256", "sha256", "SHA_256", "Sha-256"])
    func parsing(name: String) throws {
        let hex = String(repeating: "aB", count: 32)
        let checksum = try Checksum(parsing: "\(name)=\(hex)")
        #expect(checksum.algorithm == .sha256)
        #expect(checksum.hex == hex.lowercased())
        #expect(try Checksum(parsing: checksum.description) == checksum)
        #expect(try Checksum(parsing: "\(name):\(hex)") == checksum, "as registries write it")
        #expect(try JSONDecoder().decode(Checksum.self, from: JSONEncoder().encode(checksum)) == checksum)
    }

    @Test(
        "what is no checksum is refused",
        arguments: [
            "", "=", "sha-256", "sha-256=", "sha-257=00", "md5=\(String(repeating: "0", count: 31))",
            "md5=\(String(repeating: "g", count: 32))", "md5=\(String(repeating: "０", count: 32))",
            "md5=\(String(repeating: "0", count: 30))é", " md5=\(String(repeating: "0", count: 32)) ",
        ])
    func refused(text: String) {
        let error = #expect(throws: DownloadError.self) { try Checksum(parsing: text) }
        #expect(error?.code == .invalidArgument)
    }
}

@Suite("Errors, states and counts")
struct ContractValueTests {
    static let errors: [DownloadError] = [
        DownloadError(.disk, "m"),
        DownloadError(
            .httpStatus, "Not there.", url: "https://e/", status: 404, underlying: "u", isRetryable: true,
            retryAfter: .seconds(1.5)),
        DownloadError(.init("my-own"), "\u{1b}\n\"\\é"),
        DownloadError(.tooLarge, "The file has 5 bytes.", remedy: .raiseMaxSize),
    ]

    @Test("a description ends with its remedy, and a remedy of a later version is kept and not shown")
    func remedy() throws {
        #expect(Self.errors[3].description == "The file has 5 bytes: raise `maxSize` to accept it.")
        let json = Data(#"{"code":"disk","message":"It failed.","isRetryable":false,"remedy":"later"}"#.utf8)
        let later = try JSONDecoder().decode(DownloadError.self, from: json)
        #expect(later.remedy == nil && later.description == "It failed.")
        #expect(String(decoding: try JSONEncoder().encode(later), as: UTF8.self).contains(#""remedy":"later""#))
    }

    @Test("an error survives being stored", arguments: errors)
    func codable(error: DownloadError) throws {
        #expect(try JSONDecoder().decode(DownloadError.self, from: JSONEncoder().encode(error)) == error)
    }

    @Test("a code is stored as its text")
    func code() throws {
        let json = try JSONEncoder().encode([DownloadError.Code.noSpace])
        #expect(String(decoding: json, as: UTF8.self) == "[\"no-space\"]")
        #expect(DownloadError.Code(rawValue: "disk") == .disk)
    }

    @Test("wrapping keeps a DownloadError and names any other")
    func wrapping() {
        struct Other: Error {}
        let inner = DownloadError(.disk, "m")
        #expect(DownloadError(wrapping: inner, code: .middleware, message: "x") == inner)
        let outer = DownloadError(wrapping: Other(), code: .middleware, message: "x", url: "u")
        #expect(outer.code == .middleware && outer.underlying == "Other()" && outer.url == "u")
        #expect(outer.description == "x [u] (Other())")
        #expect(outer.localizedDescription == outer.description)
    }

    @Test("which states stay until somebody gives a verb")
    func settled() {
        let settled = DownloadState.allCases.filter(\.isSettled)
        #expect(settled == [.suspend, .cancel, .error, .complete, .unknown])
    }

    @Test(
        "fractions lie in 0...1",
        arguments: [
            (ByteCount(received: 5, expected: 10), 0.5), (ByteCount(received: 20, expected: 10), 1),
            (ByteCount(received: 0, expected: 0), 1), (ByteCount(received: 5), nil),
        ] as [(ByteCount, Double?)])
    func fraction(count: ByteCount, fraction: Double?) {
        #expect(count.fraction == fraction)
    }
}
