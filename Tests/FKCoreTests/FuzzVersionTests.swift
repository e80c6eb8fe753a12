import FKMiddleware
import Foundation
import TestSupport
import Testing

@testable import FKCore

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Files that change on their servers, addresses that lead to other files, answers that are cut, refused or wrong, and engines
/// that are closed or killed: whatever the course, a finished file is one version of the file from its first byte to its last.
@Suite("Fuzzed courses of changing files", .timeLimit(.minutes(60)))
struct FuzzVersionTests {
    private static let fuzz = FuzzRun("courses of changing files", usual: 200)

    @Test("never join two versions of a file", arguments: 0..<4)
    func courses(shard: Int) async throws {
        try await Self.fuzz.waiting(shard: shard, of: 4) { random in try await Course(random).run() }
    }

    /// One task's life.
    private final class Course {
        private var random: SeededRandom
        private let world: World
        private let addresses: [String]
        private var bench: Bench
        private let id: TaskID
        private var steps: [String] = []

        init(_ seeded: SeededRandom) async throws {
            var random = seeded
            let hosts = ["a.example", "b.example", "c.example"]
            addresses = hosts.map { "http://\($0)/file" }
            let world = World(hosts: hosts, &random)
            self.world = world
            let connections = random.pick([1, 1, 2, 4])
            bench = try await Self.bench(TemporaryFolder(), world, connections: connections)
            let mirrors = random.oneIn(3) ? Array(addresses.dropFirst()) : []
            id = try await bench.add(addresses[0]) { $0.mirrors = mirrors }
            steps = ["\(world.description), \(connections) connections, \(mirrors.count) mirrors"]
            self.random = random
        }

        private static func bench(_ folder: TemporaryFolder, _ world: World, connections: Int) async throws -> Bench {
            try await Bench(
                in: folder,
                settings: {
                    $0.connections = .fixed(connections)
                    $0.retry.maxAttempts = 4
                }
            ) { request, number in world.answer(request, number) }
        }

        /// - Returns: what is wrong with the outcome, and the steps to it.
        func run() async throws -> String? {
            for _ in 0..<2 + random.below(8) { try await step() }
            world.settle()
            for _ in 0..<40 {
                await bench.settle()
                world.openGate()
                switch await bench.state(id) {
                case .complete: return try await complaint()
                case .error, .suspend, .cancel: _ = try? await bench.control.retry(.id(id))
                default: await bench.advance(60)
                }
                _ = try? await bench.control.resume(.id(id))
            }
            let info = await bench.messager.info(.id(id))
            return "it does not end: \(String(describing: info?.state)) \(String(describing: info?.error))\n"
                + steps.joined(separator: "\n")
        }

        private func complaint() async throws -> String? {
            let info = await bench.messager.info(.id(id))
            let path = try #require(info?.path)
            let content = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
            await bench.downloader.close()
            guard !world.contents.contains(content) else { return nil }
            let parts = world.contents.indices.map { version in
                let same = zip(content, world.contents[version]).reduce(0) { $0 + ($1.0 == $1.1 ? 1 : 0) }
                return "\(same) bytes of version \(version)"
            }
            return "\(content.count) bytes: \(parts.joined(separator: ", "))\n" + steps.joined(separator: "\n") + "\n"
                + world.log.joined(separator: "\n")
        }

