import TestSupport
import Testing

@testable import FKManifests

@Suite("Releases and accessions") struct ReleaseTests {
    @Test("references") func references() throws {
        #expect(try ReleaseReference(parsing: "gh:o/r").url(at: "https://a") == "https://a/repos/o/r/releases/latest")
        let tagged = try ReleaseReference(parsing: "gh:o/r@v1/x")
        #expect(
            tagged.url(at: "https://a") == "https://a/repos/o/r/releases/tags/v1%2Fx"
                && tagged.description == "gh:o/r@v1/x")
    }

    @Test(
        "what is no reference", arguments: ["gh:", "gh:o", "gh:o/r/x", "gh:o/..", "gh:o/r@", "gh:o/r@a\nb", "gh:o /r"])
    func refused(text: String) { #expect(throws: DownloadError.self) { try ReleaseReference(parsing: text) } }

    @Test("a release: digests, what is not complete yet, a note about a pre-release") func release() async throws {
        let listing = try await AdapterBench.list("gh:o/r") { _, _ in .init(200, StoreAnswers.release) }
        #expect(listing.names == ["tool.tar.gz"] && listing.version == "v2.0")
        #expect(listing.files[0].digests.map(\.hex) == [StoreAnswers.hex("a")] && listing.files[0].size == 14_000)
        #expect(listing.files[0].sources.map(\.url) == ["https://github.com/o/r/releases/download/v2.0/tool.tar.gz"])
        #expect(listing.faults.map(\.name) == ["half.bin"] && listing.faults[0].isIncomplete)
        #expect(listing.notes == ["v2.0 is a pre-release"])
        #expect(listing.asked.map(\.url) == ["https://api.github.com/repos/o/r/releases/latest"])
    }

    @Test("a private repository: its files are asked for at the API, and the token goes there alone")
    func privateFiles() async throws {
        for isPrivate in [true, false] {
            let listing = try await AdapterBench.list("gh:o/r@v2.0", in: ["GH_TOKEN": "ghtok"]) { url, _ in
                .init(200, url.hasSuffix("/o/r") ? #"{"private":\#(isPrivate)}"# : StoreAnswers.release)
            }
            let url = listing.files.first?.sources.first?.url
            #expect(
                url
                    == (isPrivate
                        ? "https://api.github.com/repos/o/r/releases/assets/7"
                        : "https://github.com/o/r/releases/download/v2.0/tool.tar.gz"))
            #expect(listing.asked.allSatisfy { $0.login == "Bearer ghtok" } && listing.asked.count == 2)
        }
    }

    @Test("Gitea's API at another host") func gitea() async throws {
        let listing = try await AdapterBench.list("gh:o/r", in: ["GITHUB_API_URL": "https://git.example/api/v1/"]) {
            _, _ in
            .init(200, StoreAnswers.giteaRelease)
        }
        #expect(listing.asked.map(\.url) == ["https://git.example/api/v1/repos/o/r/releases/latest"])
        #expect(listing.names == ["a.bin"] && listing.files[0].version != nil && listing.files[0].digests.isEmpty)
    }

    @Test("refusals say what they are") func refusals() async throws {
        let limited = try await AdapterBench.list("gh:o/r") { _, _ in
            .init(
                403, "{}",
                [
                    HeaderField("X-RateLimit-Remaining", "0"), HeaderField("X-RateLimit-Limit", "60"),
                    HeaderField("X-RateLimit-Reset", "1714557600"),
                ])
        }
        #expect(
            limited.error?.message.contains("60 requests") == true
                && limited.error?.message.contains("2024-05-01T10:00:00Z") == true)
        #expect(limited.error?.message.contains("GH_TOKEN") == true && limited.asked.count == 1)
        let anonymous = try await AdapterBench.list("gh:o/r") { _, _ in .init(401) }
        #expect(anonymous.error?.message.contains("wants a login: set GH_TOKEN") == true)
        // GitHub's second limit is waited for as a 429 is.
        var once = TaskOptions()
        once.maxAttempts = 1
        let second = try await AdapterBench.list("gh:o/r", once) { _, _ in
            .init(403, #"{"message":"You have exceeded a secondary rate limit"}"#, [HeaderField("Retry-After", "60")])
        }
        #expect(second.error?.isRetryable == true && second.error?.message.contains("limit of requests") == true)
        let missing = try await AdapterBench.list("gh:o/r") { _, _ in .init(404, #"{"message":"Not Found"}"#) }
        #expect(missing.error?.code == .notFound)
        #expect(missing.error?.message.contains("pre-releases") == true && missing.error?.underlying == "Not Found")
        let login = try await AdapterBench.list("gh:o/r", in: ["GITHUB_TOKEN": "x"]) { _, _ in .init(401) }
        #expect(login.error?.message.contains("token") == true)
        let empty = try await AdapterBench.list("gh:o/r") { _, _ in .init(200, #"{"tag_name":"v1","assets":[]}"#) }
        #expect(empty.error?.code == .notFound)
        for body in [
            "", "<html>", "[]", "{}", #"{"tag_name":"v","assets":[{"name":"a"}]}"#,
            #"{"tag_name":"v","assets":[{"name":"a","browser_download_url":"https://h/a","size":-5}]}"#,
        ] {
            let listing = try await AdapterBench.list("gh:o/r") { _, _ in .init(200, body) }
            #expect(listing.error?.code == .protocolViolation, "\(body)")
        }
    }

    // MARK: ENA

    @Test("a file report: the archive's files, those that were submitted, none") func report() async throws {
        let listing = try await AdapterBench.list("ena:prjeb1") { _, _ in .init(200, StoreAnswers.report) }
        #expect(listing.names == ["ERR1/ERR1_1.fastq.gz", "ERR1/ERR1_2.fastq.gz", "ERR2/s#1.bam"])
        #expect(
            listing.files.map(\.size) == [10, 20, 7]
                && listing.files[2].digests.map(\.hex) == [String(repeating: "c", count: 32)])
        #expect(listing.files[2].sources.map(\.url) == ["https://ftp.sra.ebi.ac.uk/vol1/run/ERR2/s%231.bam"])
        #expect(listing.asked[0].url.contains("accession=PRJEB1&result=read_run&fields=run_accession,fastq_ftp"))
        #expect(
            ENAReport.kind(of: "erz12") == .analysis && ENAReport.url(of: "ERZ1", at: "").contains("result=analysis"))
    }

    @Test(
        "what is no report",
        arguments: ["", "{\"message\":\"x\"}", "<html>", "run_accession\n", "run_accession\tfastq_ftp\nERR1\n"])
    func noReport(text: String) async throws {
        let listing = try await AdapterBench.list("ena:ERR1") { _, _ in .init(200, text) }
        #expect(listing.error?.code == .protocolViolation || listing.error?.code == .notFound, "\(listing)")
    }

    @Test("a line that does not fit is left out and named") func badLines() async throws {
        let head = "run_accession\tfastq_ftp\tfastq_bytes\tfastq_md5\n"
        let rows = [
            "ERR1\th/a;h/b\t1\t\n", "../x\th/a\t1\t\n", "ERR2\th/a\tx\t\n", "ERR3\th/a\t1\tzz\n", "ERR4\tnohost\t1\t\n",
            "ERR5\th/ok\t1\t\n",
        ]
        let listing = try await AdapterBench.list("ena:ERR1") { _, _ in .init(200, head + rows.joined()) }
        #expect(listing.names == ["ERR5/ok"] && listing.faults.count == 5, "\(listing.faults)")
    }

    // MARK: The Internet Archive

    @Test("an item: digests, escaped addresses, private files and bad names are left out") func item() async throws {
        let listing = try await AdapterBench.list("ia:item1") { _, _ in .init(200, StoreAnswers.item) }
        #expect(listing.names == ["a b/x#1.mp3", "item1_files.xml"] && listing.faults.count == 1)
        #expect(listing.files[0].sources.map(\.url) == ["https://archive.org/download/item1/a%20b/x%231.mp3"])
        #expect(listing.files[0].digests.map(\.algorithm) == [.sha1, .md5] && listing.files[0].size == 14_000)
        #expect(listing.files[1].digests.isEmpty && listing.leftOut.values.reduce(0, +) == 1)
    }

    @Test("what an archive does not have is not found", arguments: ["ena:ERR1", "ia:item1"])
    func missing(place: String) async throws {
        let listing = try await AdapterBench.list(place) { _, _ in
            place.hasPrefix("ena") ? .init(204) : .init(200, "{}")
        }
        #expect(listing.error?.code == .notFound && listing.error?.message.hasPrefix("The archive has no") == true)
    }

    @Test(
        "no item",
        arguments: ["{}", "{\"is_dark\":true}", "[]", "<html>", "{\"files\":[", "{\"files\":[{\"name\":5}]}", ""])
    func noItem(text: String) async throws {
        let listing = try await AdapterBench.list("ia:item1") { _, _ in .init(200, text) }
        #expect(listing.error != nil || listing.faults.count == 1)
        #expect(listing.files.isEmpty)
    }

    @Test(
        "wrong names are refused before any request",
        arguments: ["ia:a/b", "ia:..", "ena:a b", "ena:x/../y", "ena:é123"])
    func names(text: String) async throws {
        let listing = try await AdapterBench.list(text) { _, _ in .init() }
        #expect(listing.error?.code == .invalidArgument && listing.asked.isEmpty)
    }
}
