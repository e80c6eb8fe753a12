#if canImport(CLibcurl)
    /// The transfers that have delivered bytes since the loop last waited.
    final class CurlTurn {
        private var ids: [UInt64] = []

        func delivered(_ id: UInt64) {
            if ids.last != id { ids.append(id) }
        }

        /// Returns and forgets them. A transfer may be among them more than once.
        func drainDelivered() -> [UInt64] {
            if ids.isEmpty { return [] }
            defer { ids.removeAll(keepingCapacity: true) }
            return ids
        }
    }
#endif
