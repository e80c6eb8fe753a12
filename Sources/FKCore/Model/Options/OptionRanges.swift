import FKMiddleware
import Foundation

/// Checks numbers set by an application, a command line or a record. A value outside its range is an error that
/// contains the option, the value and the range.
package enum OptionRange {
    /// The sentence about a value outside its range; nil if it is inside, or not set.
    package static func fault<Value: Comparable>(_ name: String, _ value: Value?, in range: ClosedRange<Value>)
        -> String?
    {
        guard let value, !range.contains(value) else { return nil }
        return "\(name) is \(value), and must be from \(range.lowerBound) to \(range.upperBound)"
    }

    package static func fault<Value: Comparable>(_ name: String, _ value: Value?, in range: PartialRangeFrom<Value>)
        -> String?
    {
        guard let value, !range.contains(value) else { return nil }
        return "\(name) is \(value), and must be at least \(range.lowerBound)"
    }

    package static func fault(_ name: String, seconds: Double?, in range: ClosedRange<Double>) -> String? {
        guard let seconds, !range.contains(seconds) else { return nil }
        return "\(name) is \(seconds) s, and must be from \(range.lowerBound) s to \(range.upperBound) s"
    }

    package static func fault(_ name: String, _ limit: ConnectionLimit?) -> String? {
        guard case .fixed(let count) = limit else { return nil }
        return fault("\(name) = .fixed", count, in: ConnectionLimit.range)
    }

    /// The same for the path of a file, which came from a URL.
    package static func fault(path: String?, of name: String) -> String? {
        guard let path, path.utf8.first != UInt8(ascii: "/") || path.utf8.contains(0) else { return nil }
        return "\(name) is \"\(path.prefix(60).visible)\", and must be the URL of a file"
    }

    /// Throws `.invalidArgument` with the sentence, if there is one.
    package static func check(_ fault: String?) throws(DownloadError) {
        if let fault { throw DownloadError(.invalidArgument, "\(fault).") }
    }
}

extension ConnectionLimit {
    /// The range of `.fixed`.
    package static let range = 1...256
}

extension TaskOptions {
    /// Checks every option. Adding a task calls it before anything is created.
    ///
    /// - Throws: `.invalidArgument` with the first option outside its range, its value and the range, or with the
    ///   first header field that cannot be sent. The message never contains the value of a header field.
    package func validate() throws(DownloadError) { try OptionRange.check(fault) }

    /// The error message of `validate`; nil if all options are valid.
    package var fault: String? {
        numberFault ?? timeFault ?? Self.typeFault(expectedType) ?? headers?.lazy.compactMap(\.fault).first
            ?? pieces?.fault ?? networkFault ?? pathFault
    }

    private var pathFault: String? {
        OptionRange.fault(path: caPath, of: "options.caFile")
            ?? OptionRange.fault(path: cookiePath, of: "options.cookieFile")
            ?? OptionRange.fault(path: adoptPath, of: "options.adopts")
            ?? OptionRange.fault(path: clientCertificate?.path, of: "options.clientCertificate")
            ?? OptionRange.fault(path: clientCertificate?.keyPath, of: "options.clientCertificate")
    }

    private var networkFault: String? {
        if let pinnedPublicKey, let fault = TransportOptions.fault(pinnedPublicKey: pinnedPublicKey) { return fault }
        if let dnsServers, let fault = TransportOptions.fault(dnsServers: dnsServers) { return fault }
        if let proxy, let fault = ProxyAddress.fault(in: proxy) { return "options.proxy: \(fault)" }
        if interface?.isEmpty == true { return "options.interface must not be empty" }
        if let fault = hostAddresses?.lazy.compactMap({ HostAddress.fault(in: $0.text) }).first { return fault }
        if let fault = loginHost.flatMap({ LoginHost.fault(in: $0) }) { return fault }
        return dohURL.flatMap { TransportOptions.fault(dohURL: $0) }
    }

    /// The error message for an expected type that is neither `file` nor `type/subtype`.
    private static func typeFault(_ type: String?) -> String? {
        guard let type, type != "file" else { return nil }
        let parts = type.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count != 2 || !parts.allSatisfy({ String($0).isFieldName }) || parts[0] == "*" else {
            return nil
        }
        return "options.expectedType must be file or a media type such as application/zip"
    }

    private var numberFault: String? {
        OptionRange.fault("options.maxSize", maxSize, in: 0...)
            ?? OptionRange.fault("options.size", size, in: 0...)
            ?? OptionRange.fault("options.rateLimit", rateLimit, in: 0...)
            ?? OptionRange.fault("options.minFree", minFree, in: 0...)
            ?? OptionRange.fault("options.connections", connections)
            ?? OptionRange.fault("options.maxAttempts", maxAttempts, in: RetryPolicy.attempts)
    }

    private var timeFault: String? {
        OptionRange.fault("options.timeout", seconds: timeoutSeconds, in: Self.timeouts)
            ?? OptionRange.fault("options.stallTimeout", seconds: stallSeconds, in: Self.timeouts)
            ?? OptionRange.fault("options.runSeconds", seconds: runSeconds, in: Self.timeouts) ?? deadlineFault
    }

    /// The range of timeouts, in seconds.
    private static let timeouts = 0.001...1e9

