import TestSupport
import Testing

@testable import FKManifests

@Suite("Buckets: addresses and listings") struct BucketPageTests {
    @Test("a page of S3: decoded keys, entity tags, the next page, no folder markers") func s3() throws {
        let page = try BucketPage(Array(StoreAnswers.s3.utf8))
        #expect(page.objects.map(\.key) == ["data/a b+c%.bin", "data/ü/x.txt"])
        #expect(page.objects.map(\.size) == [10_485_760, 2])
        #expect(page.objects[0].entityTag == "\"9b2cf535f27731c974343645a3985328-2\"")
        #expect(page.objects[0].modified == 1_714_557_601 && page.objects[0].digests.isEmpty)
        #expect(page.next == "1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J/wm36Hy4vbOwM=" && page.folderCount == 1)
    }

    @Test("a page of Google, whose keys are not encoded") func google() throws {
        let page = try BucketPage(Array(StoreAnswers.google.utf8))
        #expect(page.objects.map(\.key) == ["p/a b.bin"] && page.next == nil)
    }

    @Test("a page of Azure: quoted tags, MD5, encoded names, no folders") func azure() throws {
        let page = try BucketPage(Array(StoreAnswers.azure.utf8))
        #expect(page.objects.map(\.key) == ["p/x.bin", "p/\u{fffe}.bin"] && page.folderCount == 1)
        #expect(page.objects[0].entityTag == "\"0x8DC69C1B2A3D4E5\"" && page.objects[0].modified == 1_714_557_600)
        #expect(page.objects[0].digests.map(\.description) == ["md5=d4dde5e419356896b5d3c4783c3fcfdd"])
        #expect(page.next == "2!76!MDAwMDE2")
    }

    @Test(
        "what is no page is refused",
        arguments: [
            "", "<html/>", "<ListBucketResult>",
            "<ListBucketResult><Contents><Size>1</Size></Contents></ListBucketResult>",
            "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
            "<ListBucketResult><Contents><Key>a</Key><Size>-1</Size></Contents></ListBucketResult>",
            "<ListBucketResult><Contents><Key>a</Key><Size>1e3</Size></Contents></ListBucketResult>",
            "<ListBucketResult><EncodingType>url</EncodingType><Contents><Key>%ff</Key></Contents></ListBucketResult>",
            "<!DOCTYPE a [<!ENTITY x \"y\">]><ListBucketResult>&x;</ListBucketResult>",
            "<ListBucketResult><Contents><Key>\(String(repeating: "k", count: 70_000))</Key></Contents></ListBucketResult>",
            "<ListBucketResult>" + String(repeating: "<a>", count: 200),
            "<ListBucketResult>" + String(repeating: "<Contents><Key>a</Key></Contents>", count: 5_001)
                + "</ListBucketResult>",
            "{\"a\":1}",
        ])
    func refused(text: String) {
        #expect(throws: AnswerFault.self) { try BucketPage(Array(text.utf8)) }
    }

