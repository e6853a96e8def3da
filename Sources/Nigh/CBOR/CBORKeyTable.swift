/// Finds a key by its bytes, in a time that does not grow with the number of keys. Hashes are seeded anew in each
/// program, so nobody can send keys that collide.
struct CBORKeyTable {
    /// Numbers of keys, plus one. A free slot is 0.
    private var slots: [UInt32]

    /// Creates a table with room for `count` keys.
    init(for count: Int) {
        slots = Array(repeating: 0, count: 1 << (Int.bitWidth - (2 * count).leadingZeroBitCount))
    }

    /// Returns the number of the key with these bytes. `isEqual` tells whether the key with a number has them.
    func find(_ key: UnsafeRawBufferPointer, isEqual: (Int) -> Bool) -> Int? {
        let number = slots[slot(for: key, isEqual)]
        return number == 0 ? nil : Int(number) - 1
    }

    /// Inserts a key, unless an equal one is in the table. Returns whether it was inserted.
    mutating func insert(
        _ number: Int, _ key: UnsafeRawBufferPointer, isEqual: (Int) -> Bool
    ) -> Bool {
        let slot = slot(for: key, isEqual)
        guard slots[slot] == 0 else { return false }
        slots[slot] = UInt32(number + 1)
        return true
    }

    private func slot(for key: UnsafeRawBufferPointer, _ isEqual: (Int) -> Bool) -> Int {
        var hasher = Hasher()
        hasher.combine(bytes: key)
        let mask = slots.count - 1
        var slot = hasher.finalize() & mask
        while slots[slot] != 0, !isEqual(Int(slots[slot]) - 1) { slot = (slot + 1) & mask }
        return slot
    }
}