    /// The options with each number clamped to its range. For records, because an earlier version may have written
    /// them.
    package func clamped() -> TaskOptions {
        var options = self
        options.maxSize = maxSize.map { max($0, 0) }
        options.size = size.map { max($0, 0) }
        options.rateLimit = rateLimit.map { max($0, 0) }
        options.minFree = minFree.map { max($0, 0) }
        let attempts = RetryPolicy.attempts
        options.maxAttempts = maxAttempts.map { min(max($0, attempts.lowerBound), attempts.upperBound) }
        if case .fixed(let count) = connections {
            let range = ConnectionLimit.range
            options.connections = .fixed(min(max(count, range.lowerBound), range.upperBound))
        }
        func clamped(_ seconds: Double) -> Double {
            min(max(seconds, Self.timeouts.lowerBound), Self.timeouts.upperBound)
        }
        options.timeoutSeconds = timeoutSeconds.map(clamped)
        options.stallSeconds = stallSeconds.map(clamped)
        options.runSeconds = runSeconds.map(clamped)
        if deadlineFault != nil { options.deadline = nil }
        return options
    }

    private var deadlineFault: String? {
        let range = Date(timeIntervalSince1970: 0)...Date.distantFuture
        // A date that is not a number compares as equal to every date.
        guard let deadline, !range.contains(deadline) || deadline.timeIntervalSince1970.isNaN else { return nil }
        return "options.deadline is outside its range, and must be from 1970 to Date.distantFuture"
    }
}

extension HeaderField {
    /// The reason why the field cannot be sent; nil for a valid one. It never contains the value, which may be a
    /// secret.
    package var fault: String? {
        guard name.isFieldName else {
            return "\"\(name.prefix(60).visible)\" is not the name of a header field"
        }
        guard value.isFieldValue else {
            return "the value of the header field \(name) holds a line break or NUL"
        }
        return nil
    }
}

extension TransportOptions {
    /// The error message of `Configure.validate`; nil if all options are valid.
    package var fault: String? {
        OptionRange.fault("transport.connectTimeout", seconds: connectSeconds, in: 0...1e9)
            ?? OptionRange.fault("transport.stallTimeout", seconds: stallSeconds, in: 0...1e9)
            ?? OptionRange.fault("transport.stallRate", stallRate, in: 0...)
            ?? OptionRange.fault("transport.maxRedirects", maxRedirects, in: 0...)
            ?? OptionRange.fault("transport.maxHeaderBytes", maxHeaderBytes, in: 1...)
            ?? OptionRange.fault("transport.maxHeaderLines", maxHeaderLines, in: 1...)
            ?? textFault ?? proxyFault ?? pathFault
    }

    private var textFault: String? {
        if let userAgent, let fault = HeaderField("User-Agent", userAgent).fault {
            return "transport.userAgent: \(fault)"
        }
        if interface?.isEmpty == true { return "transport.interface must not be empty" }
        return pinnedPublicKey.flatMap(Self.fault(pinnedPublicKey:))
    }

    private var proxyFault: String? {
        guard let proxy, let fault = ProxyAddress.fault(in: proxy) else { return nil }
        return "transport.proxy: \(fault)"
    }

    private var pathFault: String? {
        OptionRange.fault(path: caPath, of: "transport.caFile") ?? OptionRange.fault(
            path: crlPath, of: "transport.crlFile")
            ?? OptionRange.fault(path: cookiePath, of: "transport.cookieFile")
    }
}

extension TransportOptions {
    /// What is wrong with the text of `pinnedPublicKey`; nil for a valid one. libcurl ignores a key that it cannot read, and takes other
    /// texts for the path of a file.
    package static func fault(pinnedPublicKey text: String) -> String? {
        for key in text.split(separator: ";", omittingEmptySubsequences: false) {
            let digest = key.hasPrefix("sha256//") ? Data(base64Encoded: String(key.dropFirst(8))) : nil
            if digest?.count == 32 { continue }
            return
                "\"\(key.prefix(60).visible)\" is not a public key's hash: give sha256//BASE64 of its SHA-256, "
                + "several separated by ;"
        }
        return nil
    }

    /// What is wrong with the list `dnsServers`; nil if nothing is.
    package static func fault(dnsServers servers: String) -> String? {
        let isList = servers.split(separator: ",", omittingEmptySubsequences: false).allSatisfy { server in
            !server.isEmpty && server.utf8.allSatisfy { $0.isASCIIHexDigit || ".:[]%".utf8.contains($0) }
        }
        return isList ? nil : "\"\(servers.prefix(60).visible)\" is no list of name servers: give ADDRESS[:PORT],…"
    }

    /// What is wrong with `dohURL`; nil if nothing is.
    package static func fault(dohURL url: String) -> String? {
        let isServer = URLOrigin(url)?.scheme == "https" && !url.utf8.contains { $0 <= 0x20 || $0 == 0x7f }
        return isServer ? nil : "\"\(url.masked.prefix(60).visible)\" is no https URL of a server for DNS"
    }
}

extension UInt8 {
    fileprivate var isASCIIHexDigit: Bool {
        (0x30...0x39).contains(self) || (0x61...0x66).contains(self | 0x20)
    }
}

extension RetryPolicy {
    /// The range of `maxAttempts`.
    package static let attempts = 1...1001

    /// The error message of `Configure.validate`; nil if all values are valid.
    package var fault: String? {
        OptionRange.fault("retry.maxAttempts", maxAttempts, in: Self.attempts)
            ?? OptionRange.fault("retry.baseDelay", seconds: baseDelaySeconds, in: 0...3_600)
            ?? OptionRange.fault("retry.maxDelay", seconds: maxDelaySeconds, in: 0...86_400)
            ?? OptionRange.fault("retry.jitter", jitter, in: 0...1)
            ?? OptionRange.fault("retry.maxRetryAfter", seconds: maxRetryAfterSeconds, in: 0...86_400)
    }
}
