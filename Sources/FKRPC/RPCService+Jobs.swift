import FKCore
import FKManifests
import FKMiddleware
import Foundation

/// The jobs of the page: commands of `fk` about sources and bundles.
struct ToolJobs: Sendable {
    /// The number of jobs that run at once, so that a job is never in the way of middleware programs.
    static let maxRunning = 2
    /// The number of jobs that are remembered.
    static let maxKnown = 16

    private(set) var all: [ToolJob] = []
    private var last = 0

    subscript(_ number: Int) -> ToolJob? { all.first { $0.number == number } }

    /// Makes a job, which is not started.
    ///
    /// - Throws: `RPCError` if too many run.
    mutating func add(_ command: ToolCommand) throws(RPCError) -> ToolJob {
        guard all.count(where: \.isRunning) < Self.maxRunning else {
            throw RPCError(
                "\(Self.maxRunning) commands of the page are running: wait until one ends, or end one (fk.endJob).")
        }
        last += 1
        let job = ToolJob(last, command)
        all.append(job)
        while all.count > Self.maxKnown, let oldest = all.firstIndex(where: { !$0.isRunning }) {
            all.remove(at: oldest)
        }
        return job
    }
}

/// The methods of the page that `fk` itself carries out, so that they mean the same as on the command line.
extension RPCService {
    func jobMethod(_ call: PageCall) throws(RPCError) -> JSON {
        switch call.method {
        case "fk.preview": return try startJob(source(call, .preview))
        case "fk.fetch": return try startJob(source(call, .fetch))
        case "fk.sync": return try startJob(ToolCommand(sync: call, gate))
        case "fk.publish": return try startJob(ToolCommand(publish: call, gate))
        case "fk.jobs": return .array(jobs.all.map { $0.document(hasFiles: false) })
        case "fk.endJob":
            let job = try job(call)
            job.stop()
            return job.document(hasFiles: false)
        default: return try job(call).document(hasFiles: true)
        }
    }

    private func job(_ call: PageCall) throws(RPCError) -> ToolJob {
        guard call.has("id") else { throw RPCError("\(call.method) needs the member id.") }
        let number = try call.integer("id", in: 1...Int.max, or: 0)
        guard let job = jobs[number] else { throw RPCError("There is no job \(number).") }
        return job
    }

    private func startJob(_ command: ToolCommand) throws(RPCError) -> JSON {
        guard let program = settings.tool else {
            throw RPCError(
                "The system does not tell the path of this program, so it lists no sources and publishes nothing.")
        }
        var command = command
        if settings.refusesPrivate, command.kind != .publish { command.refusePrivate() }
        let job = try jobs.add(command)
        job.start(program, workPath: workPath.root) { [weak self] in _ = await self?.refresh() }
        return job.document(hasFiles: false)
    }

    private func source(_ call: PageCall, _ kind: ToolCommand.Kind) throws(RPCError) -> ToolCommand {
        let reader = reader
        return try ToolCommand(
            source: call, kind, gate, standard: globals["dir"],
            place: { (text) throws(RPCError) in try place(text) },
            known: { (name) throws(RPCError) in
                guard let options = try? reader.barrel(name).options else { return nil }
                return options.directory ?? ""
            })
    }

    /// Checks the name of a source as the program does, so that no file of this machine is read as a list.
    private func place(_ text: String) throws(RPCError) -> ToolCommand.Place {
        let environment = ProcessInfo.processInfo.environment
        do throws(DownloadError) {
            let registry = SourceRegistry()
            if workPath.exists { try registry.registerPrograms(in: workPath) }
            if let (_, place) = try registry.find(text, in: environment) {
                return .init(folderName: place.folderName, title: place.title.masked)
            }
        } catch { throw RPCError(error) }
        throw RPCError(
            "'\(text.masked.visible)' names no source. A source is a folder such as https://example.com/pub/, or "
                + "SCHEME:NAME such as s3://BUCKET/PREFIX, hf:OWNER/REPO or oci:REGISTRY/REPO:TAG.")
    }
}
