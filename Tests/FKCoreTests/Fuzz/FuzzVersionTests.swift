import TestSupport
import Testing

@testable import FKEngine

/// Files that change on their servers, addresses that lead to other files, answers that are cut, refused or wrong, engines
/// that are closed or killed, repairs and refreshes, and other programs and persons at work in the same folder. Whatever
/// the course, a finished file is one version of the file from its first byte to its last, and no file is lost that was
/// not to be removed (`CourseDisk`).
@Suite("Fuzzed courses of changing files", .timeLimit(.minutes(60)))
struct FuzzVersionTests {
    private static let fuzz = FuzzRun("courses of changing files", usual: 200)

    @Test("never join two versions of a file, and lose no file", arguments: 0..<4)
    func courses(shard: Int) async throws {
        try await Self.fuzz.waiting(shard: shard, of: 4) { random in try await Course(random).run() }
    }

    /// One task's life.
    private final class Course {
        private var random: SeededRandom
        private let servers: CourseServers
        private let mirrors: [String]
        private var bench: Bench
        private var id = TaskID(url: "")
        private var disk = CourseDisk()
        private var filesOfOthers = 0

        init(_ seeded: SeededRandom) async throws {
            var random = seeded
            let servers = CourseServers(&random)
            self.servers = servers
            let addresses = CourseServers.names.map { "http://\($0)/file" }
            mirrors = random.oneIn(2) ? Array(addresses.dropFirst()) : []
            let connections = random.pick([1, 1, 2, 4])
            bench = try await Self.bench(TemporaryFolder(), servers, connections)
            servers.note("\(servers.description)\n\(connections) connections, mirrors \(mirrors)")
            self.random = random
        }

        private static func bench(
            _ folder: TemporaryFolder, _ servers: CourseServers, _ connections: Int
        ) async throws -> Bench {
            try await Bench(
                in: folder,
                settings: {
                    $0.connections = .fixed(connections)
                    $0.retry.maxAttempts = 4
                }
            ) { request, number in servers.answer(request, number) }
        }

        /// - Returns: what is wrong with the outcome, and the steps to it.
        func run() async -> String? {
            do {
                return try await play()
            } catch {
                return complaint("\(error)")
            }
        }

        private func play() async throws -> String? {
            try FileManager.default.createDirectory(atPath: bench.out, withIntermediateDirectories: true)
            if random.oneIn(4) { try await perform(.foreignFile("file")) }
            try await add(random.pick([nil, .overwrite, .rename, .skip]))
            for _ in 0..<4 + random.below(12) {
                if let complaint = try await look() { return complaint }
                let step = CourseStep.make(&random, isComplete: await bench.state(id) == .complete)
                servers.note("-- \(step)")
                try await perform(step)
            }
            let complaint = try await end()
            await bench.downloader.close()
            return complaint
        }

        /// Honest servers let the task complete.
        private func end() async throws -> String? {
            servers.note("-- end")
            servers.settle()
            for _ in 0..<40 {
                await bench.settle()
                servers.openGate()
                if let complaint = try await look() { return complaint }
                switch await bench.state(id) {
                case .complete:
                    // The part may be removed behind the record.
                    try await offPool { [engine = bench.engine] in engine.diskWork.sync(flags: .barrier) {} }
                    if let part = bench.names.first(where: { $0.hasPrefix(".") }) {
                        try CourseDisk.complain(.leftoverPart, part)
                    }
                    return nil
                case .error where try bench.stored(id).isRepair:
                    // The server has another version than the damaged file.
                    disk.isRenewing = true
                    _ = await bench.engine.answer(.renew([Renewal(id)]))
                case .error, .suspend, .cancel: _ = try? await bench.control.retry(.id(id))
                default: await bench.advance(60)
                }
                _ = try? await bench.control.resume(.id(id))
            }
            let info = await bench.messager.info(.id(id))
            try CourseDisk.complain(.noEnd, "\(String(describing: info?.error))")
            return nil
        }

        private func complaint(_ text: String) -> String {
            "\(text); the folder has \(bench.names)\n" + servers.log.joined(separator: "\n")
        }

        /// Compares the disk with the model. A file may get its name on another thread meanwhile.
        private func look() async throws -> String? {
            var problem = ""
            let seen = try await eventually(within: 5) { () -> CourseDisk? in
                await settle()
                let info = await bench.messager.info(.id(id))
                // An attempt without a transfer compares, copies or publishes on another thread.
                if info?.state == .action, bench.transport.running == 0 {
                    problem = "an attempt does not end"
                    return nil
                }
                let complete = info?.state == .complete ? info?.path?.lastPathPart : nil
                do {
                    return try disk.looking(at: found(), complete: complete, servers.versions)
                } catch {
                    problem = "\(error), the task is \(String(describing: info?.state)) as \(complete ?? "-")"
                    return nil
                }
            }
            guard let seen else { return complaint(problem) }
            disk = seen
            if await bench.state(id) == .complete { servers.isComplete() }
            return nil
        }

        /// A repaired file is compared on another thread before it gets its name.
        private func settle() async {
            for _ in 0..<3 {
                await bench.settle()
                try? await offPool { [engine = bench.engine] in engine.diskWork.sync(flags: .barrier) {} }
            }
            await bench.settle()
        }

        // MARK: Steps

