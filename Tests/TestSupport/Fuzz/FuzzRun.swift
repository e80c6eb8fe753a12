import Foundation

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Many generated cases of one kind, each with random numbers of its own, so that any of them can be had again alone.
///
/// | environment | meaning |
/// | --- | --- |
/// | `FK_FUZZ_COUNT` | cases of the largest run, instead of 100,000; the others grow in proportion |
/// | `FK_FUZZ_SEED` | other random numbers; 1 by default |
/// | `FK_FUZZ_CASE` | this case alone, as a failure names it |
/// | `FK_FUZZ_NOTES` | a folder in which each run notes the case it is at, for a case that ends the process |
///
/// Runs have threads of their own: on those of Swift's pool every other test would wait for them. Usually they take turns;
/// with `FK_FUZZ_COUNT`, when nothing else is going on, they run side by side.
///
/// A case must not take more of its processor's time than `limit`; one that does is tried again, because caches may
/// have been cold.
package struct FuzzRun: Sendable {
    /// Runs are divided so, to use more than one processor.
    package static let shards = [0, 1]

    /// A case that did not end well.
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    private let name: String
    private let count: Int
    private let limit: Duration
    private let environment = FuzzEnvironment.shared

    /// - Parameter usual: cases where nobody asks for more.
    package init(_ name: String, usual: Int, limit: Duration = .milliseconds(100)) {
        self.name = name
        self.limit = limit
        count = environment.count.map { max(1, Int(Double(usual) * Double($0) / 100_000)) } ?? usual
    }

    /// Runs one of the shards.
    ///
    /// - Parameter body: makes a case and tries it; returns what is wrong with the outcome, nil when nothing is.
    /// - Throws: `Failure` with the cases that failed, at most five of them.
    package func callAsFunction(
        shard: Int = 0, of shards: Int = 1, _ body: @escaping @Sendable (inout SeededRandom) throws -> String?
    ) async throws {
        let queue = environment.count == nil ? Self.turns : Self.sideBySide
        try await withCheckedThrowingContinuation { (done: CheckedContinuation<Void, any Error>) in
            queue.async { done.resume(with: Result { try run(shard, shards, body) }) }
        }
    }

    /// What a run may add to the memory of the process, in MiB; the others that run at the same time are within it.
    private static let memoryLimit = 64

    private static let turns = DispatchQueue(label: "fk.fuzz.turns")
    private static let sideBySide = DispatchQueue(label: "fk.fuzz", attributes: .concurrent)

    private func run(_ shard: Int, _ shards: Int, _ body: (inout SeededRandom) throws -> String?) throws {
        var slowest = (time: Duration.zero, number: 0)
        var complaints: [String] = []
        var done = 0
        let note = environment.notes.flatMap { FuzzNote(folder: $0, name: "\(name)-\(shard)", seed: environment.seed) }
        let memory = ProcessMemory.peak
        for number in numbers(shard, shards) {
            note?.write(number)
            var best = Duration.seconds(3_600)
            var complaint: String?
            for _ in 0..<3 {
                var random = SeededRandom(seed: environment.seed &* 0x2545_f491_4f6c_dd1d ^ UInt64(number))
                let start = ProcessorTime.ofThread
                do {
                    complaint = try body(&random)
                } catch {
                    complaint = "threw \(error)"
                }
                best = min(best, ProcessorTime.ofThread - start)
                if best <= limit { break }
            }
            if best > slowest.time { slowest = (best, number) }
            if best > limit { complaint = complaint ?? "it took \(best)" }
            if let complaint { complaints.append("case \(number): \(complaint)") }
            done += 1
            if complaints.count == 5 { break }
        }
        if environment.count != nil {
            let grown = (ProcessMemory.peak - memory) >> 20
            if grown > Self.memoryLimit, !Sanitizer.isActive { complaints.append("memory grew by \(grown) MiB") }
            print(
                "fuzz \(name) (\(shard + 1) of \(shards)): \(done) cases, seed \(environment.seed), \(complaints.count) failed, "
                    + "slowest \(slowest.time) (case \(slowest.number)), peak memory \(ProcessMemory.peak >> 20) MiB (+\(grown))"
            )
        }
        try end(complaints)
    }

    private func end(_ complaints: [String]) throws {
        guard complaints.isEmpty else {
            throw Failure(
                description: "fuzz \(name): \(complaints.joined(separator: "\n"))\n"
                    + "one of them again: FK_FUZZ_SEED=\(environment.seed) FK_FUZZ_CASE=<number>")
        }
    }

    /// The same for cases that wait for others. Their time has no limit.
    package func waiting(
        shard: Int = 0, of shards: Int = 1, _ body: @Sendable (SeededRandom) async throws -> String?
    ) async throws {
        var complaints: [String] = []
        for number in numbers(shard, shards) {
            let random = SeededRandom(seed: environment.seed &* 0x2545_f491_4f6c_dd1d ^ UInt64(number))
            do {
                guard let complaint = try await body(random) else { continue }
                complaints.append("case \(number): \(complaint)")
            } catch {
                complaints.append("case \(number): threw \(error)")
            }
            if complaints.count == 5 { break }
        }
        try end(complaints)
    }

    private func numbers(_ shard: Int, _ shards: Int) -> StrideTo<Int> {
        guard let only = environment.only else { return stride(from: shard, to: count, by: shards) }
        return stride(from: only, to: shard == only % shards ? only + 1 : only, by: 1)
    }
}

