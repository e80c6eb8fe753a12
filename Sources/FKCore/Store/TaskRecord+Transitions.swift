import FKMiddleware
import Foundation

extension TaskRecord {
    /// Forgets everything that was received, and what was known of it. The state is left to the caller.
    mutating func dropBytes() {
        ranges = []
        expected = nil
        validator = nil
        source = nil
        partName = nil
        partTime = nil
        pieces = nil
        path = nil
        written = nil
        lengthVerified = nil
    }
}
