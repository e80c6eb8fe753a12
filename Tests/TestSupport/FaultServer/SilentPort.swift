import Foundation

/// A port of this machine on which nobody listens, and which nobody else is given as long as this object lives.
package final class SilentPort: Sendable {
    package let number: UInt16
    private let descriptor: Int32

    package init() throws {
        (descriptor, number) = try Socket.listen(isListening: false)
    }

    deinit { close(descriptor) }
}