    @Test(
        "times of RFC 3339",
        arguments: [
            ("1970-01-01T00:00:00Z", 0), ("2024-02-29T23:59:59.999Z", 1_709_251_199),
            ("2024-05-01t10:00:00+02:00", 1_714_550_400), ("1999-12-31T23:59:60-00:30", 946_686_600),
            ("2023-02-29T00:00:00Z", nil), ("2024-13-01T00:00:00Z", nil), ("2024-01-01T24:00:00Z", nil),
            ("2024-01-01 00:00:00", nil), ("2024-01-01T00:00:00", nil), ("2024-01-01T00:00:00Zx", nil), ("", nil),
        ] as [(String, Int64?)])
    func times(text: String, seconds: Int64?) { #expect(RFC3339.seconds(text) == seconds) }

    @Test("places") func places() throws {
        let object = try BucketPlace(parsing: "S3://my-bucket/a b/c?d.txt?versionId=x%2F")
        #expect(object.bucket == "my-bucket" && object.key == "a b/c?d.txt" && object.versionID == "x%2F")
        let folder = try BucketPlace(parsing: "gs://b_1.x/data")
        #expect(folder.prefix == "data/" && folder.description == "gs://b_1.x/data")
        let whole = try BucketPlace(parsing: "s3://bucket")
        #expect(whole.prefix == "" && whole.key == "")
        let azure = try BucketPlace(parsing: "az://acc/cont/p/")
        #expect(azure.account == "acc" && azure.bucket == "cont" && azure.prefix == "p/")
        for text in [
            "s3://", "s3:///key", "s3://a b/c", "s3://b/k\nx", "az://acc", "az://a_c/c/k", "s3://../x",
            "s3://b/?versionId=1",
            "s3://b/\(String(repeating: "k", count: 1_025))", "ftp://b/k", "s3://b/d/../up.txt",
            "gs://b/.", "az://a/c/x/..",
        ] {
            #expect(throws: DownloadError.self, "\(text)") { try BucketPlace(parsing: text) }
        }
    }

    @Test("servers of buckets") func servers() throws {
        func base(_ text: String, _ region: String? = nil, _ environment: [String: String] = [:]) throws -> String {
            try BucketServer(BucketPlace(parsing: text), region: region, in: environment).base
        }
        #expect(try base("s3://bucket/k") == "https://bucket.s3.us-east-1.amazonaws.com")
        #expect(try base("s3://bucket/k", "eu-west-1") == "https://bucket.s3.eu-west-1.amazonaws.com")
        #expect(try base("s3://bucket/k", "cn-north-1") == "https://bucket.s3.cn-north-1.amazonaws.com.cn")
        #expect(try base("s3://my.bucket/k") == "https://s3.us-east-1.amazonaws.com/my.bucket")
        #expect(try base("s3://Bucket_1/k") == "https://s3.us-east-1.amazonaws.com/Bucket_1")
        let own = ["AWS_ENDPOINT_URL": "http://h:1/", "AWS_ENDPOINT_URL_S3": "https://minio.example/s3/"]
        #expect(try base("s3://bucket/k", nil, own) == "https://minio.example/s3/bucket")
        #expect(try base("gs://b/k") == "https://storage.googleapis.com/b")
        #expect(try base("gs://b/k", nil, ["STORAGE_EMULATOR_HOST": "localhost:4443"]) == "http://localhost:4443/b")
        #expect(try base("az://acc/cont/k") == "https://acc.blob.core.windows.net/cont")
        let error = #expect(throws: DownloadError.self) { try base("s3://b/k", nil, ["AWS_ENDPOINT_URL": "ftp://h"]) }
        #expect(error?.message.hasPrefix("AWS_ENDPOINT_URL: ") == true)
        let server = try BucketServer(BucketPlace(parsing: "s3://bucket"), in: [:])
        #expect(server.object("a b/ü?#%.txt", versionID: "v/1").hasSuffix("/a%20b/%C3%BC%3F%23%25.txt?versionId=v%2F1"))
        #expect(server.list("a/b", after: "t+/=").hasSuffix("&prefix=a%2Fb&continuation-token=t%2B%2F%3D"))
    }

    @Test("what a store says about a refusal") func refusals() {
        let refusal = BucketRefusal(
            Array("<Error><Code>PermanentRedirect</Code><Message>m</Message><Region>eu-west-1</Region></Error>".utf8))
        #expect(refusal.code == "PermanentRedirect" && refusal.message == "m" && refusal.region == "eu-west-1")
        #expect(BucketRefusal(Array("<Error><Region>evil.example/</Region></Error>".utf8)).region == nil)
        #expect(BucketRefusal(Array("<html>".utf8)).code == "")
    }
}

@Suite("Buckets: listings over requests") struct BucketListingTests {
    private static let keys = [
        "AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "s", "AWS_ENDPOINT_URL": "https://s3.example",
    ]
    private static let open = ["AWS_ENDPOINT_URL": "https://s3.example"]

    private static func page(_ keys: [String], next: String? = nil) -> String {
        "<ListBucketResult><IsTruncated>\(next != nil)</IsTruncated>"
            + (next.map { "<NextContinuationToken>\($0)</NextContinuationToken>" } ?? "")
            + keys.map { "<Contents><Key>\($0)</Key><Size>1</Size><ETag>\"e\"</ETag></Contents>" }.joined()
            + "</ListBucketResult>"
    }

