import TestSupport
import Testing

private let sha = "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:"
private let shaHex = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
private let otherSha = "sha-256=:n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg=:"

private func head(_ status: Int, _ fields: KeyValuePairs<String, String> = [:]) -> ResponseHead {
    ResponseHead(status: status, fields: fields.map { .init($0.key, $0.value) }, url: "http://b.example/a")
}

@Suite("The digest a server sends along")
struct DigestFieldTests {
    @Test(
        "is read from these fields",
        arguments: [
            (["Repr-Digest": sha], "sha-256"), (["repr-digest": sha], "sha-256"),
            (["Repr-Digest": "unixsum=:AAA=:, \(sha)"], "sha-256"),
            (["Repr-Digest": "md5=:1B2M2Y8AsgTpgAmY7PhCfg==:, \(sha)"], "sha-256"),
            (["Repr-Digest": "\(sha);x=1"], "sha-256"), (["Content-Digest": sha], "sha-256"),
            (["Digest": "SHA-256=47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="], "sha-256"),
            (["Digest": "SHA=2jmj7l5rSw0yVb/vlWAYkK/YBwk="], "sha-1"),
            (["Digest": "MD5=1B2M2Y8AsgTpgAmY7PhCfg==,SHA=2jmj7l5rSw0yVb/vlWAYkK/YBwk="], "sha-1"),
            (["Content-MD5": "1B2M2Y8AsgTpgAmY7PhCfg=="], "md5"),
        ])
    func read(_ fields: [String: String], _ algorithm: String) throws {
        let answer = ResponseHead(
            status: 200, fields: fields.map { .init($0.key, $0.value) }, url: "http://b.example/a")
        let digest = try #require(ServerDigest.parse(answer))
        #expect(digest.algorithm.rawValue == algorithm)
        #expect(algorithm != "sha-256" || digest.hex == shaHex)
    }

    @Test(
        "is nothing when it cannot be read",
        arguments: [
            "", "sha-256", "sha-256=", "sha-256=::", "sha-256=:!:", "sha-256=:AAAA:", "sha-256=47DEQpj8HBSa",
            "crc32c=:AAAAAA==:", ",,=,", "\(sha),", "\(sha) x", ",\(sha)", "\(sha),,\(sha)",
            "SHA-256=\(sha.dropFirst(8))",
            "\(sha), md5", "\(sha), md5=1", "\(sha), md5=:AAAA:", "\(sha), md5=:!!!!:", "\(sha);", "\(sha);A=1",
            "\(sha);a=\"", "\(sha);a=?2", "\(sha);a=1.", "\(sha);a=@1.5", "\(sha);a=%\"%C3\"", "\(sha), x=(1 2",
            "\(sha), x=(1,2)", "\(sha), x=(1\"a\")", "\(sha), x=", "\(sha), x=?2", "\(sha), x=é", "sha-256=1",
            "sha-256=(:AA==:)", "\(sha), sha-256", "\(sha), sha-256=1", "\(sha), md5=(1)", "\(sha), md5=?0",
        ])
    func unreadable(_ value: String) {
        #expect(ServerDigest.parse(head(200, ["Repr-Digest": value])) == nil)
        #expect(ServerDigest.parse(head(200, ["Content-Digest": value])) == nil)
    }

    @Test(
        "what a dictionary of digests may hold besides (RFC 9651)",
        arguments: [
            "\(sha);a=\"x,\\\"y\";b=-1.5;c;d=?1;e=to/k:en;f=:AA==:;g=@-12;h=%\"%c3%a9\"; i=*x",
            "\(sha) \t, \tx1=:AA:",
            "*x-y_z.1=::, \(sha)", sha.replacing("uFU=:", with: "uFU:"),
            "\(otherSha), \(sha)", "sha-256=:AAAA:, \(sha)", "sha-256=1, \(sha)", "sha-256, \(sha)",
            "a=1, \(sha)", "a=1.5;b, \(sha)", "a, \(sha)", "a;b=1, \(sha)", "\(sha), a", "a=\"x, y\", \(sha)",
            "a=?0, \(sha)",
            "a=to/k:en, \(sha)", "a=@-12, \(sha)", "a=%\"%c3%a9\", \(sha)", "a=(), \(sha)",
            "a=( 1 \"b)\";c=2  t );d, \(sha)",
        ])
    func dictionary(_ value: String) {
        #expect(ServerDigest.parse(head(200, ["Repr-Digest": value]))?.hex == shaHex)
    }

