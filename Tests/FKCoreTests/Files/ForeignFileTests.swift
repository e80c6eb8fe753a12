import TestSupport
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// What somebody may do to a finished file, or put in its place.
enum Meddling: CaseIterable, CustomTestStringConvertible {
    case replaced, replacedAtTheSameTime, copiedOver, editedInPlace, symlink, folder, restored

    var testDescription: String { "\(self)" }

    /// The bytes that bear the name afterwards; nil where it is no file.
    @discardableResult
    func meddle(with path: String) throws -> [UInt8]? {
        let own = try #require(FileIdentity(path: path))
        let mine = [UInt8](repeating: 7, count: Int(own.length))
        let other = path + ".mine"
        switch self {
        case .replaced, .replacedAtTheSameTime:
            try write(mine, other)
            if self == .replacedAtTheSameTime { try setTime(own.time, of: other) }
            #expect(rename(other, path) == 0)
        case .copiedOver:
            try write(mine, other)
            try setTime(1_577_836_800_000_000_000, of: other)
            _ = try Program.run("cp", ["-p", other, path])
            unlink(other)
        case .editedInPlace:
            try overwrite(path, with: mine)
            try setTime(own.time + 1_000_000, of: path)
        case .symlink:
            try write(mine, path + ".target")
            unlink(path)
            #expect(Foundation.symlink(path + ".target", path) == 0)
            return nil
        case .folder:
            unlink(path)
            #expect(mkdir(path, 0o700) == 0)
            return nil
        case .restored:
            // Ours it was, and the copy has its bytes and times: but nothing shows that it is no backup.
            _ = try Program.run("cp", ["-a", path, other])
            #expect(rename(other, path) == 0)
            return nil
        }
        return mine
    }

    private func write(_ bytes: [UInt8], _ path: String) throws {
        try Data(bytes).write(to: URL(fileURLWithPath: path))
    }
}

@Suite("Files of others")
struct ForeignFileTests {
    static let content = Bytes.pattern(count: 1_000)

    private func complete(_ change: (inout TaskDescription) -> Void = { _ in }) async throws -> (Bench, TaskID) {
        let bench = try await Bench(content: Self.content)
        let id = try await bench.completed("a", change)
        return (bench, id)
    }

    @Test("trash leaves what is not the file as the task left it, and names it", arguments: Meddling.allCases)
    func trash(_ meddling: Meddling) async throws {
        let (bench, id) = try await complete()
        let bytes = try meddling.meddle(with: bench.out + "/a")
        let result = try #require(try await bench.control.trash(.id(id)).first)
        #expect(result.after == .unknown && result.note.contains("\(bench.out)/a stays"))
        #expect(FileIdentity(path: bench.out + "/a") != nil)
        if let bytes { #expect(try bench.out("a") == bytes) }
    }

    @Test("what changes no byte of it leaves it the task's own: trash deletes it")
    func trashOwn() async throws {
        let (bench, id) = try await complete()
        #expect(chmod(bench.out + "/a", 0o400) == 0)
        #expect(link(bench.out + "/a", bench.out + "/link") == 0)
        #expect(rename(bench.out + "/a", bench.out + "/b") == 0 && rename(bench.out + "/b", bench.out + "/a") == 0)
        let result = try #require(try await bench.control.trash(.id(id)).first)
        #expect(result.note.contains("deleted \(bench.out)/a"))
        #expect(bench.names == ["link"])
        #expect(try bench.out("link") == Self.content)
    }

    @Test("trash of a task whose file another task has replaced leaves that one's file")
    func trashReplaced() async throws {
        let (bench, id) = try await complete { $0.fileName = "same" }
        let other = try await bench.completed("other") {
            $0.fileName = "same"
            $0.options.existing = .overwrite
        }
        #expect(try await bench.control.trash(.id(id))[0].note.contains("stays"))
        #expect(bench.names == ["same"])
        #expect(try await bench.control.trash(.id(other))[0].note.contains("deleted"))
        #expect(bench.names == [])
    }

    @Test("retry leaves a finished file that somebody has cut, also if the task was allowed to replace another file")
    func retryOfCutFile() async throws {
        let (bench, id) = try await complete { $0.options.existing = .overwrite }
        let path = bench.out + "/a"
        try Data([1]).write(to: URL(fileURLWithPath: path))
        #expect(try await bench.control.retry(.id(id))[0].applied)
        #expect(await bench.finished(id)?.path == bench.out + "/a.1")
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == Data([1]))
    }

    @Test("a record of an earlier version says length and times: a file of neither stays", arguments: [nil, -3.0, 3.0])
    func trashEarlierVersion(_ offset: Double?) async throws {
        let (first, id) = try await complete()
        await first.downloader.close()
        try first.workPath.change(id) {
            let time = try #require($0.written).time
            $0.written = nil
            $0.started = Date(timeIntervalSince1970: Double(time) / 1e9)
            $0.finished = $0.started
            if let offset { try setTime(time + Int64(offset * 1e9), of: first.out + "/a") }
        }
        let bench = try await Bench(in: first.folder, content: Self.content)
        try await bench.control.trash(.id(id))
        #expect(bench.names == (offset == nil ? [] : ["a"]))
    }