    @Test("pages are joined, names are below the folder, and each object is bound to its entity tag") func pages()
        async throws
    {
        let listing = try await AdapterBench.list("s3://bucket/d", in: Self.open) { url, _ in
            url.contains("continuation-token=2")
                ? .init(200, Self.page(["d/b", "d/sub/c", "x"]))
                : .init(200, Self.page(["d/", "d/a"], next: "2"))
        }
        #expect(listing.names == ["a", "b", "sub/c"] && listing.error == nil)
        #expect(listing.files.allSatisfy { $0.entityTag == "\"e\"" && $0.version == "\"e\"" && $0.size == 1 })
        #expect(listing.files[2].sources.map(\.url) == ["https://s3.example/bucket/d/sub/c"])
        #expect(listing.leftOut.isEmpty, "a marker of a folder is no file")
        #expect(listing.faults.map(\.name) == ["x"], "a key elsewhere: \(listing.faults)")
        #expect(listing.asked.count == 2 && listing.asked.allSatisfy { $0.login == nil })
        #expect(listing.orders?.signature == nil)
    }

    @Test("keys with a part '.' or '..' are faults: a client takes it out of the address, which then is another one's")
    func dots() async throws {
        let listing = try await AdapterBench.list("s3://bucket/d", in: Self.open) { _, _ in
            .init(200, Self.page(["d/.", "d/./a", "d/b/./c", "d/.e", "d/f.", "d/b/../g", "d/..h"]))
        }
        #expect(listing.names == [".e", "f.", "..h"])
        #expect(listing.faults.map(\.name) == [".", "./a", "b/./c", "b/../g"])
    }

    @Test("requests are signed with the owner's keys, unless they are to be anonymous", arguments: [false, true])
    func signed(isAnonymous: Bool) async throws {
        let listing = try await AdapterBench.list("s3://bucket", in: Self.keys) {
            $0.isAnonymous = isAnonymous
        } _: { _, _ in
            .init(200, Self.page(["a"]))
        }
        #expect(
            listing.asked.map { $0.login?.hasPrefix("AWS4-HMAC-SHA256 Credential=AKID/") ?? false } == [!isAnonymous])
        #expect(listing.orders?.signature == (isAnonymous ? nil : "aws:amz:us-east-1:s3"))
        #expect(listing.orders?.address == "https://s3.example/bucket")
    }

    @Test(
        "a bucket in another region is asked there, once",
        arguments: [(301, "x-amz-bucket-region"), (400, ""), (301, "")])
    func region(status: Int, field: String) async throws {
        var keys = Self.keys
        keys["AWS_ENDPOINT_URL"] = nil
        let listing = try await AdapterBench.list("s3://bucket", in: keys) { url, login in
            if login?.contains("/eu-west-1/") == true, url.contains(".s3.eu-west-1.") {
                return .init(200, Self.page(["a"]))
            }
            return .init(
                status, field.isEmpty ? "<Error><Code>c</Code><Region>eu-west-1</Region></Error>" : "",
                field.isEmpty ? [] : [HeaderField(field, "eu-west-1")])
        }
        #expect(listing.names == ["a"] && listing.asked.count == 2)
        #expect(listing.orders?.signature == "aws:amz:eu-west-1:s3")
        #expect(listing.orders?.address == "https://bucket.s3.eu-west-1.amazonaws.com")
        // A store that sends on and on is not followed.
        let lost = try await AdapterBench.list("s3://bucket", in: keys) { url, _ in
            .init(301, "", [HeaderField("x-amz-bucket-region", url.contains("eu-west-1") ? "us-east-2" : "eu-west-1")])
        }
        #expect(lost.error?.status == 301 && lost.asked.count == 2)
    }

    @Test("a listing without an end is refused") func endless() async throws {
        let loop = try await AdapterBench.list("s3://bucket", in: Self.open) { _, _ in
            .init(200, Self.page(["a"], next: "t"))
        }
        #expect(loop.error?.code == .protocolViolation && loop.asked.count == 2)
        let count = Locked(0)
        let empty = try await AdapterBench.list("s3://bucket", in: Self.open) { _, _ in
            .init(200, Self.page([], next: "t\(count.withLock { $0 += 1; return $0 })"))
        }
        #expect(empty.error?.message.contains("does not end") == true && empty.asked.count == 101)
    }

    @Test("a page that is cut off is an error: nothing of the listing is used") func cut() async throws {
        let listing = try await AdapterBench.list("s3://bucket", in: Self.open) { url, _ in
            url.contains("continuation")
                ? .init(200, "<ListBucketResult><Contents>") : .init(200, Self.page(["a"], next: "2"))
        }
        #expect(listing.error?.code == .protocolViolation)
    }

