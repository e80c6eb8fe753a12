import TestSupport
import Testing

@testable import FKTransport

@Suite("Files that the library reads itself")
struct TrustFileTests {
    @Test("one that is no regular file, or too long, is refused before the library waits for it") func fault() throws {
        let folder = try TemporaryFolder()
        let fifo = folder.file("fifo").path
        #expect(mkfifo(fifo, 0o600) == 0)
        let long = try folder.write([1], to: "long").path
        #expect(truncate(long, off_t(TransportOptions.trustFileLimit) + 1) == 0)
        let right = try folder.write([1], to: "right").path
        for (path, isRefused) in [
            (fifo, true), (long, true), (folder.url.path, true), ("/dev/zero", true), (right, false), ("/none", false),
        ] {
            var options = TransportOptions()
            options.caPath = path
            #expect((options.trustFileFault != nil) == isRefused, "\(path)")
            options.caPath = nil
            options.crlPath = path
            #expect((options.trustFileFault != nil) == isRefused, "\(path)")
        }
    }

    @Test("a FIFO as the file of authorities fails its transfer, and others go on") func others() async throws {
        let server = try FaultServer()
        server.route("/a") { _ in .ok([1]) }
        let folder = try TemporaryFolder()
        #expect(mkfifo(folder.file("fifo").path, 0o600) == 0)
        let live = try LiveBench()
        let fifo = folder.file("fifo").path
        let secure = server.url("/a").replacingOccurrences(of: "http:", with: "https:")
        let refused = try await live.fetch(secure) { $0.caPath = fifo }
        #expect(refused.state == .error)
        #expect(try await live.fetch(server.url("/a")).state == .complete)
    }
}
