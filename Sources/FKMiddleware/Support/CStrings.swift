import Foundation

/// Lists of texts in C's form, as `execv` takes them.
package enum CStrings {
    /// Passes the texts as a list that ends with nil. It is valid during the call.
    package static func with<Result>(
        _ texts: [String], _ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>) -> Result
    ) -> Result {
        var pointers = texts.map { strdup($0) }
        pointers.append(nil)
        defer { pointers.forEach { free($0) } }
        return body(&pointers)
    }
}

/// Programs that the library starts: middlewares and verifiers of signatures.
package enum OtherPrograms {
    /// The reason why none can be started; nil on macOS and Linux.
    #if os(macOS) || os(Linux)
        package static let fault: String? = nil
    #else
        package static let fault: String? = "this system does not let applications start programs"
    #endif
}
