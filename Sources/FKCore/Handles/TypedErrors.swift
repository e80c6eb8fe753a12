import FKEngine
import FKMiddleware

/// Calls a component whose errors are all `DownloadError`, and tells the compiler so.
package func typed<Value>(
    isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Value
) async throws(DownloadError) -> Value {
    do {
        return try await body()
    } catch is CancellationError {
        throw FileOutcome.waitCancelled
    } catch {
        throw DownloadError(wrapping: error, code: .disk, message: "The request failed.")
    }
}