    @Test(
        "after another boot, what is not the file as the task left it stays under its name, and is named",
        arguments: Meddling.allCases.filter { $0 != .restored })
    func proof(_ meddling: Meddling) async throws {
        let (first, id) = try await complete()
        await first.downloader.close()
        try first.workPath.change(id) {
            $0.bootID = "another boot"
            $0.finished = $0.started
        }
        let bytes = try meddling.meddle(with: first.out + "/a")
        let names = first.names
        let bench = try await Bench(in: first.folder, content: Self.content)
        #expect(await bench.finished(id)?.state == .complete)
        #expect(bench.transport.requests.isEmpty && bench.names == names)
        if let bytes { #expect(try bench.out("a") == bytes) }
        #expect(
            await bench.downloader.takeProblems().contains { $0.message.contains("\(bench.out)/a is not the file") })
    }

    @Test("other bytes at the very time of our own are moved aside and kept where the mark is gone")
    func keptAside() async throws {
        let (first, id) = try await complete()
        await first.downloader.close()
        let written = try #require(try first.stored(id).written)
        try ProofTests.torn([1, 2])(first.folder.file("out/a"), written.time)
        let file = open(first.out + "/a", O_RDWR)
        FileOwner.clear(file)
        close(file)
        try first.workPath.change(id) { $0.bootID = "another boot" }
        let bench = try await Bench(in: first.folder, content: Self.content)
        #expect(await bench.finished(id)?.state == .complete)
        let kept = FileNameRules.oldName(for: "a", id: id)
        #expect(bench.names == [kept, "a"])
        #expect(try bench.out(kept) == [1, 2] && bench.out("a") == Self.content)
        #expect(await bench.downloader.takeProblems().contains { $0.message.contains(kept) })
    }

    @Test("a process killed before the last record takes no other file for its own", arguments: [false, true])
    func killed(_ hasChain: Bool) async throws {
        let (first, id) = try await complete()
        await first.downloader.close()
        try first.workPath.change(id) {
            $0.state = .action
            $0.partName = FileNameRules.partName(for: "a", id: id)
            $0.finished = nil
        }
        let mine = try Meddling.replaced.meddle(with: first.out + "/a")
        let chains = MiddlewareChains()
        if hasChain { chains.register(response: ResponseStep { $0 }) }
        let bench = try await Bench(in: first.folder, chains: chains, content: Self.content)
        #expect(await bench.finished(id)?.path == bench.out + "/a.1")
        #expect(try bench.out("a") == mine)
        #expect(try bench.out("a.1") == Self.content)
    }

    @Test("what somebody puts at the old place while middlewares move the file stays there")
    func moved() async throws {
        let bench = try await Bench(content: Self.content)
        let target = bench.folder.file("moved")
        bench.chains.register(response: MoveToFolderMiddleware(folder: target, priority: 1))
        bench.chains.onResponse("response step", priority: 2) { response in
            if response.error == nil { try Meddling.replaced.meddle(with: response.leftBehind[0].path) }
        }
        let id = try await bench.add("a")
        #expect(await bench.finished(id)?.path == target.path + "/a")
        #expect(try bench.out("a") == [UInt8](repeating: 7, count: 1_000))
        #expect(try bench.folder.read("moved/a") == Self.content)
        #expect(await bench.downloader.takeProblems().contains { $0.message.contains("\(bench.out)/a stays") })
    }

    @Test("cancelled in the response chain, a task deletes no file that took its file's place")
    func cancelledInTheChain() async throws {
        let isReplaced = Observed(false)
        let bench = try await Bench(content: Self.content)
        bench.chains.onResponse("response step") { response in
            if let path = response.fileURL?.path {
                try Meddling.replaced.meddle(with: path)
                isReplaced.update { $0 = true }
                try await untilCancelled()
            }
        }
        let id = try await bench.add("a")
        _ = await isReplaced.wait { $0 }
        try await bench.control.cancel(.id(id))
        #expect(try bench.out("a") == [UInt8](repeating: 7, count: 1_000))
        #expect(await bench.downloader.takeProblems().contains { $0.message.contains("\(bench.out)/a stays") })
    }
}

@Suite("Files that were moved aside")
struct SetAsideTests {
    static let content = Bytes.pattern(count: 1_000)

    private func bench(
        in folder: TemporaryFolder? = nil, rejecting count: Int, _ makeError: @escaping @Sendable () -> any Error
    ) async throws -> Bench {
        let chains = MiddlewareChains()
        chains.onResponse("response step") { response in
            if response.error == nil, response.task.attempt <= count { throw makeError() }
        }
        return try await Bench(in: folder, chains: chains, content: Self.content)
    }

