import FKMiddleware
import Foundation
import Synchronization

/// Computes the digest of a large file while it arrives, on another thread, from the bytes in the part file. The thread that
/// receives has no time for it: SHA-256 takes about as long as receiving over a fast network.
///
/// The pages are still in memory. It uses a descriptor of its own, because the run may end while it reads.
final class DigestFollower: @unchecked Sendable {
    // Sendable because `digester`, `done`, `reader` and `failure` are confined to `queue`, and the others are constants
    // or atomics.

    let algorithm: Checksum.Algorithm
    private let name: String
    private let folder: Folder
    private let queue = DispatchQueue(label: "fk.digest")
    private let target = Atomic<Int64>(0)
    private let isAbandoned = Atomic<Bool>(false)
    private let digester: Digester
    private var done: Int64 = 0
    private var reader: PartFile?
    private var failure: DownloadError?

    /// The shortest file that gets one, in bytes. The digest of a smaller one takes less time than the change of threads.
    static let minLength: Int64 = 4 << 20
    /// The number of bytes after which the other thread is woken.
    static let step: Int64 = 1 << 20

    /// Creates a follower of an empty part file.
    ///
    /// - Parameter length: the length of the whole file in bytes.
    init(_ algorithm: Checksum.Algorithm, length: Int64, of part: PartFile) {
        self.algorithm = algorithm
        name = part.name
        folder = part.folder
        digester = Digester(algorithm, length: length)
    }

    /// All bytes before `position` are in the part file. It returns at once.
    func advance(to position: Int64) {
        target.store(position, ordering: .releasing)
        queue.async { [self] in catchUp() }
    }

    /// The digest is not needed any more.
    func abandon() { isAbandoned.store(true, ordering: .relaxed) }

    /// The digest of the first `length` bytes of the part file. It blocks, so it must not run on the engine's or transport's
    /// thread.
    ///
    /// - Throws: `.destination` if the file cannot be read or is shorter; `.cancelled` if it was abandoned.
    func finish(at length: Int64) throws(DownloadError) -> String {
        let result = queue.sync { () -> Result<String, DownloadError> in
            target.store(length, ordering: .releasing)
            catchUp()
            if let failure { return .failure(failure) }
            guard done == length else {
                return .failure(DownloadError(.cancelled, "Reading \(folder.path(of: name)) was stopped."))
            }
            return .success(digester.hex())
        }
        return try result.get()
    }

    private func catchUp() {
        guard failure == nil, done < target.load(ordering: .acquiring) else { return }
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Int(Self.step), alignment: 4096)
        defer { buffer.deallocate() }
        do throws(DownloadError) {
            let file: PartFile
            if let reader {
                file = reader
            } else {
                file = try PartFile(reading: name, in: folder)
                reader = file
            }
            while !isAbandoned.load(ordering: .relaxed) {
                let rest = target.load(ordering: .acquiring) - done
                if rest <= 0 { return }
                let wanted = Int(min(Int64(buffer.count), rest))
                let count = try file.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted]), at: done)
                guard count == wanted else {
                    throw DownloadError(.destination, "The part file \(file.path) was truncated.", isRetryable: true)
                }
                digester.update(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
                done += Int64(count)
            }
        } catch {
            failure = error
        }
    }
}
