import FKMiddleware

/// Bounds the answer to one request. Until a call of it has had the right secret, the answer costs no more than the request:
/// `unproven` bytes, or the request's own length if that is more.
final class AnswerBudget: Sendable {
    /// The least that an answer may have, so that the lists of methods fit.
    static let unproven = 64 << 10

    private struct Left {
        var bytes: Int
        var rows = RPCService.maxRows
        var isAdmitted = false
    }

    private let first: Int
    private let left: Locked<Left>

    /// - Parameter size: the length of the request.
    init(request size: Int = 0) {
        first = min(max(size, Self.unproven), RPCService.maxAnswer)
        left = Locked(Left(bytes: first))
    }

    /// True once a call had the right secret.
    var isAdmitted: Bool { left.withLock { $0.isAdmitted } }

    func admit() {
        left.withLock { left in
            guard !left.isAdmitted else { return }
            left.isAdmitted = true
            left.bytes += RPCService.maxAnswer - first
        }
    }

    /// - Returns: false if that is too much. Nothing is left then.
    func spend(bytes: Int) -> Bool {
        left.withLock { left in
            let isEnough = bytes <= left.bytes
            left.bytes = isEnough ? left.bytes - bytes : 0
            return isEnough
        }
    }

    /// - Returns: false if that is too much. Nothing is taken then.
    func spend(rows: Int) -> Bool {
        left.withLock { left in
            guard rows <= left.rows else { return false }
            left.rows -= rows
            return true
        }
    }
}
