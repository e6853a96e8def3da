import NighBluetooth
import NighCore

/// What a device answers when it is asked about its services. Whatever comes, the search must end in bounded time, and
/// the records of sessions that it finds must be possible ones.
enum ServiceSearchTarget {
    private static let service: ServiceName = "greet"
    private static let adapters = ["00:AA:01:00:00:00", "FF:FF:FF:FF:FF:FF"]

    /// Values that others might put into a record.
    private static let values: [[UInt8]] = [
        [0x00], [0x08, 7], [0x09, 0, 4], [0x0A, 0, 0, 1, 0], [0x19, 1, 0], [0x28, 1], [0x35, 0], [0x25, 0],
        [0x36, 0xFF, 0xFF], [0x37, 0xFF, 0xFF, 0xFF, 0xFF], [0x35, 2, 0x35, 0], [0x3D, 3, 0x08, 1, 0x00],
        [UInt8](repeating: 0x35, count: 40), [0x0C] + [UInt8](repeating: 1, count: 16),
    ]

    private static func text(_ bytes: [UInt8]) -> [UInt8] { [0x26] + two(bytes.count) + bytes }

    private static func sequence(_ bytes: [UInt8]) -> [UInt8] { [0x36] + two(bytes.count) + bytes }

    private static func two(_ number: Int) -> [UInt8] { [UInt8(number >> 8 & 0xFF), UInt8(number & 0xFF)] }

    private static func record(_ mutator: inout Mutator) -> [UInt8] {
        let advertisement = Advertisement(
            service: service, peer: mutator.pick(SessionHarness.identities).peerID,
            name: DisplayName(fitting: "Puma"))
        let pairs = TextRecord(entries: AnnouncementText.entries(of: advertisement)).data
        let rfcomm = sequence([0x19, 0, 3, 0x08, UInt8(mutator.number(below: 33))])
        var record: [UInt8] = []
        record += [0x09, 0, 0, 0x0A] + mutator.bytes(4)
        record += [0x09, 0, 4] + sequence(sequence([0x19, 1, 0]) + rfcomm)
        record += [0x09, 1, 0] + text(mutator.perhapsChanged(Array("Puma".utf8), with: values))
        record += [0x09, 3, 0] + text(mutator.perhapsChanged(pairs, with: [pairs]))
        record += [0x09, 3, 1] + text(Array(mutator.pick(adapters).utf8))
        return sequence(mutator.perhapsChanged(record, with: values))
    }

    static func run(_ mutator: inout Mutator) throws {
        var list: [UInt8] = []
        for _ in 0..<mutator.number(below: 4) { list += record(&mutator) }
        let isHonest = mutator.oneIn(8)
        let whole = isHonest ? sequence(list) : mutator.perhapsChanged(sequence(list), with: values)
        var rest = whole[...]
        var search = ServiceSearch(for: service)
        var question = search.begin()
        // More questions than bytes that may come: a search that still goes on then never ends.
        for _ in 0...ServiceSearch.answerLimit {
            guard question.count > 5 else { throw Finding("a question of \(question.count) bytes") }
            let part = Array(rest.prefix(1 + mutator.number(below: 700)))
            rest = rest.dropFirst(part.count)
            let more: [UInt8] = rest.isEmpty ? [0] : [2, 0xAB, 0xCD]
            let content = two(part.count) + part + more
            let answer = [7] + question[1...2] + two(content.count) + content
            switch search.received(isHonest ? answer : mutator.perhapsChanged(answer, with: values)) {
            case .send(let next): question = next
            case .failed:
                if isHonest, !whole.isEmpty { throw Finding("an honest answer is not understood: \(whole)") }
                return
            case .done(let records): return try check(records)
            }
            if rest.isEmpty { rest = whole[...] }
        }
        throw Finding("a search that does not end")
    }

    private static func check(_ records: [SessionRecord]) throws {
        if records.count > ServiceSearch.recordLimit { throw Finding("\(records.count) records") }
        for record in records {
            guard BluetoothDestination.channels.contains(record.channel),
                record.advertisement.service == service
            else { throw Finding("an impossible record: \(record)") }
            let destination = BluetoothDestination(record.adapter, channel: record.channel)
            guard let read = try? BluetoothDestination(destination.transportAddress), read == destination
            else {
                throw Finding("\(destination) is not an address")
            }
        }
    }
}
