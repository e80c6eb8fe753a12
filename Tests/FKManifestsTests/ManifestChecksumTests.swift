import Testing

@testable import FKManifests

@Suite("Checksum lists") struct ManifestChecksumTests {
    private static let hex = SampleDigest.sha256

    @Test(
        "Forms of a line",
        arguments: [
            ("\(hex)  a.bin", "a.bin", "sha-256"), ("\(hex) *a.bin", "a.bin", "sha-256"),
            ("\(hex) a.bin", "a.bin", "sha-256"), ("\(hex)   a", " a", "sha-256"), ("\(hex)  **a", "**a", "sha-256"),
            ("\(hex.uppercased())  a.bin", "a.bin", "sha-256"), ("\\\(hex)  a\\\\b\\nc\\rd", "a\\b\nc\rd", "sha-256"),
            ("\(hex)  a\\nb", "a\\nb", "sha-256"), ("SHA256 (a.bin) = \(hex)", "a.bin", "sha-256"),
            ("SHA256(a.bin)= \(hex)", "a.bin", "sha-256"), ("SHA2-256(a.bin)= \(hex)", "a.bin", "sha-256"),
            ("SHA256 (a) = (b) = \(hex)", "a) = (b", "sha-256"), ("\\SHA256 (a\\nb) = \(hex)", "a\nb", "sha-256"),
            ("\(SampleDigest.hex(.md5))  a", "a", "md5"), ("\(SampleDigest.hex(.sha1))  a", "a", "sha-1"),
            ("\(SampleDigest.hex(.sha224))  a", "a", "sha-224"), ("\(SampleDigest.hex(.sha384))  a", "a", "sha-384"),
            ("\(SampleDigest.hex(.sha512))  a", "a", "sha-512"), ("MD5 (a) = \(SampleDigest.hex(.md5))", "a", "md5"),
            ("SHA1 (a) = \(SampleDigest.hex(.sha1))", "a", "sha-1"), ("\(hex)  ./sub//a.bin", "sub/a.bin", "sha-256"),
            ("\(hex)  sub/a.bin\r", "sub/a.bin", "sha-256"),
        ])
    func forms(line: String, name: String, algorithm: String) throws {
        let manifest = try Manifest(line + "\n")
        #expect(manifest.form == .checksums)
        #expect(manifest.names == [name])
        #expect(manifest.entries[0].digests.map(\.algorithm.rawValue) == [algorithm])
    }

    @Test(
        "The base says where the names are",
        arguments: [
            ("http://h/pub", "http://h/pub/a%20b/%C3%BC%25%3F%23.bin"),
            ("http://h/pub/", "http://h/pub/a%20b/%C3%BC%25%3F%23.bin"),
            ("http://h/pub?t=1#f", "http://h/pub/a%20b/%C3%BC%25%3F%23.bin?t=1"),
        ])
    func base(base: String, url: String) throws {
        let manifest = try Manifest("\(Self.hex)  a b/ü%?#.bin", base: base)
        #expect(manifest.urls == [[url]])
        #expect(try Manifest("\(Self.hex)  a").entries[0].sources.isEmpty)
    }

    @Test("Digests of one file with several algorithms become one entry, the strongest first") func merged() throws {
        let manifest = try Manifest(
            """
            # BSD's ports
            MD5 (a) = \(SampleDigest.hex(.md5))
            SHA512 (a) = \(SampleDigest.hex(.sha512))
            SHA256 (b) = \(Self.hex)
            SHA256 (a) = \(Self.hex)
            SIZE (a) = 12
            """)
        #expect(manifest.names == ["a", "b"])
        #expect(manifest.entries[0].digests.map(\.algorithm) == [.sha512, .sha256, .md5])
        #expect(manifest.entries[0].size == 12)
        #expect(manifest.entries[0].checksum?.algorithm == .sha512)
    }