    @Test("the strongest algorithm decides, in whichever field; of one key the last value")
    func strongest() throws {
        let strong = "sha-512=:\(Data(repeating: 5, count: 64).base64EncodedString()):"
        let sum = "sha-512=" + String(repeating: "05", count: 64)
        func parse(_ fields: KeyValuePairs<String, String>, _ status: Int = 200) -> String? {
            ServerDigest.parse(head(status, fields))?.description
        }
        #expect(parse(["Repr-Digest": "\(sha), \(strong)"]) == sum)
        #expect(parse(["Repr-Digest": "\(strong), \(sha)"]) == sum)
        #expect(parse(["Repr-Digest": sha, "Content-Digest": strong]) == sum)
        #expect(parse(["Repr-Digest": sha, "Content-Digest": strong], 206) == "sha-256=\(shaHex)")
        #expect(parse(["Repr-Digest": sha, "Digest": "SHA-512=\(strong.dropFirst(9).dropLast())"]) == sum)
        #expect(parse(["Repr-Digest": sha, "Content-Digest": otherSha]) == "sha-256=\(shaHex)")
        // Lines of one field are one dictionary; a malformed one spoils it, and no other field.
        #expect(parse(["Repr-Digest": otherSha, "repr-digest": sha]) == "sha-256=\(shaHex)")
        #expect(parse(["Repr-Digest": strong, "repr-digest": "X"]) == nil)
        #expect(parse(["Repr-Digest": "\(strong),", "Content-Digest": sha]) == "sha-256=\(shaHex)")
        let md5 = "1B2M2Y8AsgTpgAmY7PhCfg=="
        #expect(parse(["Digest": "MD5=\(md5),,UNIXsum=1,MD5=AAAA"]) == nil)
        #expect(parse(["Digest": ", MD5=AAAAAAAAAAAAAAAAAAAAAA==, MD5=\(md5), "])?.hasPrefix("md5=d41d8") == true)
        #expect(parse(["Content-MD5": md5, "Content-Md5": md5]) == nil)
    }

    @Test(
        "comes from stores, where it is of the whole file that is sent",
        arguments: [
            (
                ["x-goog-hash": "crc32c=yZRlqg==,md5=XrY7u+Ae7tCTyyK7j1rNww=="], "md5=5eb63bbbe01eeed093cb22bb8f5acdc3",
                true
            ),
            (["x-goog-hash": "crc32c=yZRlqg=="], "crc32c=c99465aa", true),
            (["x-goog-hash": "crc32c=yZRlqg==", "x-goog-stored-content-encoding": "gzip"], nil, true),
            (["x-amz-checksum-crc32c": "yZRlqg=="], "crc32c=c99465aa", false),
            (["x-amz-checksum-crc32c": "yZRlqg==", "x-amz-checksum-type": "COMPOSITE"], nil, false),
            (["x-amz-checksum-crc32c": "yZRlqg==-2"], nil, false),
            (["x-amz-checksum-crc64nvme": "jSnVw/bqjr4="], "crc64nvme=8d29d5c3f6ea8ebe", false),
            (["x-amz-checksum-sha256": "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="], "sha-256=\(shaHex)", false),
            (["Unencoded-Digest": sha], "sha-256=\(shaHex)", true),
            (["Unencoded-Digest": sha, "Content-Encoding": "gzip"], nil, true),
            (["x-ms-blob-content-md5": "XrY7u+Ae7tCTyyK7j1rNww=="], "md5=5eb63bbbe01eeed093cb22bb8f5acdc3", true),
            (["ETag": "\"5eb63bbbe01eeed093cb22bb8f5acdc3\""], nil, true),
        ] as [([String: String], String?, Bool)])
    func stores(_ fields: [String: String], _ digest: String?, _ isOfWhole: Bool) {
        for status in [200, 206] {
            let answer = ResponseHead(
                status: status, fields: fields.map { .init($0.key, $0.value) }, url: "http://b.example/a")
            #expect(ServerDigest.parse(answer)?.description == (status == 200 || isOfWhole ? digest : nil))
        }
    }

    @Test("of a store is the catalogue's for 123456789")
    func sums() {
        #expect(Digester.hex(Digester.bytes(of: "123456789", .crc32c)) == "e3069283")
        #expect(Digester.hex(Digester.bytes(of: "123456789", .crc64nvme)) == "ae8b14860a799888")
    }

