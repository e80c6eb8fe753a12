import FKCore
import FKMiddleware

/// The members of a work path's divided barrels: the shards fetch them, and the work path itself does not.
struct DividedMembers {
    /// The divided barrels.
    let barrels: [String]
    let ids: Set<TaskID>
    /// The folder of a shard's work path.
    private let firstShard: String?

    /// - Returns: nil if no barrel is divided.
    init?(_ reader: StoreReader) throws {
        let barrels = try reader.barrelNames().filter { try ShardPlan.read($0, in: reader.workPath) != nil }
        guard !barrels.isEmpty else { return nil }
        self.barrels = barrels
        ids = Set(try barrels.flatMap { try reader.barrelIDs($0).ids })
        let plan = try ShardPlan.read(barrels[0], in: reader.workPath)
        firstShard = plan.flatMap { Shard(1, of: $0.count) }.map { reader.workPath.shard($0).root }
    }

    /// The notes, with the command that watches a shard.
    func watching(_ global: GlobalOptions) -> String {
        var own = global
        if let firstShard { (own.workPath, own.isWorkPathGiven) = (firstShard, true) }
        return (notes + ["Watch one with: \(own.suggested("fk watch"))"]).joined(separator: " ")
    }

    /// A sentence for each barrel.
    var notes: [String] { barrels.map { "The barrel \($0) is divided: its members are left to the shards." } }
}