        private func step() async throws {
            await bench.settle()
            let connections = random.pick([1, 2, 4])
            switch random.below(12) {
            case 0, 1: note("changed: \(world.change(&random))")
            case 2:
                note("suspended and resumed")
                _ = try? await bench.control.suspend(.id(id))
                if random.oneIn(2) { note("changed: \(world.change(&random))") }
                _ = try? await bench.control.resume(.id(id))
            case 3, 4:
                let address = random.pick(addresses)
                note("relinked to \(address)")
                _ = try? await bench.control.relink(id, to: address)
            case 5:
                note("closed and opened")
                await bench.downloader.close()
                bench = try await Self.bench(bench.folder, world, connections: connections)
            case 6:
                note("killed")
                let image = try await copy()
                world.openGate()
                await bench.downloader.close()
                try Self.restore(image, to: bench.folder)
                bench = try await Self.bench(bench.folder, world, connections: connections)
            case 7:
                note("retried")
                _ = try? await bench.control.retry(.id(id))
            case 8:
                note("fetched anew")
                _ = await bench.engine.perform(.renew([Renewal(id)]))
            case 9: try await damage()
            case 10:
                note("gate opened")
                world.openGate()
            default:
                note("time")
                await bench.advance(60)
            }
            await bench.settle()
            note("  \(await bench.state(id))")
        }

        /// Damages some bytes of the finished file and has them fetched again.
        private func damage() async throws {
            guard await bench.state(id) == .complete, let path = await bench.messager.info(.id(id))?.path,
                let file = FileHandle(forUpdatingAtPath: path)
            else { return }
            defer { try? file.close() }
            let size = Int(try file.seekToEnd())
            let start = random.below(size)
            let end = start + 1 + random.below(min(size - start, 100_000))
            note("bytes \(start) to \(end) damaged")
            try file.seek(toOffset: UInt64(start))
            try file.write(contentsOf: [UInt8](repeating: 0, count: end - start))
            let reply = await bench.engine.perform(.renew([Renewal(id, damaged: [Int64(start)..<Int64(end)])]))
            note("  \(reply)")
        }

        /// Work path and destination as a kill would leave them. Files may go away meanwhile: a response is published on
        /// another thread.
        private func copy() async throws -> TemporaryFolder {
            try #require(await eventually { try? bench.snapshot() })
        }

        /// Tasks keep the path of their folder, so the files go back to where they were.
        private static func restore(_ image: TemporaryFolder, to folder: TemporaryFolder) throws {
            for name in ["work", "out"] {
                try? FileManager.default.removeItem(at: folder.file(name))
                guard FileManager.default.fileExists(atPath: image.file(name).path) else { continue }
                try FileManager.default.moveItem(at: image.file(name), to: folder.file(name))
            }
        }

        private func note(_ text: String) {
            steps.append(text)
            world.note("-- \(text)")
        }
    }

    /// The servers: each host has one version of the file at a time.
    private final class World: Sendable {
        let contents: [[UInt8]]
        let description: String
        private let validator: Int
        private struct State {
            var random: SeededRandom
            var versions: [String: Int]
            var gate = FakeGate()
            var isHonest = false
            var log: [String] = []
        }
        private let state: Locked<State>

        init(hosts: [String], _ random: inout SeededRandom) {
            let size = random.pick([1_000, 200_000, 200_000, 3 << 20])
            let sizes = [size, size, size, random.oneIn(2) ? size : size + random.below(size) - size / 2]
            contents = sizes.enumerated().map { Bytes.pattern(count: $1, seed: UInt64($0 + 1)) }
            validator = random.below(4)
            description = "sizes \(sizes), \(["ETag", "weak ETag", "Last-Modified", "no validator"][validator])"
            var versions: [String: Int] = [:]
            for host in hosts { versions[host] = random.oneIn(2) ? 0 : random.below(sizes.count) }
            state = Locked(State(random: SeededRandom(seed: random.next()), versions: versions))
        }

        var log: [String] { state.withLock { $0.log } }

        func note(_ text: String) { state.withLock { $0.log.append(text) } }

        func change(_ random: inout SeededRandom) -> String {
            let version = random.below(contents.count)
            return state.withLock { state in
                let hosts = state.versions.keys.sorted()
                let host = random.pick(hosts)
                state.versions[host] = version
                return "\(host) to \(version)"
            }
        }

        func openGate() {
            state.withLock { state in
                defer { state.gate = FakeGate() }
                return state.gate
            }.open()
        }

        /// From now on each request is answered as RFC 9110 has it, with the version that the host has now.
        func settle() {
            state.withLock { $0.isHonest = true }
            openGate()
        }