/// What the environment asks of all runs.
private struct FuzzEnvironment: Sendable {
    static let shared = FuzzEnvironment()

    let count: Int?
    let seed: UInt64
    let only: Int?
    let notes: String?

    private init() {
        let values = ProcessInfo.processInfo.environment
        count = values["FK_FUZZ_COUNT"].flatMap { Int($0.filter { $0 != "_" && $0 != "," }) }
        seed = values["FK_FUZZ_SEED"].flatMap { UInt64($0) } ?? 1
        only = values["FK_FUZZ_CASE"].flatMap { Int($0) }
        notes = values["FK_FUZZ_NOTES"]
    }
}

/// A file that says which case is being tried. It is mapped, so that it is right even when the process ends in it.
private final class FuzzNote {
    private let base: UnsafeMutableRawPointer
    private let digits: Int
    private static let width = 12

    init?(folder: String, name: String, seed: UInt64) {
        let head = "seed \(seed) case "
        let line = head + String(repeating: "0", count: Self.width) + "\n"
        let file = folder + "/" + name.replacingOccurrences(of: " ", with: "-")
        mkdir(folder, 0o700)
        let descriptor = open(file, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        guard Glue.write(descriptor, line),
            let base = mmap(nil, line.utf8.count, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0),
            base != UnsafeMutableRawPointer(bitPattern: -1)
        else { return nil }
        self.base = base
        digits = head.utf8.count
    }

    func write(_ number: Int) {
        var rest = number
        for place in stride(from: digits + Self.width - 1, through: digits, by: -1) {
            base.storeBytes(of: UInt8(0x30 + rest % 10), toByteOffset: place, as: UInt8.self)
            rest /= 10
        }
    }

    private enum Glue {
        static func write(_ descriptor: Int32, _ text: String) -> Bool {
            let bytes = Array(text.utf8)
            return bytes.withUnsafeBytes { systemWrite(descriptor, $0.baseAddress, $0.count) } == bytes.count
        }
    }
}

private func systemWrite(_ descriptor: Int32, _ bytes: UnsafeRawPointer?, _ count: Int) -> Int {
    write(descriptor, bytes, count)
}

/// How long this thread has worked: what a busy machine does to the clock on the wall does not count.
package enum ProcessorTime {
    package static var ofThread: Duration {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
}

/// What this process has taken of the machine.
package enum ProcessMemory {
    /// The most bytes that were resident at once; 0 where the system does not tell.
    package static var peak: Int {
        #if canImport(Darwin)
            var usage = rusage()
            getrusage(RUSAGE_SELF, &usage)
            return usage.ru_maxrss
        #else
            // `getrusage` counts what the process was before it became this program.
            let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
            let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
            return (line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) } ?? 0) << 10
        #endif
    }
}
