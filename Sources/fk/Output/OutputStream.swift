import FKMiddleware

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Standard output or standard error: whole texts, one after the other, from any thread.
///
/// When the reader is gone (`fk list | head -1`) writing stops silently; nothing else changes. After any other error writing
/// stops as well, and `failure` tells why.
final class OutputStream: Sendable {
    let descriptor: Int32
    /// The system's number of the error with which a write has failed: nobody will read what is written after it.
    private let error = Locked<Int32?>(nil)

    static let standardOutput = OutputStream(1)
    static let standardError = OutputStream(2)

    init(_ descriptor: Int32) {
        self.descriptor = descriptor
    }

    /// Writes the text in one piece, without a line end of its own.
    func write(_ text: String) {
        var text = text
        error.withLock { error in
            guard error == nil else { return }
            error = text.withUTF8 { Glue.writeAll(descriptor, UnsafeRawBufferPointer($0)) ? nil : errno }
        }
    }

    /// Nothing is written any more, whatever the reason.
    var isBroken: Bool { error.withLock { $0 != nil } }

    /// Why something could not be written, in the system's words. Nil while all went well, and for a reader that is gone.
    var failure: String? {
        error.withLock { $0 }.flatMap { $0 == EPIPE ? nil : String(cString: strerror($0)) }
    }

    func writeLine(_ line: String) {
        write(line + "\n")
    }
}
