import TestSupport
import Testing

/// The bytes of an attempt count for middlewares, also those of a file with a wrong digest.
@Suite("Bytes of failed attempts")
struct AttemptProgressTests {
    private static let content = Bytes.pattern(count: 50_000)

    private struct Witness: RetryMiddleware, DownloadMiddleware {
        let failures = Observed<[AttemptFailure]>([])
        let counts = Observed<[ByteCount]>([])

        func decide(_ failure: AttemptFailure) async -> RetryDecision {
            failures.update { $0.append(failure) }
            return .useRules
        }
        func download(_ task: TaskContext, didReceive count: ByteCount) { counts.update { $0.append(count) } }
        func download(_ task: TaskContext, didChangeTo state: DownloadState, error: DownloadError?) {}
    }

    @Test("a wrong digest: the failure and the download chain have the bytes that were received")
    func wrongDigest() async throws {
        let bench = try await Bench(content: Self.content)
        let witness = Witness()
        bench.chains.register(failure: witness)
        bench.chains.register(download: witness)
        let id = try await bench.add("a") {
            $0.options.checksum = try? Checksum(.sha256, hex: String(repeating: "0", count: 64))
            $0.options.maxAttempts = 1
        }
        #expect(await bench.finished(id)?.error?.code == .checksumMismatch)
        let failure = try #require(witness.failures.value.first)
        #expect(failure.progress == 50_000 && failure.received == 0)
        let counts = await witness.counts.wait { !$0.isEmpty }
        #expect(counts.map(\.received).max() == 50_000)
    }
}