    @Test(
        "a refusal says what it is",
        arguments: [
            (404, "NoSuchBucket", "There is no bucket"), (403, "AccessDenied", "AWS_PROFILE"), (401, "", "AWS_PROFILE"),
            (403, "SignatureDoesNotMatch", "the secret key is wrong. A public bucket may be read with --anonymous"),
            (403, "InvalidAccessKeyId", "the access key is unknown there"),
            (403, "RequestTimeTooSkewed", "set the clock"),
        ])
    func refused(status: Int, code: String, text: String) async throws {
        let isOpen = status == 404 || text == "AWS_PROFILE"
        let listing = try await AdapterBench.list("s3://bucket", in: isOpen ? Self.open : Self.keys) { _, _ in
            .init(status, "<Error><Code>\(code)</Code><Message>said</Message></Error>")
        }
        #expect(listing.error?.status == status && listing.error?.message.contains(text) == true)
        #expect((listing.error?.code == .notFound) == (status == 404))
        #expect(code.isEmpty || listing.error?.message.contains("said") == true)
    }

    @Test("one object: by its head; a folder of the name of an object is that object") func single() async throws {
        let one = try await AdapterBench.list("s3://bucket/d/k.bin", in: Self.open) {
            $0.isSingle = true
        } _: { _, _ in
            .init(
                200, "bytes",
                [HeaderField("ETag", "\"t\""), HeaderField("Last-Modified", "Wed, 01 May 2024 10:00:00 GMT")])
        }
        #expect(one.names == ["k.bin"] && one.files[0].entityTag == "\"t\"" && one.files[0].size == 5)
        #expect(one.asked.map(\.url) == ["https://s3.example/bucket/d/k.bin"])
        let folder = try await AdapterBench.list("s3://bucket/d/k.bin", in: Self.open) { url, _ in
            .init(200, Self.page(url.contains("prefix=d%2Fk.bin%2F") ? [] : ["d/k.bin"]))
        }
        #expect(folder.names == ["k.bin"] && folder.asked.count == 2)
        let none = try await AdapterBench.list("s3://bucket/none", in: Self.open) { _, _ in .init(200, Self.page([])) }
        #expect(none.error?.code == .notFound)
        let bucket = try await AdapterBench.list("s3://bucket", in: Self.open) {
            $0.isSingle = true
        } _: { _, _ in
            .init()
        }
        #expect(bucket.error?.code == .invalidArgument && bucket.asked.isEmpty)
    }

    @Test("Google's token and Azure's signature go to their store alone, and the tasks know the store") func tokens()
        async throws
    {
        let google = try await AdapterBench.list(
            "gs://pub/p", in: ["GOOGLE_OAUTH_ACCESS_TOKEN": "gtok"]
        ) { _, _ in .init(200, StoreAnswers.google) }
        #expect(google.names == ["a b.bin"] && google.asked.map(\.login) == ["Bearer gtok"])
        #expect(google.orders?.attributes == ["source-token": "gs"])
        let azure = try await AdapterBench.list("az://acc/cont/p", in: ["AZURE_STORAGE_SAS_TOKEN": "?sv=1&sig=x%3D"]) {
            url, _ in
            .init(
                200,
                url.contains("marker=")
                    ? StoreAnswers.azure.replacing("2!76!MDAwMDE2", with: "").replacing("x.bin", with: "y.bin")
                    : StoreAnswers.azure)
        }
        #expect(azure.asked.allSatisfy { $0.url.hasSuffix("&sv=1&sig=x%3D") } && azure.asked.count == 2)
        #expect(azure.files.allSatisfy { !($0.sources.first?.url.contains("sig=") ?? true) })
    }
}

@Suite("Credentials of AWS from servers and programs") struct AWSCredentialFinderTests {
    private func place(_ environment: [String: String], isInstance: Bool = false) throws -> AWSCredentialFinder.Place? {
        let environment = environment.merging(["HOME": environment["HOME"] ?? "/nonexistent"]) { $1 }
        return try AWSCredentialFinder.place(in: environment, AWSProfile(in: environment), isInstance: isInstance)
    }

