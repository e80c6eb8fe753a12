import FKCore
import FKManifests
import FKMiddleware
import Foundation

/// `--signed-by KEY` and `--signature FILE|URL`. A list, or else each file, has to be signed by the key.
struct SignatureOptions: Sendable {
    let key: SignatureKey
    /// The path or the URL of the signature; nil looks beside the list or file.
    private let place: String?

    static let specs: [OptionSpec] = [
        .value(
            "signed-by", nil, "KEY", hint: .file,
            "accept only what this key has signed: the list, or without one each file; KEY is a file, a minisign key or "
                + "'ssh-ed25519 …'"),
        .value(
            "signature", nil, "FILE|URL", hint: .file,
            "the signature for --signed-by (default: beside the list or file, as NAME.minisig, .sig or .asc)"),
    ]

    /// Reads the options; nil without a key.
    init?(_ arguments: ParsedArguments, _ context: CommandContext) throws {
        guard let text = arguments["signed-by"] else {
            guard !arguments.has("signature") else {
                throw arguments.error("--signature needs the signer's key: give it with --signed-by KEY.")
            }
            return nil
        }
        do throws(DownloadError) {
            key =
                SignatureKey.isLiteral(text) ? try SignatureKey(text) : try SignatureKey(contentsOfFile: text)
        } catch {
            throw arguments.error("--signed-by: \(error.message)")
        }
        if let fault = key.programFault { throw arguments.error("--signed-by: \(fault).") }
        place = arguments["signature"]
        for (option, reason) in [
            ("metalink", "whose files have signatures of their own"), ("include", "which is not signed"),
        ]
        where arguments.has(option) {
            throw arguments.error("--signed-by is about a list or a file, not about --\(option), \(reason).")
        }
    }

    /// The refusal of a URL beside a signed list: nothing proves its file.
    static func besideList(_ url: String) -> String {
        "--signed-by: \(url.masked.visible) stands beside the list, and nothing proves its file. Put it into "
            + "the list, or fetch it by a command of its own."
    }

    /// True if the signature of a list from standard input is named.
    var isNamed: Bool { place != nil }

    /// - Returns: the signer.
    /// - Throws: `CommandFailure` that names the list if it was refused.
    @discardableResult func prove(
        _ bytes: [UInt8], of list: String, _ options: TaskOptions, over transport: any Transport
    ) async throws -> String {
        let signature = try await signature(of: list, options, over: transport)
        do throws(SignatureKey.Fault) { return try key.prove(signature, .bytes(bytes)) } catch {
            throw CommandFailure(
                error.error(of: "The list \(list.masked.visible)").message, status: ExitStatus.taskFailed)
        }
    }

    /// Gives a task the signature of its file.
    ///
    /// - Throws: `CommandFailure` if there is none, or if it is not by the key.
    func sign(_ task: inout TaskDescription, over transport: any Transport) async throws {
        let signature = try await signature(of: task.url, task.options, over: transport)
        if let fault = key.fault(in: signature) {
            throw CommandFailure("\(task.url.masked.visible) was refused: \(fault).", status: ExitStatus.taskFailed)
        }
        task.options.signature = FileSignature(signature, by: key)
    }

    private func signature(
        of subject: String, _ options: TaskOptions, over transport: any Transport
    ) async throws -> [UInt8] {
        if let place { return try await read(place, options, subject, over: transport) }
        let candidates = key.suffixes.map { NearbyFile.adding($0, to: subject) }
        for candidate in candidates where NearbyFile.isURL(candidate) || access(candidate, F_OK) == 0 {
            do {
                return try await read(candidate, options, subject, over: transport)
            } catch let error as DownloadError where error.status == 404 || error.status == 410 {
                continue
            }
        }
        let looked = candidates.map { $0.masked.visible }.joined(separator: ", ")
        throw CommandFailure(
            "\(subject.masked.visible) was refused: there is no signature of it. Name one with "
                + "--signature; looked for: \(looked)", status: ExitStatus.taskFailed)
    }

