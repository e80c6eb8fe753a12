import FKMiddleware

/// Bounds the answer to one request.
final class AnswerBudget: Sendable {
    private let left = Locked((bytes: RPCService.maxAnswer, rows: RPCService.maxRows))

    /// False once an answer was too long. The calls after it are not performed.
    var hasBytes: Bool { left.withLock { $0.bytes > 0 } }

    /// - Returns: false if that is too much. Nothing is left then.
    func take(bytes: Int) -> Bool {
        left.withLock { left in
            let isEnough = bytes <= left.bytes
            left.bytes = isEnough ? left.bytes - bytes : 0
            return isEnough
        }
    }

    /// - Returns: false if that is too much. Nothing is taken then.
    func take(rows: Int) -> Bool {
        left.withLock { left in
            guard rows <= left.rows else { return false }
            left.rows -= rows
            return true
        }
    }
}