        private func perform(_ step: CourseStep) async throws {
            let control = bench.control
            switch step {
            case .serverChanges(let host, let version): servers.change(host, to: version)
            case .gateOpens: servers.openGate()
            case .timePasses: await bench.advance(60)
            case .suspend: _ = try? await control.suspend(.id(id))
            case .resume: _ = try? await control.resume(.id(id))
            case .retry: _ = try? await control.retry(.id(id))
            case .cancel: _ = try? await control.cancel(.id(id))
            case .relink(let address): _ = try? await control.relink(id, to: address)
            case .refresh: try await renew(refreshed())
            case .fetchAnew: try await renew([Renewal(id)])
            case .repair:
                var damaged: [VerifiedFile] = []
                for try await file in bench.messager.verify(.id(id)) { damaged.append(file) }
                try await renew(damaged.compactMap(\.renewal))
            case .forget(let existing):
                note(try await control.forget(.id(id)))
                try leave(trashed: false)
                try await add(existing)
            case .trash(let existing):
                note(try await control.trash(.id(id)))
                try leave(trashed: true)
                try await add(existing)
            case .reuse(let version): try await reuse(version)
            case .reopen(let connections):
                await bench.downloader.close()
                bench = try await Self.bench(bench.folder, servers, connections)
            case .kill(let connections):
                let folder = bench.folder
                let image = try #require(try await eventually { try? KilledDisk(folder) })
                servers.openGate()
                await bench.downloader.close()
                try image.restore()
                bench = try await Self.bench(folder, servers, connections)
            case .foreignFile, .edit, .replace, .delete, .rot: try touch(step)
            }
        }

        /// A repair or refresh may have ended just before its task was forgotten.
        private func leave(trashed: Bool) throws {
            let names = disk.files.filter { $0.value.owner != .others }.keys
            if trashed { disk.finished.map { disk.remove($0) } }
            if disk.isRenewing, let seen = try? disk.looking(at: found(), complete: names.first, servers.versions) {
                disk = seen
            }
            disk.leave(trashed: trashed)
        }

        private func note(_ results: [VerbResult]) { servers.note("   \(results.map(\.note))") }

        private func add(_ existing: ExistingFilePolicy?) async throws {
            servers.note("-- added: \(existing.map { "\($0)" } ?? "-")")
            disk.mayOverwrite = existing == .overwrite
            id = try await bench.add("http://\(CourseServers.names[0])/file") {
                $0.mirrors = mirrors
                $0.options.existing = existing
            }
        }

        private func refreshed() async -> [Renewal] {
            let refresher = FileRefresher(await bench.engine.currentConfigure, bench.chains, bench.transport)
            var renewals: [Renewal] = []
            await refresher.refresh([id]) { file in
                servers.note("   \(file.result)")
                if file.result == .changed, !file.isBound { renewals.append(Renewal(file.id)) }
            }
            return renewals
        }

        private func renew(_ renewals: [Renewal]) async throws {
            guard !renewals.isEmpty, await bench.state(id) == .complete else { return }
            disk.isRenewing = true
            let reply = await bench.engine.answer(.renew(renewals))
            servers.note("   \(renewals.map(\.damaged)): \(reply)")
        }

        /// Another task may take its bytes from the finished file.
        private func reuse(_ version: Int) async throws {
            servers.change(CourseServers.reuse, to: version)
            let digest = try Checksum(.sha256, hex: servers.sha256(of: version))
            let copy = try await bench.add("http://\(CourseServers.reuse)/copy") {
                $0.options.checksum = digest
                $0.options.reuse = true
            }
            let path = try #require(await bench.finished(copy)?.path)
            guard try Data(contentsOf: URL(fileURLWithPath: path)) == servers.versions[version] else {
                throw CourseDisk.Complaint(finding: .mixedBytes, name: path)
            }
            note(try await bench.control.trash(.id(copy)))
        }

        // MARK: Others

        /// The files with visible names.
        private func found() throws -> [String: Data] {
            var found: [String: Data] = [:]
            for name in bench.names where !name.hasPrefix(".") { found[name] = try Data(contentsOf: url(name)) }
            return found
        }

        private func url(_ name: String) -> URL { bench.folder.file("out/\(name)") }

        /// Something happens to the files without the task.
        private func touch(_ step: CourseStep) throws {
            if case .foreignFile(let name) = step {
                guard !bench.names.contains(name) else { return }
                return try putForeign(name, count: 1 + random.below(300_000))
            }
            guard let name = disk.finished, var bytes = disk.files[name]?.bytes else { return }
            let path = url(name).path
            var time = try FileTime.of(path)
            switch step {
            case .replace(let isSameLength):
                try FileManager.default.removeItem(atPath: path)
                return try putForeign(name, count: isSameLength ? bytes.count : 1 + random.below(300_000))
            case .delete:
                try FileManager.default.removeItem(atPath: path)
                return disk.remove(name)
            case .rot(let start, let count):
                let first = bytes.count * start / 1_000
                let end = min(bytes.count, first + 1 + bytes.count * count / 1_000)
                bytes.replaceSubrange(first..<end, with: Data(count: end - first))
            case .edit(let isAppending):
                let words = Data("words of a person".utf8)
                if isAppending { bytes += words } else { bytes.replaceSubrange(0..<words.count, with: words) }
                time.tv_sec += 5
            default: return
            }
            let file = try FileHandle(forWritingTo: url(name))
            try file.write(contentsOf: bytes)
            try file.close()
            try FileTime.set(time, path)
            if case .rot = step { disk.put(bytes, name, .task) } else { disk.put(bytes, name, .person) }
        }

        private func putForeign(_ name: String, count: Int) throws {
            filesOfOthers += 1
            var bytes = Data(repeating: UInt8(filesOfOthers), count: count)
            bytes[0] = 0
            // At once, because the task may publish meanwhile. The inode may be that of a removed file.
            let side = bench.folder.file("side")
            try bytes.write(to: side)
            guard rename(side.path, url(name).path) == 0 else { throw CocoaError(.fileWriteUnknown) }
            disk.put(bytes, name, .others)
        }
    }
}
