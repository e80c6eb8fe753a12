#if canImport(FoundationNetworking)
    import CSystem
    import FKMiddleware
    import Foundation
    import FoundationNetworking

    /// Reads the private state of a URLSession task of FoundationNetworking, to work around three of its faults:
    ///
    /// - It decodes a body with a content coding, whatever the request asked for. libcurl is told before the first
    ///   byte to leave the body as it is.
    /// - It takes trailer fields for the start of another head, and the process then crashes because the response is
    ///   missing (swift-corelibs-foundation #5285, fixed after 6.3.1). Once the head of a chunked body has arrived,
    ///   libcurl is told to drop all further header lines.
    /// - It reports a redirect or a 401 to the delegate after the body, which may never end. The response itself is
    ///   available earlier.
    ///
    /// The state is private and found by reflection. If it is not found, the faults remain. Call these functions only
    /// where the callbacks run.
    enum FoundationTask {
        /// The delegate calls it for every response.
        static func dropTrailers(of task: URLSessionTask, _ response: URLResponse) {
            guard let response = response as? HTTPURLResponse, response.statusCode >= 200,
                response.value(forHTTPHeaderField: "Transfer-Encoding") != nil, let handle = handle(of: task)
            else { return }
            fk_foundation_drop_header_lines(handle)
        }

        /// Called after the task was resumed, and again while it returns nil: Foundation sets libcurl's options in a
        /// later turn of the queue.
        ///
        /// - Returns: true if the body will be left as it is.
        static func keepCoding(of task: URLSessionTask) -> Bool? {
            guard let state = loader(of: task).flatMap({ property("internalState", of: $0) }),
                Mirror(reflecting: state).children.first?.label == "transferInProgress"
            else { return nil }
            return handle(of: task).map { fk_foundation_keep_coding($0) == 1 } ?? false
        }

        /// The last head that has arrived, including interim ones. `_NativeProtocol.internalState` is an enumeration
        /// whose case for a running transfer contains the response.
        static func response(of task: URLSessionTask) -> HTTPURLResponse? {
            guard let state = loader(of: task).flatMap({ property("internalState", of: $0) }),
                let transfer = Mirror(reflecting: state).children.first?.value
            else { return nil }
            return property("response", of: transfer) as? HTTPURLResponse
        }

        /// libcurl's handle: `_NativeProtocol.easyHandle` contains it as `rawHandle`.
        private static func handle(of task: URLSessionTask) -> UnsafeMutableRawPointer? {
            loader(of: task).flatMap { property("easyHandle", of: $0) }.flatMap { property("rawHandle", of: $0) }
                as? UnsafeMutableRawPointer
        }

        /// `URLSessionTask._protocolStorage`, an enumeration whose case for a running task contains the
        /// `_NativeProtocol`.
        private static func loader(of task: URLSessionTask) -> Any? {
            property("_protocolStorage", of: task).flatMap { Mirror(reflecting: $0).children.first?.value }
        }

        /// A stored property of the object's class or a superclass; nil if it is missing or nil.
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
