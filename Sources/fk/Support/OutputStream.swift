import FKMiddleware
import Foundation

/// Standard output or standard error. Texts are written whole, one after the other, from any thread.
///
/// If the reader is gone (`fk list | head -1`), writing stops silently. After any other error writing stops as well,
/// and `failure` gives the reason.
final class OutputStream: Sendable {
    let descriptor: Int32
    /// The error number of a failed write. Nothing is written after it.
    private let error = Locked<Int32?>(nil)
    private let secrets = Locked(SecretBook([]))

    static let standardOutput = OutputStream(1)
    static let standardError = OutputStream(2)

    init(_ descriptor: Int32) {
        self.descriptor = descriptor
    }

    /// Writes the text in one piece, without adding a line end.
    func write(_ text: String) {
        var text = text
        text.withUTF8 { write(UnsafeRawBufferPointer($0)) }
    }

    /// Writes the bytes in one piece.
    func write(_ bytes: UnsafeRawBufferPointer) {
        error.withLock { error in
            if error == nil, !Glue.writeAll(descriptor, bytes) { error = errno }
        }
    }

    /// True after a failed write, whatever the reason.
    var isBroken: Bool { error.withLock { $0 != nil } }

    /// The system's text for a failed write; nil if there was none or only the reader is gone.
    var failure: String? {
        error.withLock { $0 }.flatMap { $0 == EPIPE ? nil : String(cString: strerror($0)) }
    }

    /// Writes a line, with `***` in place of the values that it hides.
    func writeLine(_ line: String) {
        write(hidden.mask(line) + "\n")
    }

    /// Lines show none of these values from now on.
    func hide(_ book: SecretBook) { secrets.withLock { $0 = book } }

    /// The values that lines do not show; the default is none.
    var hidden: SecretBook { secrets.withLock { $0 } }
}