    @Test("a rejected file is gone once a later attempt has succeeded", arguments: [nil, "a"])
    func succeeded(_ name: String?) async throws {
        let bench = try await bench(rejecting: 2) { RetryRequest(reason: "stale", delay: .seconds(1)) }
        if name == nil { try bench.folder.write([1], to: "out/a") }
        let id = try await bench.add("a") { $0.fileName = name }
        for times in 2...3 {
            await bench.reached("a", .idle, times: times)
            #expect(bench.names.count { $0.hasSuffix(".fkrejected") } == 1)
            await bench.advance(1)
        }
        #expect(await bench.finished(id)?.state == .complete)
        #expect(bench.names == (name == nil ? ["a", "a.1"] : ["a"]))
        #expect(try bench.stored(id).setAside == nil)
    }

    @Test("and in a later process, with the digest that did not fit", arguments: [false, true])
    func laterProcess(_ isEdited: Bool) async throws {
        let first = try await Bench(content: [1])
        let id = try await first.add("a") {
            $0.options.checksum = try? Checksum(.sha256, hex: Bytes.sha256(Self.content))
        }
        #expect(await first.finished(id)?.error?.code == .checksumMismatch)
        let aside = FileNameRules.rejectedName(for: "a", id: id)
        #expect(first.names == [aside])
        await first.downloader.close()
        if isEdited { try first.folder.write([9], to: "out/\(aside)") }
        let second = try await Bench(in: first.folder, content: Self.content)
        try await second.control.retry(.id(id))
        #expect(await second.finished(id)?.state == .complete)
        // What somebody has made of it is theirs.
        #expect(second.names == (isEdited ? [aside, "a"] : ["a"]))
    }

    @Test("trash removes a rejected file of a numbered name")
    func numbered() async throws {
        let bench = try await bench(rejecting: 9) { DownloadError(.rejected, "no") }
        try bench.folder.write([1], to: "out/a")
        let id = try await bench.add("a")
        #expect(await bench.finished(id)?.error?.code == .rejected)
        #expect(bench.names == [FileNameRules.rejectedName(for: "a.1", id: id), "a"])
        try await bench.control.trash(.id(id))
        #expect(bench.names == ["a"])
    }

    @Test("no file is replaced by one that is set aside")
    func taken() async throws {
        let bench = try await bench(rejecting: 9) { DownloadError(.rejected, "no") }
        let id = bench.task("a").id
        let name = { FileNameRules.rejectedName(for: "a", id: id, number: $0) }
        try bench.folder.write([1], to: "out/\(name(0))")
        try await bench.add("a")
        #expect(await bench.finished(id)?.error?.underlying?.contains(name(1)) == true)
        #expect(try bench.out(name(0)) == [1] && bench.out(name(1)) == Self.content)
    }

    @Test("a part file without a record is kept beside what was kept earlier")
    func keptTwice() async throws {
        let folder = try TemporaryFolder()
        var ids: Set<TaskID> = []
        for number in 0..<3 {
            let bench = try await Bench(in: folder, content: Self.content)
            let id = bench.task("a").id
            ids.insert(id)
            try folder.write([UInt8(number)], to: "out/\(FileNameRules.partName(for: "a", id: id))")
            try await bench.add("a")
            #expect(await bench.finished(id)?.state == .complete)
            for old in 0...number {
                #expect(try bench.out(FileNameRules.oldName(for: "a", id: id, number: old)) == [UInt8(old)])
            }
            try await bench.control.trash(.id(id))
            await bench.downloader.close()
        }
        #expect(ids.count == 1)
    }

    @Test("names have at most 255 bytes, and are not those of parts")
    func names() {
        let id = TaskID(url: "http://h.example/a", destination: nil)
        for length in [1, 200, 215, 255] {
            let name = String(repeating: "n", count: length)
            for number in [0, 1, 4_711] {
                for made in [
                    FileNameRules.oldName(for: name, id: id, number: number),
                    FileNameRules.rejectedName(for: name, id: id, number: number),
                ] {
                    #expect(made.utf8.count <= 255 && made.hasPrefix(".n") && !made.hasSuffix(".fkpart"))
                }
            }
        }
        #expect(FileNameRules.oldName(for: "a", id: id) == FileNameRules.partName(for: "a", id: id) + ".old")
    }

    @Test("a process that is killed before it has removed them: the next one does")
    func killed() async throws {
        let first = try await Bench(content: Self.content)
        let id = try await first.completed("a")
        await first.downloader.close()
        let aside = "\(first.out)/\(FileNameRules.rejectedName(for: "a", id: id))"
        try Data([1]).write(to: URL(fileURLWithPath: aside))
        try first.workPath.change(id) {
            $0.setAside = [SetAsideFile(path: aside, written: try #require(FileIdentity(path: aside)))]
        }
        let second = try await Bench(in: first.folder, content: Self.content)
        #expect(await second.state(id) == .complete)
        #expect(second.names == ["a"])
        #expect(try second.stored(id).setAside == nil)
    }
}
