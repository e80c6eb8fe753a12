#if canImport(CLibcurl)
    import Foundation

    /// A numeric address with its port, as `AddressClass` reads it.
    struct NumericAddress: Hashable {
        let text: String
        let port: Int

        /// nil for an address that is neither of IPv4 nor of IPv6.
        init?(_ address: UnsafePointer<sockaddr>) {
            let raw = UnsafeRawPointer(address)
            var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
            switch Int32(address.pointee.sa_family) {
            case AF_INET:
                var four = raw.loadUnaligned(as: sockaddr_in.self)
                guard inet_ntop(AF_INET, &four.sin_addr, &text, socklen_t(text.count)) != nil else { return nil }
                port = Int(UInt16(bigEndian: four.sin_port))
            case AF_INET6:
                var six = raw.loadUnaligned(as: sockaddr_in6.self)
                guard inet_ntop(AF_INET6, &six.sin6_addr, &text, socklen_t(text.count)) != nil else { return nil }
                port = Int(UInt16(bigEndian: six.sin6_port))
            default: return nil
            }
            self.text = text.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
        }
    }
#endif
