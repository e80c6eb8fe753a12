import TestSupport
import Testing

@testable import fk

@Suite("What a run says about its tasks") struct RunTextTests {
    private let now = Date(timeIntervalSince1970: 1_000_000)

    private func info(_ url: String, state: DownloadState = .action) -> DownloadInfo {
        DownloadInfo(id: TaskID(url: url), url: url, state: state)
    }

    @Test("Waiting tasks are counted with reason and time") func waiting() {
        func line(_ count: Int, _ sample: [Waiting]) -> String? { WaitText.line(count: count, sample, now: now) }
        let paused = Waiting(.host, until: now + 118, host: "example.com")
        let slot = Waiting(.slot, limit: 3)
        #expect(line(0, [paused]) == nil)
        #expect(line(12, []) == "12 waiting")
        #expect(line(12, [paused]) == "12 waiting: example.com asked for 1m58s")
        #expect(line(12, [slot, paused, paused]) == "12 waiting: example.com asked for 1m58s; all 3 slots are taken")
        #expect(line(1, [Waiting(.slot, limit: 1)]) == "1 waiting: the only slot is taken")
        #expect(line(2, [Waiting(.host, host: "h", limit: 6)]) == "2 waiting: h has 6 of 6 connections")
        #expect(line(2, [Waiting(.retry, until: now + 5)]) == "2 waiting: next attempt in 5s")
        #expect(line(2, [Waiting(.retry, until: now - 5)]) == "2 waiting: next attempt in 0s")
        #expect(line(2, [Waiting(.noSpace)]) == "2 waiting: no space on the disk")
        let many = (1...9).map { Waiting(.host, until: now + 60, host: "h\($0)") }
        #expect(line(9, many) == "9 waiting: h1 asked for 1m00s; h2 asked for 1m00s; h3 asked for 1m00s")
    }

    @Test("The row of a task that waits for its next attempt says when, which, and why") func note() {
        var info = info("http://h/a.bin", state: .idle)
        info.wait = Waiting(.retry, until: now + 9)
        info.attempts = 1
        info.maxAttempts = 5
        info.error = DownloadError(.httpStatus, "The server answered 503.")
        func note() -> String? { TaskLine(info, meters: RunMeters(), time: 0, now: now).note }
        #expect(note() == "attempt 2 of 5 in 9s: The server answered 503.")
        info.maxAttempts = nil
        info.error = nil
        #expect(note() == "attempt 2 in 9s")
        info.wait = Waiting(.retry, until: now + 118, host: "h")
        info.maxAttempts = 5
        #expect(note() == "h asked for 1m58s, attempt 2 of 5")
    }

    @Test("A running task without a byte for five seconds says so") func silence() {
        var meters = RunMeters()
        let info = info("http://h/a.bin")
        for second in 0...8 { meters.look([info], fetched: 0, time: Int64(second) * 1_000_000_000) }
        #expect(meters.silence(of: info.id, at: 8_500_000_000) == 8)
        #expect(meters.silence(of: info.id, at: 4_000_000_000) == nil)
        #expect(TaskLine(info, meters: meters, time: 8_500_000_000, now: now).silence == 8)
        meters.look([], fetched: 0, time: 9_000_000_000)
        #expect(meters.silence(of: info.id, at: 99_000_000_000) == nil, "a task that does not run is not silent")
    }

    @Test("Same names are told apart by the first part that differs") func names() {
        func labels(_ urls: [String]) -> [String?] { DistinctNames.labels(urls.map { info($0) }) }
        #expect(labels(["http://a/x.zip", "http://b/y.zip"]) == [nil, nil])
        #expect(labels(["http://a/x.zip", "http://b/x.zip", "http://a/y.zip"]) == ["a", "b", nil])
        #expect(labels(["http://a/1/x.zip", "http://a/2/x.zip"]) == ["1", "2"])
        #expect(labels(["http://a/x.zip?v=1", "http://a/x.zip?v=2"]) == ["v=1", "v=2"])
        let ids = labels(["http://a/x.zip?token=1", "http://a/x.zip?token=2"])
        #expect(ids[0] != ids[1] && ids[0]?.count == 12, "secrets are masked, so the ids are shown")
        #expect(labels([]) == [])
    }