    @Test("in a 206 counts only where it is of the whole")
    func partial() {
        #expect(ServerDigest.parse(head(206, ["Content-Digest": sha])) == nil)
        #expect(ServerDigest.parse(head(206, ["Content-MD5": "1B2M2Y8AsgTpgAmY7PhCfg=="])) == nil)
        #expect(ServerDigest.parse(head(206, ["Digest": "MD5=1B2M2Y8AsgTpgAmY7PhCfg=="])) == nil)
        #expect(ServerDigest.parse(head(206, ["Repr-Digest": sha]))?.hex == shaHex)
    }
}

@Suite("Bytes of one mirror and an answer of another")
struct MirrorRulesTests {
    private static let held = Validator(etag: "\"a\"", lastModified: "Sun, 06 Nov 1994 08:49:37 GMT", date: nil)

    private static func known(
        _ length: Int64? = 1000, _ validator: Validator? = held, _ policy: MirrorPolicy = .prove,
        isVouched: Bool = false
    ) -> ResumeRules.Known {
        ResumeRules.Known(
            FileVersion(source: "a", length: length, validator: validator, isVouched: isVouched), askedAt: "b",
            policy: policy)
    }

    private static func digest(_ value: String) -> Validator {
        var validator = held
        validator.digest = ServerDigest.parse(head(200, ["Repr-Digest": value]))
        return validator
    }

    @Test("a tag of the first mirror is not sent to the second; bytes before the seam are asked for again")
    func ask() {
        let range = SavedRange(start: 0, end: 100_000, position: 50_000)
        let ask = ResumeRules.ask(for: range, known: Self.known(100_000))
        #expect(ask == RangeAsk(start: 50_000, end: nil, overlap: 4096, ifRange: nil, usesRange: true))
        let few = ResumeRules.ask(for: SavedRange(start: 0, end: 1000, position: 9), known: Self.known())
        #expect(few.overlap == 9)
    }

