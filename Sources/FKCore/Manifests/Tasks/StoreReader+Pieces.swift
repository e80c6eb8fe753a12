import FKCore
import FKEngine

extension StoreReader {
    /// The digests as lists in JSON have them: an array of one object; nil without any.
    package func piecesJSON(of record: TaskRecord) -> [UInt8]? {
        pieceDigests(of: record).flatMap(Manifest.Pieces.init).map(JSONLine.pieces)
    }
}
