import FKMiddleware

/// Standard output or standard error: whole texts, one after the other, from any thread.
///
/// When the reader is gone (`fk list | head -1`) writing stops silently; nothing else changes.
final class OutputStream: Sendable {
    let descriptor: Int32
    /// True once a write has failed: nobody will read what is written after it.
    private let broken = Locked(false)

    static let standardOutput = OutputStream(1)
    static let standardError = OutputStream(2)

    init(_ descriptor: Int32) {
        self.descriptor = descriptor
    }

    /// Writes the text in one piece, without a line end of its own.
    func write(_ text: String) {
        var text = text
        broken.withLock { broken in
            guard !broken else { return }
            broken = !text.withUTF8 { Glue.writeAll(descriptor, UnsafeRawBufferPointer($0)) }
        }
    }

    func writeLine(_ line: String) {
        write(line + "\n")
    }
}
