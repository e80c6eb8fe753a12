import FKCore
import FKMiddleware
import Foundation

/// `fk provenance`: an in-toto Statement about finished files.
///
/// A subject and a file of the predicate are one line each. The files are written aside while the subjects are printed, so memory
/// does not grow with the number of files.
struct ProvenanceCommand: Command {
    let barrel: String?
    let tasks: [TaskReference]
    /// The absolute path of the file; nil for standard output.
    let output: String?
    /// The absolute path of the key that signs; nil for none.
    let key: String?
    let context: CommandContext

    /// Names the schema of the predicate, Docs/provenance.schema.json.
    static let predicateType = "urn:fkdownloader:provenance:v1"

    static let spec = CommandSpec(
        path: ["provenance"], summary: "print where finished files came from, as an in-toto statement",
        discussion: [
            "Prints an in-toto Statement v1 in JSON: a subject with its SHA-256 for each complete file, and for each one its URL, "
                + "redirects, mirrors by range, validators, digests, list, signer and times. Files whose SHA-256 is not known are "
                + "read. Secrets of URLs are masked. Names are relative to the barrel's folder, or to the deepest folder of all "
                + "files.",
            "--sign writes FILE.sig beside FILE, as 'ssh-keygen -Y sign -n file' does. KEY is a private key, or the public key "
                + "of one that the agent has. Exit status 1: a complete file was left out, because it is not as fk has left it "
                + "and its SHA-256 is not known.",
        ],
        operands: [TaskReference.operands(0)],
        options: [
            .value("barrel", "b", "NAME", hint: .barrels, "the members of this barrel"),
            .value("output", "o", "FILE", hint: .file, "write to FILE, which is replaced"),
            .value("sign", nil, "KEY", hint: .file, "sign FILE with this OpenSSH key; needs -o"),
        ],
        examples: [
            .init("fk provenance -b data -o data.intoto.json --sign ~/.ssh/id_ed25519", "a signed statement"),
            .init("fk provenance '*.iso'", "the statement about some files"),
        ], usesSettings: false,
        make: { arguments, context in
            guard arguments.operands.isEmpty == arguments.has("barrel") else {
                throw arguments.error(
                    arguments.has("barrel")
                        ? "Tasks and -b exclude each other." : "Name tasks, or a barrel with -b NAME.")
            }
            guard !arguments.has("sign") || arguments.has("output") else {
                throw arguments.error("--sign needs -o FILE: the signature becomes FILE.sig.")
            }
            func path(_ option: String) throws -> String? {
                try arguments[option].map { try Paths.absolute($0, from: context.workingDirectory) }
            }
            return try ProvenanceCommand(
                barrel: arguments.barrel(),
                tasks: arguments.operands.map(TaskReference.init), output: path("output"), key: path("sign"),
                context: context)
        })

    func run() async throws -> Int32 {
        let reader = try global.openQuery()
        guard let output else { return try write(reader, to: context.output) }
        return try replace(output) { try write(reader, to: $0) }
    }

    // MARK: The statement

