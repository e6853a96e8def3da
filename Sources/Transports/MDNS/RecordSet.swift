/// All that is known under one question: on each interface the record data that stand, the newest last.
///
/// The same record is heard over IPv4 and IPv6, and a changed one arrives before the old one leaves.
package struct RecordSet {
    /// More on one interface is nobody's honest answer: 32 addresses, heard over IPv4 and IPv6.
    package static let maximumPerInterface = 64

    private var data: [Int32: [(version: Int32, data: [UInt8])]] = [:]

    var isEmpty: Bool { data.isEmpty }

    var interfaces: some Sequence<Int32> { data.keys }

    /// Whether the interface has any.
    func contains(_ interface: Int32) -> Bool { data[interface] != nil }

    /// The newest first, each once.
    func newest(on interface: Int32) -> [[UInt8]] {
        var seen: Set<[UInt8]> = []
        return (data[interface] ?? []).reversed().map(\.data).filter { seen.insert($0).inserted }
    }

    /// On all interfaces, in no order.
    var all: [[UInt8]] { data.values.flatMap { $0.map(\.data) } }

    /// Returns false when there was no room. A record from the middle was left out then: see `ends`.
    mutating func apply(_ change: RecordChange) -> Bool {
        let interface = change.place.interface
        var all = data.removeValue(forKey: interface) ?? []
        all.removeAll { $0.version == change.place.version && $0.data == change.data }
        if change.isPresent { all.append((change.place.version, change.data)) }
        let hadRoom = all.count <= Self.maximumPerInterface
        if !hadRoom { all.remove(at: all.count / 2) }
        if !all.isEmpty { data[interface] = all }
        return hadRoom
    }
}

extension Array {
    /// Up to `limit` elements, from both ends in turn: the first, the last, the second, the last but one, and so on.
    ///
    /// For records in the order of their age. Forged ones come after the true one or before it, so the true one stands at an
    /// end, and is not pushed out however many are forged.
    package func ends(_ limit: Int) -> [Element] {
        (0..<Swift.min(count, limit)).map { self[$0.isMultiple(of: 2) ? $0 / 2 : count - 1 - $0 / 2] }
    }
}
