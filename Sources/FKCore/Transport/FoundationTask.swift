#if canImport(FoundationNetworking)
    import CSystem
    import FKMiddleware
    import Foundation
    import FoundationNetworking

    /// What is behind a URLSession task of FoundationNetworking's, for the way round three of its faults:
    ///
    /// - A body with a content coding is decoded, whatever was asked for. libcurl is told before the first byte is read to
    ///   leave it as it is.
    /// - Trailer fields are taken for the beginning of another head, and then the process ends for want of its response
    ///   (swift-corelibs-foundation #5285, mended after 6.3.1). Once the head of a chunked body is there, libcurl is told to
    ///   drop all further header lines.
    /// - The delegate is told of a redirect or a 401 behind its body, which may have no end. The response is there before.
    ///
    /// All of it is private and found by reflection; where it is not found, the faults are as they were. To be used where
    /// the callbacks come only.
    enum FoundationTask {
        /// To be called by the delegate with every response.
        static func dropTrailers(of task: URLSessionTask, _ response: URLResponse) {
            guard let response = response as? HTTPURLResponse, response.statusCode >= 200,
                response.value(forHTTPHeaderField: "Transfer-Encoding") != nil, let handle = handle(of: task)
            else { return }
            fk_foundation_drop_header_lines(handle)
        }

        /// To be called once the task has been resumed, again while it returns nil: Foundation sets libcurl's options in a
        /// later turn of the queue.
        ///
        /// - Returns: whether the body will be left as it is.
        static func keepCoding(of task: URLSessionTask) -> Bool? {
            guard let state = loader(of: task).flatMap({ property("internalState", of: $0) }),
                Mirror(reflecting: state).children.first?.label == "transferInProgress"
            else { return nil }
            return handle(of: task).map { fk_foundation_keep_coding($0) == 1 } ?? false
        }

        /// The last head that is there, interim ones included: `_NativeProtocol.internalState`, an enumeration whose case
        /// for a running transfer has the response.
        static func response(of task: URLSessionTask) -> HTTPURLResponse? {
            guard let state = loader(of: task).flatMap({ property("internalState", of: $0) }),
                let transfer = Mirror(reflecting: state).children.first?.value
            else { return nil }
            return property("response", of: transfer) as? HTTPURLResponse
        }

        /// libcurl's: `_NativeProtocol.easyHandle` has it as `rawHandle`.
        private static func handle(of task: URLSessionTask) -> UnsafeMutableRawPointer? {
            loader(of: task).flatMap { property("easyHandle", of: $0) }.flatMap { property("rawHandle", of: $0) }
                as? UnsafeMutableRawPointer
        }

        /// `URLSessionTask._protocolStorage`, an enumeration; its case for a running task has the `_NativeProtocol`.
        private static func loader(of task: URLSessionTask) -> Any? {
            property("_protocolStorage", of: task).flatMap { Mirror(reflecting: $0).children.first?.value }
        }

        /// A stored property, of the object's class or of one above it; nil where it is nil.
        private static func property(_ name: String, of owner: Any) -> Any? {
            var mirror: Mirror? = Mirror(reflecting: owner)
            while let level = mirror {
                if let found = level.children.first(where: { $0.label == name }) {
                    let value = Mirror(reflecting: found.value)
                    return value.displayStyle == .optional ? value.children.first?.value : found.value
                }
                mirror = level.superclassMirror
            }
            return nil
        }
    }
#endif
