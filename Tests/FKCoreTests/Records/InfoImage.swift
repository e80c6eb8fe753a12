import FKMiddleware

@testable import FKStore

/// The bytes of an info file in a test's hand, taken apart and put together with numbers of its own: what `InfoFormat`
/// writes and reads is not asked.
struct InfoImage {
    var bytes: [UInt8]
    let slotSize: Int

    /// Generations `generation` and `generation + 1` of a task, as its engine leaves them.
    init(old: TaskRecord, new: TaskRecord, generation: UInt64) throws {
        let payloads = try [old.json(), new.json()]
        slotSize = try InfoFormat.Geometry.holding(payload: payloads.map(\.count).max() ?? 0).slotSize
        bytes = [UInt8](repeating: 0, count: 64 + 2 * slotSize + 8 * 64)
        put(UInt64(0x0a4f_464e_492d_4b46), at: 0)
        put(UInt32(1), at: 8)
        put(UInt32(slotSize), at: 12)
        put(UInt32(64), at: 16)
        sealHeader()
        for (offset, payload) in payloads.enumerated() { setSlot(generation + UInt64(offset), payload) }
    }

    func offset(of slot: Int) -> Int { 64 + slot * slotSize }

    func generation(of slot: Int) -> UInt64 { word(at: offset(of: slot)) }

    func length(of slot: Int) -> Int { Int(truncatingIfNeeded: word(at: offset(of: slot) + 8) & 0xffff_ffff) }

    func payload(of slot: Int) -> [UInt8] {
        let start = offset(of: slot) + 16
        return Array(bytes[start..<start + length(of: slot)])
    }

    /// Generation, length, checksum and payload: what makes a slot.
    func slot(_ slot: Int) -> ArraySlice<UInt8> { bytes[offset(of: slot)..<offset(of: slot) + 16 + length(of: slot)] }

    /// Writes a payload with a right checksum into the slot of its generation, as far as there is room.
    mutating func setSlot(_ generation: UInt64, _ payload: [UInt8]) {
        let start = offset(of: Int(generation & 1))
        let payload = payload.prefix(slotSize - 16)
        put(generation, at: start)
        put(UInt32(payload.count), at: start + 8)
        bytes.replaceSubrange(start + 16..<start + 16 + payload.count, with: payload)
        sealSlot(Int(generation & 1))
    }

    /// Makes a slot's checksum right for what it says, where its length can be.
    mutating func sealSlot(_ slot: Int) {
        let start = offset(of: slot)
        guard start + 16 + length(of: slot) <= bytes.count else { return }
        var crc = CRC32C()
        let length = length(of: slot)
        bytes.withUnsafeBytes {
            crc.update(UnsafeRawBufferPointer(rebasing: $0[start..<start + 12]))
            crc.update(UnsafeRawBufferPointer(rebasing: $0[start + 16..<start + 16 + length]))
        }
        put(crc.value, at: start + 12)
    }

    mutating func sealHeader() {
        put(bytes[0..<60].withUnsafeBytes { CRC32C.checksum($0) }, at: 60)
    }

    mutating func setCounter(_ index: Int, _ value: UInt64) { put(value, at: 64 + 2 * slotSize + 8 * index) }

    mutating func put<Number: FixedWidthInteger>(_ value: Number, at offset: Int) {
        bytes.withUnsafeMutableBytes { $0.storeBytes(of: value.littleEndian, toByteOffset: offset, as: Number.self) }
    }

    private func word(at offset: Int) -> UInt64 {
        bytes.withUnsafeBytes { UInt64(littleEndian: $0.loadUnaligned(fromByteOffset: offset, as: UInt64.self)) }
    }
}