    struct Row: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var head: ResponseHead
        var known = MirrorRulesTests.known()
        var decision: ResumeRules.HeadDecision
        init(
            _ name: String, _ head: ResponseHead, _ known: ResumeRules.Known = MirrorRulesTests.known(),
            gives decision: ResumeRules.HeadDecision
        ) {
            testDescription = name
            self.head = head
            self.known = known
            self.decision = decision
        }
    }

    private static let joined = ResumeRules.HeadDecision.append(skip: 100, until: 1000, total: 1000)
    private static let range = "bytes 0-999/1000"

    private static let whole = ResumeRules.HeadDecision.askAgain(.withoutRange)
    private static let date = "Sun, 06 Nov 1994 08:49:37 GMT"
    private static let later = "Sun, 06 Nov 1994 08:49:38 GMT"
    private static let dated = Validator(etag: "\"a\"", lastModified: date, date: later)

    private static let rows: [Row] = [
        Row("same length, other tag", head(206, ["Content-Range": range, "ETag": "\"b\""]), gives: whole),
        Row("same length, no validators", head(206, ["Content-Range": range]), gives: whole),
        Row("same weak tag", head(206, ["Content-Range": range, "ETag": "W/\"a\""]), gives: whole),
        Row("same strong tag", head(206, ["Content-Range": range, "ETag": "\"a\""]), gives: joined),
        Row(
            "same length, other date",
            head(206, ["Content-Range": range, "Last-Modified": "Sat, 05 Nov 1994 08:49:37 GMT", "Date": later]),
            known(1000, dated), gives: whole),
        Row(
            "same strong date and length", head(206, ["Content-Range": range, "Last-Modified": date, "Date": later]),
            known(1000, dated), gives: joined),
        Row(
            "same date, weak there", head(206, ["Content-Range": range, "Last-Modified": date, "Date": date]),
            known(1000, dated), gives: whole),
        Row(
            "same date, weak here", head(206, ["Content-Range": range, "Last-Modified": date, "Date": later]),
            gives: whole),
        Row(
            "same digest, other tag", head(206, ["Content-Range": range, "ETag": "\"b\"", "Repr-Digest": sha]),
            known(1000, digest(sha)), gives: joined),
        Row(
            "other digest, same tag", head(206, ["Content-Range": range, "ETag": "\"a\"", "Repr-Digest": otherSha]),
            known(1000, digest(sha)), gives: whole),
        Row(
            "a digest there, which the whole file is compared with",
            head(206, ["Content-Range": range, "Repr-Digest": otherSha]), gives: joined),
        Row(
            "a digest here, which the whole file is compared with", head(206, ["Content-Range": range]),
            known(1000, digest(sha)), gives: joined),
        Row(
            "a digest of a list or the user", head(206, ["Content-Range": range]), known(isVouched: true),
            gives: joined),
        Row("combined after a sample", head(206, ["Content-Range": range]), known(1000, held, .combine), gives: joined),
        Row(
            "combined: the length is not told", head(206, ["Content-Range": "bytes 0-999/*"]),
            known(1000, held, .combine), gives: whole),
        Row(
            "never at the same time: no proof either", head(206, ["Content-Range": range]),
            known(1000, held, .failover), gives: whole),
        Row("length not told", head(206, ["Content-Range": "bytes 0-999/*"]), gives: whole),
        Row("length not known here", head(206, ["Content-Range": range]), known(nil), gives: whole),
        Row(
            "length not known here, same strong tag", head(206, ["Content-Range": range, "ETag": "\"a\""]), known(nil),
            gives: joined),
        Row(
            "no ranges there", head(200, ["Content-Length": "1000", "ETag": "\"a\""]), gives: .startOver(total: 1000)),
        Row("416, another tag", head(416, ["Content-Range": "bytes */100"]), known(nil), gives: whole),
    ]

    @Test("what the answer means", arguments: rows)
    func decide(_ row: Row) {
        let ask = RangeAsk(start: 100, overlap: 100, usesRange: true)
        #expect(ResumeRules.decide(head: row.head, ask: ask, known: row.known, segments: 1) == row.decision)
    }

    @Test("a mirror whose file has another length is refused, unless a digest decides or it may have another file")
    func otherLength() {
        func isRefused(_ answer: ResponseHead, _ known: ResumeRules.Known) -> Bool {
            let ask = RangeAsk(start: 100, overlap: 100, usesRange: true)
            guard case .refuse(let error) = ResumeRules.decide(head: answer, ask: ask, known: known, segments: 1) else {
                return false
            }
            return error.code == .changedOnServer && error.isRetryable
        }
        var own = Self.known()
        own.isOwn = true
        for answer in [
            head(206, ["Content-Range": "bytes 0-1000/1001"]), head(206, ["Content-Range": "bytes 0-998/999"]),
            head(200, ["Content-Length": "999"]),
        ] {
            for policy in [MirrorPolicy.prove, .combine, .failover] {
                #expect(isRefused(answer, Self.known(1000, Self.held, policy)), "\(policy), \(answer)")
            }
            #expect(!isRefused(answer, Self.known(1000, Self.held, .alternatives)))
            #expect(!isRefused(answer, Self.known(isVouched: true)))
            #expect(!isRefused(answer, Self.known(nil)))
            #expect(!isRefused(answer, own), "the task's own address")
        }
    }

    @Test("the history tells why bytes were dropped")
    func reasons() {
        let ask = RangeAsk(start: 100, overlap: 100, usesRange: true)
        func reason(_ answer: ResponseHead, _ known: ResumeRules.Known = Self.known()) -> String {
            ResumeRules.reason(answer, ask, known)
        }
        #expect(
            reason(head(206, ["Content-Range": "bytes 0-1000/1001"]))
                == "the file there has 1001 bytes, the one begun has 1000")
        #expect(reason(head(416, ["Content-Range": "bytes */7"])).hasPrefix("the file there has 7 bytes"))
        #expect(
            reason(head(206, ["Content-Range": "bytes 0-999/*"])) == "the length of the file there is not known")
        #expect(
            reason(
                head(206, ["Content-Range": Self.range, "Repr-Digest": otherSha]), Self.known(1000, Self.digest(sha)))
                == "the file there is another one: its validators differ")
        #expect(
            reason(head(206, ["Content-Range": "bytes 5-999/1000"])) == "the server sent the bytes from 5, not from 0")
        #expect(reason(head(206)) == "the length of the file there is not known")
        #expect(reason(head(206, ["Content-Range": Self.range])).hasPrefix("nothing proves"))
        #expect(
            reason(head(206), .init(length: 1000)) == "the server's answer to a range request was not usable")
    }
}