    private func write(_ reader: StoreReader, to output: OutputStream) throws -> Int32 {
        let chosen = try tasks.flatMap { try $0.records(reader) }
        func pass(_ body: ([TaskRecord]) throws -> Void) throws -> BarrelOptions? {
            guard let barrel else {
                try body(chosen)
                return nil
            }
            return try reader.forEachRecord(
                ofBarrel: barrel, problem: { context.warn($0.description) }, body
            ).options
        }
        var folder = CommonFolder(
            try barrel.map { try reader.forEachMember(of: $0) { _, _ in }.options.directory } ?? nil)
        var count = 0
        _ = try pass { records in
            for record in records where record.state == .complete {
                folder.add(CommonFolder.place(of: record))
                count += 1
            }
        }
        guard count > 0 else {
            throw CommandFailure("No file is complete: there is nothing to state.", status: ExitStatus.taskFailed)
        }
        let scratch = try Scratch(context)
        var subjects = Lines(output)
        var files = Lines(scratch.stream)
        output.write(
            #"{"_type":"https://in-toto.io/Statement/v1","predicateType":"\#(Self.predicateType)","subject":["#)
        var others = 0
        var leftOut: [String] = []
        let base = folder
        let options = try pass { records in
            others += records.count { $0.state != .complete }
            let complete = records.filter { $0.state == .complete }
            let texts = complete.mappedInParallel { record -> (subject: [UInt8], file: [UInt8])? in
                let name = base.name(of: CommonFolder.place(of: record))
                let file = ProvenanceDocument(record, name: name)
                return file.sha256.map { sha256 in
                    let subject = JSON.members(["digest": .texts(["sha256": sha256]), "name": .string(name)])
                    return (subject.bytes, file.json.bytes)
                }
            }
            for (record, text) in zip(complete, texts) {
                guard let text else {
                    leftOut.append(CommonFolder.place(of: record))
                    continue
                }
                subjects.add(text.subject)
                files.add(text.file)
            }
        }
        output.write("\n],\"predicate\":{\"fk\":\"\(Version.text)\",\"created\":\"\(Date().timestamp)\"")
        if let options, let barrel {
            let facts = JSON.members(
                [
                    "commit": JSON(options.commit), "name": .string(barrel), "origin": JSON(options.origin),
                    "signedBy": JSON(options.signedBy),
                ], omittingNull: true)
            output.write(",\"barrel\":" + String(decoding: JSONLayout.text(facts.bytes, indent: nil), as: UTF8.self))
        }
        output.write(",\"files\":[")
        try scratch.copy(to: output)
        output.write("\n]}}\n")
        return say(others, leftOut)
    }

    private func say(_ others: Int, _ leftOut: [String]) -> Int32 {
        if others > 0, !global.quiet {
            context.errors.writeLine("fk: \(others.plural("file")) left out: not complete")
        }
        for path in leftOut.prefix(ListInput.maxShown) {
            context.warn("\(path) is left out: it is not as fk has left it, and its SHA-256 is not known")
        }
        if leftOut.count > ListInput.maxShown { context.warn("and \(leftOut.count - ListInput.maxShown) more") }
        return leftOut.isEmpty ? ExitStatus.done : ExitStatus.taskFailed
    }

    /// The elements of an array, one a line.
    private struct Lines {
        private let output: OutputStream
        private var isEmpty = true

        init(_ output: OutputStream) { self.output = output }

        mutating func add(_ json: [UInt8]) {
            output.write((isEmpty ? "\n" : ",\n") + String(decoding: JSONLayout.text(json, indent: nil), as: UTF8.self))
            isEmpty = false
        }
    }

    // MARK: Files

    /// A file without a name, in TMPDIR.
    private final class Scratch {
        let stream: OutputStream

        init(_ context: CommandContext) throws {
            let folder = try ScratchFolder.make("fk-provenance", context)
            let descriptor = open("\(folder)/files", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
            let code = errno
            unlink("\(folder)/files")
            rmdir(folder)
            guard descriptor >= 0 else { throw ProvenanceCommand.failure("A temporary file cannot be made", code) }
            stream = OutputStream(descriptor)
        }

        deinit { close(stream.descriptor) }

        func copy(to output: OutputStream) throws {
            if let reason = stream.failure { throw CommandFailure("A temporary file: \(reason).", status: 1) }
            lseek(stream.descriptor, 0, SEEK_SET)
            let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 16)
            defer { buffer.deallocate() }
            while true {
                let count = Glue.read(stream.descriptor, buffer)
                guard count >= 0 else { throw ProvenanceCommand.failure("A temporary file cannot be read", errno) }
                if count == 0 { return }
                output.write(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            }
        }
    }

    /// Writes beside the file, signs, and replaces the file and its signature when both are whole.
    private func replace(_ path: String, _ write: (OutputStream) throws -> Int32) throws -> Int32 {
        var template = Array("\(path).XXXXXX".utf8CString)
        let descriptor = mkstemp(&template)
        guard descriptor >= 0 else { throw Self.failure("\(path.visible) cannot be written", errno) }
        let aside = template.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
        // The file is for everyone, as one that the shell writes: mkstemp keeps it from others.
        let mask = umask(0)
        umask(mask)
        fchmod(descriptor, 0o666 & ~mask)
        defer { unlink(aside) }
        let stream = OutputStream(descriptor)
        let status = try { () throws -> Int32 in
            defer { close(descriptor) }
            return try write(stream)
        }()
        if let reason = stream.failure {
            throw CommandFailure("\(path.visible) cannot be written: \(reason).", status: ExitStatus.taskFailed)
        }
        let signature = try key.map { try SignatureKey.sshSignature(of: aside, with: $0) }
        if let signature { try Data(signature).write(to: URL(fileURLWithPath: path + ".sig"), options: .atomic) }
        guard rename(aside, path) == 0 else {
            throw Self.failure("\(path.visible) cannot be written", errno)
        }
        return status
    }

    private static func failure(_ what: String, _ code: Int32) -> CommandFailure {
        CommandFailure("\(what): \(String(cString: strerror(code))).", status: ExitStatus.taskFailed)
    }
}
