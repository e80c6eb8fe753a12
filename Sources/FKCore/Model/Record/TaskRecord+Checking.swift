import FKMiddleware
import Foundation

/// Refuses records that no engine writes. A checksum proves that a record is as it was written, but not that its
/// values make sense. All other code may then calculate with the numbers and open the names.
extension TaskRecord {
    /// A number of attempts that is never reached, with space to count on.
    private static let maxAttempts = 1 << 40
    /// The maximum number of ranges; `SegmentPlanner` makes 64.
    private static let maxRanges = 4_096

    /// Checks all values, and clamps those of the options.
    ///
    /// - Throws: `.corruptInfo` for impossible numbers, and for names that lead out of the task's folder.
    package mutating func check() throws(DownloadError) {
        restoreFormer()
        if let fault = numberFault ?? rangeFault ?? nameFault ?? task.fault {
            throw DownloadError(.corruptInfo, "The record is invalid: \(fault).")
        }
        if task.hasOptions { task.options = task.options.clamped() }
    }

    private var numberFault: String? {
        if number > UInt64(Int64.max) { return "its number is impossible" }
        if !(0...Self.maxAttempts).contains(attempts) { return "its count of attempts is impossible" }
        if let progress, progress.received < 0 || !(0...Self.maxAttempts).contains(progress.attempts) {
            return "its progress is impossible"
        }
        if expected ?? 0 < 0 { return "the file's length is negative" }
        if bytesPerSecond ?? 0 < 0 { return "its speed is negative" }
        if isImpossible(created) || isImpossible(started) || isImpossible(finished) || isImpossible(lastUsed)
            || isImpossible(waiting?.until) || history.contains(where: { isImpossible($0.time) })
        {
            return "a time is impossible"
        }
        return nil
    }

    private func isImpossible(_ time: Date?) -> Bool {
        time.map { !($0.timeIntervalSince1970.magnitude <= JSONText.latestTime) } ?? false
    }

    private var rangeFault: String? {
        if ranges.count > Self.maxRanges { return "it has \(ranges.count) byte ranges" }
        var sum: Int64 = 0
        for range in ranges {
            guard range.start >= 0, range.position >= range.start, range.position <= range.end ?? .max,
                range.synced >= 0
            else { return "a byte range is impossible" }
            // The sizes of the ranges count and not their bytes, because live counters may fill them at any time.
            let (total, overflow) = sum.addingReportingOverflow((range.end ?? .max) - range.start)
            if overflow { return "its byte ranges overlap" }
            sum = total
        }
        return nil
    }

    /// A part file always has a name of our own; a response middleware may have put a finished file anywhere.
    private var nameFault: String? {
        if let partName {
            guard FileNameRules.isOneComponent(partName), partName.utf8.first == UInt8(ascii: "."),
                String(decoding: partName.utf8.suffix(24), as: UTF8.self) == ".\(id.leadingDigits(16)).fkpart"
            else { return "its part file is not its own" }
        }
        if let partFolder, !partFolder.isAbsolutePath { return "the part file has no absolute path" }
        if let link, link.hasControls { return "its address holds control characters" }
        if let offered, offered.contains(where: \.hasControls) { return "an offered mirror holds control characters" }
        if let path, !path.isAbsolutePath { return "the finished file has no absolute path" }
        if let setAside, !setAside.allSatisfy({ $0.path.isAbsolutePath && isHiddenAside($0.path.lastPathPart) }) {
            return "a file set aside is not its own"
        }
        if let fault = former?.fault ?? changed?.fault ?? former?.changed?.fault { return fault }
        if let leftBehind, !leftBehind.allSatisfy(\.isAbsolutePath) {
            return "what was left behind has no absolute path"
        }
        return nil
    }
}

extension TaskRecord {
    /// True for a hidden name with the task's id, as `FileNameRules` makes it.
    func isHiddenAside(_ name: String) -> Bool {
        name.utf8.first == UInt8(ascii: ".")
            && [".fkrejected", ".fkpart.old"].contains { name.utf8.suffix($0.utf8.count).elementsEqual($0.utf8) }
            && name.split(separator: ".").contains { $0.utf8.elementsEqual(id.hex.prefix(16).utf8) }
    }
}

extension TaskDescription {
    /// The reason why the description is unsafe to use; nil if it is safe. It is for descriptions that reach the
    /// engine without `Builder`: from records and messages.
    package var fault: String? {
        if url.hasControls { return "its URL holds control characters" }
        if let fileName, !FileNameRules.isOneComponent(fileName) { return "the name asked for is not one plain name" }
        if let directory, !directory.isAbsolutePath {
            let reason = Self.directoryFault(directory) ?? "it is relative, and the current folder has no usable path"
            return "its folder is \"\(directory.prefix(60).visible)\": \(reason)"
        }
        return nil
    }
}

extension String {
    /// True for an absolute path without a zero byte.
    var isAbsolutePath: Bool { utf8.first == UInt8(ascii: "/") && !hasByte { $0 == 0 } }

    /// True if it has control characters of ASCII or spaces.
    fileprivate var hasControls: Bool { hasByte { $0 <= 0x20 || $0 == 0x7f } }

    /// Looks at the bytes in memory: step by step through `utf8` takes ten times as long.
    private func hasByte(_ isWanted: (UInt8) -> Bool) -> Bool {
        utf8.withContiguousStorageIfAvailable { $0.contains(where: isWanted) } ?? utf8.contains(where: isWanted)
    }
}