    @Test("each place, in its order") func places() throws {
        let web = ["AWS_WEB_IDENTITY_TOKEN_FILE": "/t", "AWS_ROLE_ARN": "arn"]
        let container = ["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/v2/x"]
        let keys = ["AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"]
        #expect(try place(web.merging(container) { $1 }) == .webIdentity(tokenFile: "/t", role: "arn", session: "fk"))
        #expect(try place(container, isInstance: true) == .container(url: "http://169.254.170.2/v2/x", token: nil))
        #expect(try place([:], isInstance: true) == .instance(endpoint: "http://169.254.169.254"))
        #expect(try place(["AWS_EC2_METADATA_DISABLED": "TRUE"], isInstance: true) == nil && place([:]) == nil)
        #expect(try place(keys.merging(web) { $1 }) == nil)
        let folder = try TemporaryFolder()
        let config = try folder.write(
            Array("[default]\nregion=r-1\n[profile lab]\ncredential_process = p --x\n".utf8), to: "config")
        #expect(try place(["AWS_CONFIG_FILE": config.path, "AWS_PROFILE": "lab"]) == .program("p --x"))
        let named = ["AWS_CONFIG_FILE": config.path, "HOME": "/nonexistent"]
        #expect(try AWSCredentials.region(named) == "r-1")
    }

    @Test("an endpoint that would send a token over the network without TLS is refused") func endpoints() throws {
        for host in ["127.0.0.1:1", "localhost", "[::1]:80", "169.254.170.23"] {
            #expect(try place(["AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://\(host)/c"]) != nil)
        }
        #expect(try place(["AWS_CONTAINER_CREDENTIALS_FULL_URI": "https://h.example/c"]) != nil)
        #expect(throws: DownloadError.self) { try place(["AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://h.example/c"]) }
    }

    @Test("answers") func answers() throws {
        let json = try AWSCredentialFinder.Answer(
            json: Array(
                #"{"Code":"Success","AccessKeyId":"A","SecretAccessKey":"s","Token":"t","Expiration":"2024-05-01T10:00:00Z"}"#
                    .utf8))
        #expect(
            json.keys == AWSCredentials(accessKeyID: "A", secretAccessKey: "s", sessionToken: "t")
                && json.ends == 1_714_557_600)
        for text in [
            "", "[]", "{}", #"{"Code":"Failed"}"#, #"{"AccessKeyId":"A\r\nX: y","SecretAccessKey":"s"}"#,
            #"{"AccessKeyId":"A","SecretAccessKey":"s","Expiration":"soon"}"#,
        ] {
            #expect(throws: AnswerFault.self, "\(text)") { try AWSCredentialFinder.Answer(json: Array(text.utf8)) }
        }
        let xml = try AWSCredentialFinder.Answer(
            xml: Array(
                """
                <AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult>\
                <Credentials><SessionToken>t</SessionToken><SecretAccessKey>s</SecretAccessKey><Expiration>2024-05-01T10:00:00Z</Expiration>\
                <AccessKeyId>A</AccessKeyId></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>
                """.utf8))
        #expect(xml == json)
        #expect(throws: AnswerFault.self) { try AWSCredentialFinder.Answer(xml: Array("<Error/>".utf8)) }
    }

    @Test("words of a command line") func words() {
        #expect(AWSCredentialFinder.words(of: #"  a "b c" 'd\' e\ f "" "#) == ["a", "b c", "d\\", "e f", ""])
        #expect(AWSCredentialFinder.words(of: #"a "b"#) == nil && AWSCredentialFinder.words(of: "a\\") == nil)
    }

    @Test("credentials that end soon are renewed, and those that have ended are not used") func book() {
        let book = AWSCredentialBook()
        let keys = AWSCredentials(accessKeyID: "A", secretAccessKey: "s")
        #expect(book.present == nil && book.mustRenew)
        book.store(keys, seconds: 3_600)
        #expect(book.present == keys && !book.mustRenew)
        book.store(keys, seconds: 100)
        #expect(book.present == keys && book.mustRenew)
        book.store(keys, seconds: -1)
        #expect(book.present == nil && book.mustRenew)
        let before = ContinuousClock.now
        book.store(keys, seconds: nil)
        #expect(book.present == keys && !book.mustRenew)
        // The refusal of a request that was on its way with other credentials says nothing of these.
        book.recordRefusal(began: before)
        #expect(!book.mustRenew)
        book.recordRefusal(began: .now)
        #expect(book.present == keys && book.mustRenew)
    }
}
