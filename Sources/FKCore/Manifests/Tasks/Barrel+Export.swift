import FKCore
import FKEngine
import FKMiddleware
import Foundation

extension Barrel {
    /// The members as a list with URLs, mirrors, sizes and digests, which `Manifest` and `fk` can read again. The same members
    /// produce the same bytes.
    ///
    /// ```swift
    /// for try await part in barrel.exported(as: .lock) { socket.write(part) }
    /// ```
    ///
    /// The text comes in parts, each read from disk when it is requested, so a barrel of any size needs little memory. Names
    /// are relative to the barrel's folder, or to the deepest folder of all files if one of them is elsewhere.
    ///
    /// - Parameters:
    ///   - readsFiles: true, the default, reads finished files whose SHA-256 is not known, on all processors.
    ///   - leftOut: receives the members that the format cannot represent, with the reasons, before the last part.
    /// - Returns: the parts of the text in UTF-8. The sequence throws `.notFound` if the barrel is gone.
    package func exported(
        as output: Manifest.Output, readsFiles: Bool = true,
        leftOut: @escaping @Sendable (ManifestError) -> Void = { _ in }
    ) -> AsyncThrowingStream<[UInt8], any Error> {
        let (name, workPath) = (name, downloader.engine.workPath)
        let list = Locked<RecordManifest?>(nil)
        return AsyncThrowingStream {
            try await withCheckedThrowingContinuation { continuation in
                DispatchQueue.global().async {
                    continuation.resume(
                        with: Result {
                            try list.withLock { list in
                                if list == nil {
                                    list = try RecordManifest(
                                        workPath, barrel: name, as: output, readsFiles: readsFiles)
                                }
                                guard let part = list?.next() else { return nil }
                                if list?.isAtEnd == true { list?.leftOut.forEach(leftOut) }
                                return part
                            }
                        })
                }
            }
        }
    }

    /// Writes the members as a list to a file. The file is replaced when the list is complete.
    ///
    /// - Parameters:
    ///   - file: its folder must exist.
    ///   - readsFiles: true, the default, reads finished files whose SHA-256 is not known.
    /// - Returns: the members that the format cannot represent, with the reasons.
    /// - Throws: `.notFound` if the barrel is gone; `.destination` or `.noSpace` if the file cannot be written.
    @discardableResult
    public func export(
        as output: Manifest.Output, to file: URL, readsFiles: Bool = true
    ) async throws(DownloadError) -> [ManifestError] {
        let leftOut = Locked<[ManifestError]>([])
        let path = file.path
        let aside = path.folderPart.path(of: ".\(path.lastPathPart).\(UInt32.random(in: 0 ... .max)).new")
        do {
            let descriptor = try FileIO.open(aside, O_WRONLY | O_CREAT | O_EXCL, mode: 0o666)
            do {
                defer { FileIO.close(descriptor) }
                var offset = 0
                for try await part in exported(
                    as: output, readsFiles: readsFiles,
                    leftOut: { fault in
                        leftOut.withLock { $0.append(fault) }
                    })
                {
                    try part.withUnsafeBytes { try FileIO.write($0, to: descriptor, at: offset, path: aside) }
                    offset += part.count
                }
                try FileIO.rename(aside, to: path)
            } catch {
                unlink(aside)
                throw error
            }
        } catch {
            throw DownloadError(wrapping: error, code: .destination, message: "The list \(path) cannot be written.")
        }
        return leftOut.withLock { $0 }
    }
}

extension RecordManifest {
    /// - Throws: `.notFound`, `.corruptInfo`, `.laterVersion` or `.disk`.
    init(_ workPath: WorkPath, barrel name: String, as output: Manifest.Output, readsFiles: Bool) throws {
        let reader = StoreReader(workPath)
        let barrel = try reader.barrel(name)
        var facts = Manifest.Facts()
        facts.barrel = name
        facts.origin = barrel.options.origin
        facts.commit = barrel.options.commit
        self.init(
            reader, barrel.members.map(\.id), as: output, facts, below: barrel.options.directory,
            needsSHA256: readsFiles)
    }
}