    private func read(
        _ place: String, _ options: TaskOptions, _ subject: String, over transport: any Transport
    ) async throws -> [UInt8] {
        guard NearbyFile.isURL(place) else {
            return try [UInt8](ofFile: place, limit: SignatureKey.signatureLimit, named: "signature")
        }
        return try await NearbyFile.fetch(
            place, beside: subject, options, limit: SignatureKey.signatureLimit, over: transport)
    }
}

extension ListInput {
    /// Reads the list and proves it; its tasks are then made of the proven bytes.
    ///
    /// - Throws: `CommandFailure` if it was refused; `Fault` if it cannot be read.
    mutating func prove(
        by signature: SignatureOptions, _ options: TaskOptions, _ context: CommandContext, over transport: any Transport
    ) async throws {
        guard bagFolder(in: context.workingDirectory) == nil else {
            throw CommandFailure(
                "--signed-by is about a list in one file, and \(source) is a bag.", status: ExitStatus.usage)
        }
        guard path != "-" || signature.isNamed else {
            throw CommandFailure(
                "--signed-by: a list from standard input needs --signature FILE|URL.", status: ExitStatus.usage)
        }
        var bytes: [UInt8]
        if NearbyFile.isURL(path) {
            let answer = try await NearbyFile.answer(
                of: path, beside: path, options, limit: Self.maxFetched, over: transport)
            bytes = answer.bytes ?? []
            // The host that the owner has named, and not one that it redirects to: the signature is not about addresses.
            reading.baseURL = reading.baseURL ?? path.urlFolder
        } else {
            bytes = try contents()
        }
        signer = try await signature.prove(bytes, of: path == "-" ? source : path, options, over: transport)
        proven = bytes
    }
}

extension BarrelOptions {
    /// Takes the signer of a list over. A barrel whose lists were signed takes no other list, and neither does one whose lock
    /// claims another signer.
    ///
    /// - Parameters:
    ///   - signer: the signer that was proven; nil without one.
    ///   - claimed: the signer that a lock names. It stays a claim until a list is proven.
    /// - Throws: `CommandFailure` that names both keys.
    mutating func adopt(signer: String?, claimed: String? = nil, of name: String) throws {
        let isSame =
            if let signedBy { signer == signedBy } else if let claimedSigner {
                (signer ?? claimed) == claimedSigner
            } else { true }
        guard isSame else {
            let known = SignatureKey.shown(signedBy ?? claimedSigner ?? "")
            let other = signer.map { "by the key \(SignatureKey.shown($0))" } ?? "by no key: give --signed-by"
            let (shown, verb) = (name.visible, signedBy == nil ? "claimed to be signed" : "signed")
            throw CommandFailure(
                "The list was refused: the lists of the barrel \(shown) are \(verb) by the key \(known), and this one is "
                    + "signed \(other)", status: ExitStatus.taskFailed)
        }
        signedBy = signer ?? signedBy
        claimedSigner = signedBy == nil ? claimed ?? claimedSigner : nil
    }

    /// Checks files that are added without a list. A barrel whose lists are signed takes only files that its key has signed.
    ///
    /// - Throws: `CommandFailure` that names the first other file.
    func check(_ tasks: [TaskDescription], of name: String) throws {
        guard let signedBy else { return }
        let origin = ListOrigin("", signer: signedBy).signer
        guard
            let other = tasks.first(where: { task in
                task.options.signature?.key != signedBy && task.options.list?.signer != origin
            })
        else { return }
        throw CommandFailure(
            "\(other.url.masked.visible) was refused: the barrel \(name.visible) takes only files that "
                + "the key \(SignatureKey.shown(signedBy)) has signed. Give its signed list with -i, or another barrel.",
            status: ExitStatus.usage)
    }

    /// The settings of a barrel that exists; nil otherwise.
    static func known(_ name: String, _ global: GlobalOptions) throws -> BarrelOptions? {
        WorkPath(global.workPath).hasBarrel(name) ? try global.openReader().barrelIDs(name).barrel.options : nil
    }
}
