import Foundation

/// Tells public Internet addresses from loopback, private, link-local, shared, multicast and reserved ones (RFC 6890,
/// RFC 4193, RFC 6598).
package enum AddressClass {
    /// True if the host of a URL is a private address; nil if it is a name, which needs a lookup.
    package static func isPrivate(host: String) -> Bool? {
        let host = host.lowercased()
        if host == "localhost" || host.hasSuffix(".localhost") { return true }
        return isPrivate(address: host)
    }

    /// True for a private address; nil if the text is not a numeric IPv4 or IPv6 address. A zone (`%eth0`) is
    /// ignored.
    package static func isPrivate(address: String) -> Bool? {
        let text = address.prefix { $0 != "%" }
        var four = in_addr()
        if inet_pton(AF_INET, String(text), &four) == 1 {
            return withUnsafeBytes(of: &four) { isPrivateIPv4(Array($0)) }
        }
        var six = in6_addr()
        if inet_pton(AF_INET6, String(text), &six) == 1 {
            return withUnsafeBytes(of: &six) { isPrivateIPv6(Array($0)) }
        }
        return nil
    }

    /// The family of a numeric address; nil for another text.
    package static func family(of address: String) -> AddressFamily? {
        let text = String(address.prefix { $0 != "%" })
        var bytes = in6_addr()
        if inet_pton(AF_INET, text, &bytes) == 1 { return .ipv4 }
        return inet_pton(AF_INET6, text, &bytes) == 1 ? .ipv6 : nil
    }

    private static func isPrivateIPv4(_ bytes: [UInt8]) -> Bool {
        switch (bytes[0], bytes[1], bytes[2]) {
        case (0, _, _), (10, _, _), (127, _, _), (224..., _, _): true
        case (100, 64...127, _), (169, 254, _), (172, 16...31, _), (192, 168, _), (192, 0, 0), (198, 18...19, _): true
        default: false
        }
    }

    private static func isPrivateIPv6(_ bytes: [UInt8]) -> Bool {
        let leadingZeros = bytes.prefix { $0 == 0 }.count
        if leadingZeros >= 15 { return true }  // :: and ::1
        let mapped = leadingZeros >= 10 && bytes[10] == 0xff && bytes[11] == 0xff
        let translated = bytes.starts(with: [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0])
        // NAT64 for use inside a network (RFC 8215): where the IPv4 address is in it depends on the network.
        if bytes.starts(with: [0, 0x64, 0xff, 0x9b, 0, 1]) { return true }
        if mapped || translated || leadingZeros >= 12 { return isPrivateIPv4(Array(bytes[12...])) }
        if bytes[0] == 0x20, bytes[1] == 0x02 { return isPrivateIPv4(Array(bytes[2..<6])) }  // 6to4
        return bytes[0] & 0xfe == 0xfc  // unique local
            || (bytes[0] == 0xfe && bytes[1] & 0x80 == 0x80)  // link-local, site-local
            || bytes[0] == 0xff  // multicast
    }
}
