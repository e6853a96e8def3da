/// All that is known about one question: for each interface, the data of the valid records, the newest last.
///
/// Each record is received over IPv4 and over IPv6, and a changed record arrives before the old one is withdrawn.
package struct RecordSet {
    /// The most records per interface. No honest answer has more: 32 addresses, received over IPv4 and IPv6.
    package static let maximumPerInterface = 64

    private var data: [Int32: [(version: Int32, data: [UInt8])]] = [:]

    var isEmpty: Bool { data.isEmpty }

    var interfaces: some Sequence<Int32> { data.keys }

    /// Whether the interface has any record.
    func contains(_ interface: Int32) -> Bool { data[interface] != nil }

    /// The data on an interface, the newest first, without duplicates.
    func newest(on interface: Int32) -> [[UInt8]] {
        var seen: Set<[UInt8]> = []
        return (data[interface] ?? []).reversed().map(\.data).filter { seen.insert($0).inserted }
    }

    /// The data on all interfaces, in no order.
    var all: [[UInt8]] { data.values.flatMap { $0.map(\.data) } }

    /// Applies a change. Returns false if there was no room; a record from the middle was then dropped, see
    /// `takingFromBothEnds`.
    mutating func apply(_ change: RecordChange) -> Bool {
        let interface = change.origin.interface
        var all = data.removeValue(forKey: interface) ?? []
        all.removeAll { $0.version == change.origin.version && $0.data == change.data }
        if change.isPresent { all.append((change.origin.version, change.data)) }
        let hadRoom = all.count <= Self.maximumPerInterface
        if !hadRoom { all.remove(at: all.count / 2) }
        if !all.isEmpty { data[interface] = all }
        return hadRoom
    }
}

extension Array {
    /// Returns up to `limit` elements, from both ends in turn: the first, the last, the second, the last but one, and
    /// so on.
    ///
    /// Meant for records in the order of their age. Forged records come after the true one or before it. So the true
    /// one is at an end, and no number of forged ones displaces it.
    package func takingFromBothEnds(_ limit: Int) -> [Element] {
        (0..<Swift.min(count, limit)).map { self[$0.isMultiple(of: 2) ? $0 / 2 : count - 1 - $0 / 2] }
    }
}
