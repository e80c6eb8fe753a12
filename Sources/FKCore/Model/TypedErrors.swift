import FKMiddleware

/// Calls a function whose errors are all `DownloadError`, and tells the compiler so.
package func typedNow<Value>(_ body: () throws -> Value) throws(DownloadError) -> Value {
    do {
        return try body()
    } catch {
        throw DownloadError(wrapping: error, code: .disk, message: "The request failed.")
    }
}
