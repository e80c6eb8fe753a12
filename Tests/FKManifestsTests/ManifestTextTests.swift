import Testing

@testable import FKManifests

@Suite("Lists of addresses") struct ManifestTextTests {
    @Test(
        "One address a line; comments, empty lines, the byte order mark and the kind of line end do not matter",
        arguments: ["\n", "\r\n", "\r"])
    func plain(end: String) throws {
        let lines = ["\u{feff}# list", "", "http://h/a", "  # indented comment", "https://h/b\thttp://m/b", ""]
        let manifest = try Manifest(lines.joined(separator: end))
        #expect(manifest.form == .urls)
        #expect(manifest.urls == [["http://h/a"], ["https://h/b", "http://m/b"]])
        #expect(manifest.entries.map(\.line) == [3, 5])
    }

    @Test("aria2's options belong to the address above them") func options() throws {
        let manifest = try Manifest(
            """
            http://h/a
              out=sub/a.bin
              dir=/data
              checksum=sha-256=\(SampleDigest.sha256)
              header=X-A: 1
              referer=*
              user-agent=me/1
              split=8
              max-connection-per-server=4
              bt-max-peers=3
            http://h/b
              bt-max-peers=4
              seed-time=0
            """)
        #expect(manifest.form == .aria2)
        let entry = manifest.entries[0]
        #expect(entry.name == "sub/a.bin" && entry.directory == "/data")
        #expect(try entry.digests == [Checksum(.sha256, hex: SampleDigest.sha256)])
        #expect(entry.headers == [.init("X-A", "1"), .init("Referer", "http://h/a"), .init("User-Agent", "me/1")])
        #expect(
            entry.options.map(\.name) == [
                "referer", "user-agent", "split", "max-connection-per-server", "bt-max-peers",
            ])
        #expect(manifest.ignoredOptions == ["bt-max-peers", "seed-time"])
    }

    @Test(
        "What aria2's options mean for a task",
        arguments: [
            (["split=8", "max-connection-per-server=4"], TaskOptions.with { $0.connections = .fixed(4) }),
            (["split=1000"], TaskOptions.with { $0.connections = .fixed(256) }),
            (["max-download-limit=2M"], TaskOptions.with { $0.rateLimit = 2 << 20 }),
            (["max-download-limit=0"], TaskOptions()),
            (["max-tries=0"], TaskOptions.with { $0.maxAttempts = 1_001 }),
            (["max-tries=7"], TaskOptions.with { $0.maxAttempts = 7 }),
            (["timeout=20", "connect-timeout=60"], TaskOptions.with { $0.timeout = .seconds(60) }),
            (["all-proxy=http://p:1", "http-proxy=http://q:2"], TaskOptions.with { $0.proxy = "http://q:2" }),
            (["https-proxy=http://p:1"], TaskOptions()),
            (["no-netrc=false"], TaskOptions.with { $0.netrc = true }),
            (["allow-overwrite=true"], TaskOptions.with { $0.existing = .overwrite }),
            (["auto-file-renaming=false"], TaskOptions.with { $0.existing = .refuse }),
            (["auto-file-renaming=true", "allow-overwrite=false"], TaskOptions.with { $0.existing = .rename }),
        ])
    func meaning(lines: [String], wanted: TaskOptions) throws {
        let entry = try Manifest("http://h/a\n" + lines.map { "  \($0)\n" }.joined()).entries[0]
        var options = TaskOptions()
        Aria2Options.apply(entry.options, url: entry.sources[0].url, to: &options)
        #expect(options == wanted)
    }

    @Test(
        "Values that aria2 does not take are refused with their line",
        arguments: [
            "split=0", "split=x", "split=-1", "max-connection-per-server=17", "max-tries=", "timeout=0", "timeout=601",
            "max-download-limit=1G", "max-download-limit=99999999999999999999K", "allow-overwrite=yes",
            "all-proxy=ftp://p", "user-agent=a\u{1}b",
        ])
    func values(option: String) {
        let name = option.prefix { $0 != "=" }
        #expect(Manifest.fault(in: "http://h/a\n \(option)").hasPrefix("aria2 list, line 2: option '\(name)'"))
    }

    @Test("A proxy's password is in no message") func secret() {
        #expect(!Manifest.fault(in: "http://h/a\n all-proxy=http://u:canary@").contains("canary"))
    }

    @Test(
        "Secrets of a list are in no message",
        arguments: [
            "https://u:s3cret@h/a?token=canary,name\n", "https//u:s3cret@h/a?token=canary\n",
            "http://h/a u:s3cret@h/b?token=canary\n", "http://h/a\n max-tries=http://u:s3cret@h/?token=canary\n",
            "{\"https://u:s3cret@h/b?token=canary\":1}",
            "<metalink xmlns=\"urn:ietf:params:xml:ns:metalink\"><file name=\"c\"><url>http//u:s3cret@h/?token=canary</url></file></metalink>",
        ])
    func secrets(text: String) throws {
        var shown = Manifest.fault(in: text) + Manifest.fault(in: text, as: .csv)
        if let list = try? Manifest(text) { shown += "\(list.faults)" }
        #expect(shown.contains("***") && !shown.contains("s3cret") && !shown.contains("canary"), "\(shown)")
    }

    @Test("A relative line is a URL: its query stays, and a host in front replaces the base's") func relative() throws {
        let text = "sub/3.bin?x=1\n//other:80/h.bin\n../a#md5=\(SampleDigest.hex(.md5))\n"
        let list = try Manifest(text, as: .urls, base: "http://h/q/")
        #expect(list.urls == [["http://h/q/sub/3.bin?x=1"], ["http://other:80/h.bin"], ["http://h/a"]])
        #expect(list.entries[2].digests.count == 1)
    }

    @Test(
        "A line that is no path is a fault with its line",
        arguments: [
            ("sha256:\(SampleDigest.sha256)  a.bin", "'a.bin' stands behind the URL"),
            ("a.bin: OK", "'OK' stands behind the URL"), ("please log in first", "'log' stands behind the URL"),
            ("out=one.dat", "'out=' is an option of the URL above it"),
            ("http://h/a,http://h/b", "a second URL stands behind a comma"),
            ("http://h/a;https://h/b", "a second URL stands behind a comma"),
        ])
    func noPath(line: String, reason: String) throws {
        let list = try Manifest("http://h/good\n\(line)\n", as: .urls, base: "http://h/q/", skips: true)
        #expect(list.urls == [["http://h/good"]] && list.faults.map(\.line) == [2])
        #expect(list.faults.first?.reason.contains(reason) == true, "\(list.faults)")
        // A query may have URLs.
        let query = "http://h/?of=http://h/a,http://h/b"
        #expect(try Manifest("\(query)\n").urls == [[query]])
    }

    @Test(
        "An address that curl expands is refused with its line",
        arguments: ["http://h/{a,b}", "http://h/[1-3].bin", "http://{a,b}.h/"])
    func curlPattern(url: String) throws {
        #expect(Manifest.fault(in: "# c\nurl = \(url)\n").contains("curl config, line 2: curl expands"))
        #expect(try Manifest("url = \(url)\ngloboff\n").urls == [[url]])
        #expect(try Manifest("url = http://[::1]/a\n").urls == [["http://[::1]/a"]])
    }

    @Test("An address without a scheme: the message has one that can be used") func noScheme() {
        #expect("//h/a".urlFault == "'//h/a' has no scheme; write https://h/a")
        #expect("  ".urlFault == "the URL is empty")
    }

    @Test("A bad line refuses the list, or leaves its entry out") func bad() throws {
        let text = "http://h/a\nnonsense\n  out=x\nhttp://h/b\n  out=../x\n  split=2\nhttp://h/c\n"
        #expect(
            Manifest.fault(in: text)
                == "URL list, line 2: 'nonsense' is no URL: it has no scheme. For a path below a folder of a server, give that folder with --base URL"
        )
        let manifest = try Manifest(text, skips: true)
        #expect(manifest.urls == [["http://h/a"], ["http://h/c"]])
        #expect(manifest.faults.map(\.line) == [2, 5])
        #expect(manifest.faultCount == 2)
    }

    @Test("Portions of any length give the same list", arguments: [1, 2, 3, 7, 64]) func portions(length: Int) throws {
        let text = "\u{feff}http://h/a\r\n  out=x\r\n\r\n# c\rhttp://h/b\n\n\thttp-no-cache=true\nhttp://h/c"
        let bytes = Array(text.utf8)
        var reader = ManifestReader(.urls)
        var entries: [Manifest.Entry] = []
        for start in stride(from: 0, to: bytes.count, by: length) {
            try reader.take(Array(bytes[start..<min(start + length, bytes.count)]))
            entries += reader.takeEntries()
        }
        let rest = try reader.finish()
        #expect(entries + rest.entries == (try Manifest(text).entries))
    }

    @Test("Entries that were taken are not kept: memory is bounded by a portion") func streaming() throws {
        var reader = ManifestReader(.urls)
        var taken = 0
        var most = 0
        let portion = Array((0..<1_000).map { "http://h/\($0)\n" }.joined().utf8)
        for _ in 0..<20 {
            try reader.take(portion)
            let entries = reader.takeEntries()
            taken += entries.count
            most = max(most, entries.count)
        }
        #expect(try reader.finish().entries.count + taken == 20_000)
        #expect(most <= 1_000)
    }

    @Test("A list that is too long, or has too many entries, is refused") func limits() {
        var reading = Manifest.Reading()
        reading.maxBytes = 20
        #expect(throws: ManifestError(form: .urls, "the list is longer than 20 bytes: divide it")) {
            try Manifest(parsing: Array("http://h/a\nhttp://h/b\n".utf8), reading)
        }
        reading = Manifest.Reading()
        reading.maxEntries = 1
        #expect(throws: ManifestError(form: .urls, line: 2, "the list has more than 1 entries: divide it")) {
            try Manifest(parsing: Array("http://h/a\nhttp://h/b\n".utf8), reading)
        }
    }
}

extension TaskOptions {
    fileprivate static func with(_ change: (inout TaskOptions) -> Void) -> TaskOptions {
        var options = TaskOptions()
        change(&options)
        return options
    }
}