        private func fields(_ version: Int) -> [ResponseHead.Field] {
            switch validator {
            case 0: [.init("ETag", "\"v\(version)\"")]
            case 1: [.init("ETag", "W/\"v\(version)\"")]
            case 2: [.init("Last-Modified", "Mon, 0\(version + 1) Jan 2024 00:00:00 GMT")]
            default: []
            }
        }

        func answer(_ request: TransportRequest, _ number: Int) -> Bench.Answer {
            state.withLock { state in
                let url = request.urlRequest.url
                let version = state.versions[url?.host ?? ""] ?? 0
                let range = request.urlRequest.value(forHTTPHeaderField: "Range")
                let ifRange = request.urlRequest.value(forHTTPHeaderField: "If-Range")
                let asked = range.map { Self.bounds($0, in: contents[version].count) }
                let (kind, answer) = answer(version, asked, ifRange, url?.absoluteString ?? "", &state)
                state.log.append(
                    "\(number) \(url?.host ?? "") \(range ?? "-") \(ifRange ?? "-"): \(kind) of version \(version)")
                return answer
            }
        }

        private func answer(
            _ version: Int, _ asked: Range<Int>?, _ ifRange: String?, _ url: String, _ state: inout State
        ) -> (String, Bench.Answer) {
            let isHonest = state.isHonest
            func failure(_ status: Int) -> (String, Bench.Answer) {
                ("\(status)", Bench.Answer([.head(ResponseHead(status: status, fields: [], url: url))]))
            }
            if !isHonest, state.random.oneIn(6) { return failure(state.random.pick([503, 500, 404, 403, 416, 429])) }
            let content = contents[version]
            var fields = fields(version)
            let value = fields.first?.value
            let isWeak = value?.hasPrefix("W/") == true
            // A server may ignore If-Range, and one may ignore ranges.
            let isSame = ifRange == nil || (ifRange == value && !isWeak) || (!isHonest && state.random.oneIn(3))
            var body = content[...]
            var status = 200
            if let asked, isSame, isHonest || !state.random.oneIn(6) {
                guard !asked.isEmpty else {
                    fields.append(.init("Content-Range", "bytes */\(content.count)"))
                    return ("416", Bench.Answer([.head(ResponseHead(status: 416, fields: fields, url: url))]))
                }
                body = content[asked]
                status = 206
                fields.append(
                    .init("Content-Range", "bytes \(asked.lowerBound)-\(asked.upperBound - 1)/\(content.count)"))
            }
            fields.append(.init("Content-Length", "\(body.count)"))
            var steps: [Bench.Answer.Step] = [.head(ResponseHead(status: status, fields: fields, url: url))]
            guard !isHonest else { return ("\(status)", Bench.Answer(steps + [.bytes(Array(body))])) }
            let isCut = state.random.oneIn(2)
            let sent = isCut ? state.random.below(body.count + 1) : body.count
            var rest = body.prefix(sent)
            while !rest.isEmpty {
                if state.random.oneIn(3) { steps.append(.wait(state.gate)) }
                let piece = state.random.oneIn(3) ? rest.prefix(1 + state.random.below(rest.count)) : rest
                steps.append(.bytes(Array(piece)))
                rest = rest.dropFirst(piece.count)
            }
            if isCut { steps.append(.fail(DownloadError(.connectionLost, "cut", isRetryable: true))) }
            return ("\(status)\(isCut ? ", cut after \(sent)" : "")", Bench.Answer(steps))
        }

        private static func bounds(_ range: String, in count: Int) -> Range<Int> {
            let parts = range.dropFirst("bytes=".count).split(separator: "-", omittingEmptySubsequences: false)
            let start = min(Int(parts[0]) ?? 0, count)
            let end = parts.count > 1 ? Int(parts[1]).map { min(count, $0 + 1) } : nil
            return start..<max(start, end ?? count)
        }
    }
}