    @Test(
        "Faults name the line",
        arguments: [
            ("\(hex)  a\nrubbish\n", "checksum list, line 2: the line is neither"),
            ("\(hex)  a\n\(hex.dropLast())  b\n", "checksum list, line 2, column 1: 63 hexadecimal digits"),
            ("SHA256 (a) = \(hex.dropLast())\n", "checksum list, line 1, column 14: a sha-256 digest has 64"),
            ("SHA256 (a) = \(hex.dropLast())g\n", "checksum list, line 1, column 14: a sha-256 digest has only"),
            ("BLAKE2b (a) = \(hex)\n", "checksum list, line 1, column 15: a blake2b digest has 128"),
            ("BLAKE3 (a) = \(hex)\n", "checksum list, line 1: 'a' has a digest of BLAKE3 (b3sum) alone"),
            ("NEW9 (a) = \(hex)\n", "checksum list, line 1: the algorithm NEW9 is not supported"),
            ("\(hex)  -\n", "checksum list, line 1: the digest is of standard input"),
            ("\(hex)  \n", "checksum list, line 1: the digest has no file name"),
            ("\\\(hex)  a\\x\n", "checksum list, line 1, column 68: the name has an escape"),
            (
                "\(hex)  a\n\(SampleDigest.hex(.sha256, "b"))  a\n",
                "checksum list, line 2: 'a': line 1 gives the same name another"
            ),
            ("\(hex)  a\n\(hex)  a/b\n", "checksum list, line 2: 'a/b': line 1 is a file where"),
            ("\(hex)  a/b\n\(hex)  a\n", "checksum list, line 2: 'a': line 1 needs a folder"),
            ("\(hex)\n", "checksum list, line 1: the digest has no file name"),
        ])
    func faults(text: String, start: String) {
        let fault = Manifest.fault(in: text)
        #expect(fault.hasPrefix(start), "\(fault)")
    }

    @Test("The same line twice is one entry") func twice() throws {
        #expect(try Manifest("\(Self.hex)  a\n\(Self.hex)  a\n").names == ["a"])
    }

    @Test("Bad lines can be left out") func skipping() throws {
        let manifest = try Manifest("\(Self.hex)  a\nrubbish\n\(Self.hex)  ../b\n\(Self.hex)  c", skips: true)
        #expect(manifest.names == ["a", "c"])
        #expect(manifest.faults.map(\.line) == [2, 3])
    }

    @Test(
        "A list of b2sum is read as BLAKE2b by its name, and by the algorithm of --tag: its digests are as long as those of SHA-512",
        .enabled(if: Checksum.Algorithm.hasBLAKE2),
        arguments: ["b2sums", "B2SUMS", "b2sums.txt", "a.iso.b2sum", "a.iso.b2", "a.blake2b", "release-b2sums.txt"])
    func blake2(_ name: String) throws {
        let hex = SampleDigest.hex(.sha512)
        for line in ["\(hex)  a.iso", "\\\(hex)  a\\nb", "BLAKE2b (a.iso) = \(hex)"] {
            #expect(
                try Manifest("\(line)\n", fileName: name).entries.map { $0.digests.map(\.algorithm) } == [[.blake2b]])
        }
        #expect(try Manifest("\(hex)  a.b2\n", fileName: "SHA512SUMS").entries[0].digests.map(\.algorithm) == [.sha512])
        #expect(
            try Manifest("SHA512 (a.iso) = \(hex)\n", fileName: name).entries[0].digests.map(\.algorithm) == [.sha512])
    }

    @Test(
        "A list of b3sum is refused by its name: its digests are as long as those of SHA-256",
        arguments: ["B3SUMS", "b3sums.txt", "a.iso.b3", "a.iso.blake3", "checksums_blake3.txt", "sha3-256sums.txt"])
    func blake3(_ name: String) {
        let fault = Manifest.fault(in: "\(Self.hex)  a.iso\n", fileName: name)
        #expect(fault.contains("'a.iso' has a digest of"), "\(fault)")
        #expect(fault.contains(name.contains("sha3") ? "SHA3" : "BLAKE3"), "\(fault)")
    }

    @Test("A list that is one digest belongs to the file that it is named after") func bare() throws {
        #expect(try Manifest(Self.hex + "\n", fileName: "/tmp/a.iso.sha256").names == ["a.iso"])
        #expect(Manifest.fault(in: Self.hex, fileName: "digest").contains("no file name"))
    }

    @Test("The frame of a clear-signed list is passed, its signature kept") func signed() throws {
        let text = """
            -----BEGIN PGP SIGNED MESSAGE-----
            Hash: SHA256

            # a comment
            SHA256 (a.iso) = \(Self.hex)
            - \(Self.hex)  -b.iso
            -----BEGIN PGP SIGNATURE-----

            iQIzBAEBCAAdFiEE
            -----END PGP SIGNATURE-----

            """
        let manifest = try Manifest(text)
        #expect(manifest.names == ["a.iso", "-b.iso"])
        #expect(manifest.facts.signature?.text.contains("iQIzBAEB") == true)
        #expect(Manifest.fault(in: String(text.dropLast(10))).contains("it is not whole"))
        #expect(Manifest.fault(in: text + "\(Self.hex)  c\n").contains("behind the signature"))
        #expect(Manifest.fault(in: "\(Self.hex)  c\n" + text).contains("behind other lines"))
    }
}