    @Test("Permanent lines tell files of one name apart") func seenNames() {
        var seen = SeenNames()
        func label(_ url: String) -> String? { seen.add(info(url)) }
        #expect(label("http://a/1/x.zip") == nil && label("http://a/1/x.zip") == nil)
        #expect(
            label("http://a/2/x.zip") == "2" && label("http://b/3/x.zip") == "b" && label("http://a/1/x.zip") == "1")
        #expect(label("http://a/1/x.zip?v=1") == "v=1" && label("http://a/1/y.zip") == nil)
        #expect(label("http://a/1/x.zip?token=1") == "token=***" && label("http://a/1/x.zip?token=2")?.count == 12)
        for index in 0..<5_000 { #expect(label("http://a/\(index)") == nil) }
        #expect(label("http://b/x.zip") == nil, "only the newest names are kept")
        let line = FinishedLine(name: "x.zip", label: "2", outcome: .complete, bytes: 5)
        #expect(line.text(columns: nil, usesColor: false, usesUnicode: true).hasPrefix("✓ x.zip (2)  "))
    }

    @Test("The end of a run lists failures with their reasons, and one command that tries them again") func failures() {
        var failures = RunFailures()
        func lines(_ count: Int) -> [String] { failures.lines(failed: count) { "\($0) --work-path /w" } }
        #expect(lines(0) == [])
        var failed = info("http://u:p@h/a?token=s&v=1", state: .error)
        failed.error = DownloadError(.httpStatus, "The server answered 503.", isRetryable: true)
        failures.add(failed)
        #expect(
            lines(1) == [
                "  http://***@h/a?token=***&v=1  The server answered 503.", "Try it again with:",
                "fk retry --run \(failed.id.short) --work-path /w",
            ])
        #expect(failures.lines(failed: 1, repeatsReasons: false) { $0 }.count == 2)
        failures.remove(failed.id)
        #expect(lines(0) == [])
        for number in 0..<34 {
            var failed = info("http://h/\(number)", state: .error)
            failed.error = DownloadError(.httpStatus, number < 4 ? "a\nb\u{1b}" : "No.", isRetryable: true)
            failures.add(failed)
            failures.add(failed)
            if number == 4 { #expect(lines(5).count == 7 && lines(5)[0] == "  http://h/0  a\\nb\\e") }
        }
        #expect(
            lines(40) == [
                "  30 files h: No.", "  4 files  h: a\\nb\\e", "  and 6 more",
                "Each with its reason: fk list --state failed --work-path /w", "Try them again with:",
                "fk retry --run --work-path /w",
            ], "more than five are grouped by host and reason, and the command is shorter than a line")
        var uncreated = RunFailures()
        uncreated.add(uncreated: "http://h/x", DownloadError(.invalidURL, "No."))
        #expect(uncreated.lines(failed: 0) { $0 } == ["  http://h/x  No."])
    }

    @Test("A failure behind a redirect names its host") func otherHost() {
        var failed = info("http://h/a", state: .error)
        var error = DownloadError(.tls, "No.", url: "https://cdn.example/a?token=***", underlying: "expired")
        failed.error = error
        var failures = RunFailures()
        failures.add(failed)
        #expect(failures.lines(failed: 1) { $0 }.first == "  http://h/a  No. [cdn.example] (expired)")
        error.url = "https://h/b"
        #expect(error.shortText(of: "http://h/a") == "No. (expired)")
    }

    @Test("The command to try again is for what can pass, and the rest gets the option that helps")
    func advice() {
        var failures = RunFailures()
        func fail(_ url: String, _ code: DownloadError.Code, status: Int? = nil, retry: Bool = false) {
            var info = info(url, state: .error)
            info.error = DownloadError(code, "No.", status: status, isRetryable: retry)
            failures.add(info)
        }
        func rest(_ count: Int) -> [String] { failures.lines(failed: count, repeatsReasons: false) { $0 } }
        fail("http://h/1", .httpStatus, status: 404)
        #expect(rest(1).count == 1 && rest(1)[0].contains("fk relink"), "no command to try again")
        fail("http://h/2", .httpStatus, status: 404)
        #expect(rest(2).count == 1, "each advice once")
        for remedy in [Remedy.raiseMaxSize, .nameAuthority, .giveLogin] {
            var info = info("http://h/\(remedy)", state: .error)
            info.error = DownloadError(.tls, "No.", remedy: remedy)
            failures.add(info)
        }
        let reasons = failures.lines(failed: 5) { $0 }
        for option in ["--max-size", "--cacert", "--user"] { #expect(reasons.contains { $0.contains(option) }) }
        #expect(rest(5).count == 1, "the reasons name their options")
        fail("http://h/6", .httpStatus, status: 503, retry: true)
        let id = TaskID(url: "http://h/6").short
        #expect(rest(6).suffix(2) == ["Try it again with:", "fk retry --run \(id)"])
        failures.remove(TaskID(url: "http://h/6"))
        #expect(rest(5).count == 1)
    }

    @Test(
        "The advice is by the cause",
        arguments: [
            (403, "http://h/a?X-Amz-Signature=abc", "expires"), (403, "http://h/a", "--user-agent"),
            (403, "https://b.s3.eu-west-1.amazonaws.com/a", "--aws-sigv4"),
            (401, "https://h/v2/o/r/blobs/sha256:0a", "oci:REGISTRY"), (404, "http://h/a", "typo"),
            (410, "http://h/a", "for good"), (416, "http://h/a", "fk forget"), (451, "http://h/a", "legal"),
            (500, "http://h/a", nil),
        ])
    func causes(status: Int, url: String, word: String?) {
        let error = DownloadError(.httpStatus, "No.", status: status)
        let advice = RunFailures.advice(error, of: url, hasBytes: true)
        #expect(word.map { advice?.contains($0) == true } ?? (advice == nil), "\(advice ?? "")")
        // A 416 to a request without a range is not about received bytes.
        #expect(RunFailures.advice(error, of: url, hasBytes: false) == (status == 416 ? nil : advice))
    }

    @Test("A line about a run without a terminal") func status() {
        var total = TotalLine(complete: 2, error: 1, total: 12, received: 65_536_000, expected: 209_715_200, rate: 5e7)
        let running = (1...5).map { TaskLine(name: "f\($0)", received: Int64($0), expected: 10) }
        #expect(StatusLine.text([], total, usesUnicode: true) == nil)
        #expect(
            StatusLine.text(running, total, usesUnicode: true)
                == "2 of 12 complete, 1 failed, 62.5/200 MiB, 47.7 MiB/s, 3s left; f1 10%, f2 20%, f3 30%, and 2 more")
        total.isLowerBound = true
        total.waiting = "7 waiting: h asked for 5s"
        #expect(
            StatusLine.text([], total, usesUnicode: true)
                == "2 of 12 complete, 1 failed, 62.5/≥200 MiB, 47.7 MiB/s; 7 waiting: h asked for 5s")
        var silent = TaskLine(name: "a\u{1b}", received: 5)
        silent.silence = 8
        let single = TotalLine(complete: 0, total: 1, received: 5)
        #expect(StatusLine.text([silent], single, usesUnicode: true) == "5 B; a\\e no data for 8s")
        #expect(StatusLine.interval([:]) == 30 && StatusLine.interval(["FK_STATUS_INTERVAL": "x"]) == 30)
        #expect(StatusLine.interval(["FK_STATUS_INTERVAL": "1"]) == 1)
    }
}
