import NighBluetooth
import NighCore
import NighMDNS
import NighSerial

/// Targets for the announcements of networks, devices and serial lines.
enum Discovery {
    // MARK: Records of DNS

    /// Names, records and messages of DNS. Bytes are read as each of them.
    static func dns(_ input: inout Input) throws {
        switch input.number(below: 3) {
        case 0: try message(input.rest())
        case 1: try writtenMessage(&input)
        default:
            let interface = input.number(Int32.self)
            let bytes = input.rest()
            if let name = DomainName(wire: bytes) {
                try expect(name.wire == bytes, "the name \(bytes) became \(name.wire)")
                try check(name)
            }
            if let name = DomainName(escaped: String(decoding: bytes, as: UTF8.self)) { try check(name) }
            try checkRecords(bytes, interface)
        }
    }

    /// Checks that a name stays the same in each of its forms.
    private static func check(_ name: DomainName) throws {
        let isName =
            name.wire.count <= DomainName.maximumByteCount && !name.labels.isEmpty
            && name.labels.allSatisfy { (1...DomainName.maximumLabel).contains($0.count) }
        try expect(isName, "no name: \(name.labels)")
        try expect(DomainName(wire: name.wire)?.labels == name.labels, "\(name.labels) differs as bytes")
        try expect(
            DomainName(escaped: name.escaped)?.labels == name.labels, "differs as text: \(name.escaped)")
        let shouted = DomainName(
            labels: name.labels.map { $0.map { (97...122).contains($0) ? $0 - 32 : $0 } })
        let isSame = shouted == name && shouted?.hashValue == name.hashValue
        try expect(isSame, "\(name.labels) differs by case")
        guard let below = name.below(DomainName(literal: "local")) else { return }
        let isLabel = below.label(below: DomainName(literal: "local")) != nil
        try expect(isLabel == (name.labels.count == 1), "\(below.labels) below local")
    }

    private static func checkRecords(_ bytes: [UInt8], _ interface: Int32) throws {
        if let service = ServiceRecord(data: bytes) {
            try expect(service.data == bytes && service.port != 0, "the SRV \(bytes) became \(service.data)")
        }
        if let text = TextRecord(data: bytes) {
            let keys = Set(text.entries.map { $0.key.lowercased() })
            try expect(keys.count == text.entries.count, "a key twice in \(bytes)")
            try expect(text.data.count <= max(bytes.count, 1), "the TXT \(bytes) grew")
            try expect(TextRecord(data: text.data) == text, "the TXT \(bytes) became \(text.data)")
            let areValid = text.entries.allSatisfy { TextEntry(key: $0.key, value: $0.value) == $0 }
            try expect(areValid, "an invalid pair in \(bytes)")
        }
        if let address = HostAddress(bytes: bytes, interface: interface) {
            let isLocal = bytes.count == 16 && bytes[0] == 0xFE && bytes[1] >> 6 == 2
            try expect(address.bytes == bytes && (isLocal || address.scope == 0), "address \(address)")
            let hasScope = !isLocal || interface <= 0 || address.scope == UInt32(interface)
            try expect(hasScope, "scope of \(address)")
        }
    }

    private static func message(_ bytes: [UInt8]) throws {
        let answers = DNSMessage.answers(in: bytes, to: 7)
        try expect(answers.count <= DNSMessage.maximumRecords, "\(answers.count) answers")
        for answer in answers {
            try check(answer.question.name)
            switch answer.question.type {
            case .text: try expect(answer.data.count <= bytes.count, "more text than arrived")
            case .service:
                let standsAlone = answer.data.count > 6 && DomainName(wire: answer.data[6...]) != nil
                try expect(standsAlone, "an SRV that does not stand alone: \(answer.data)")
            default: throw Finding(description: "an answer that nobody asked for: \(answer)")
            }
        }
    }

    /// Reads answers as other programs write them: a name that came before may be abbreviated.
    private static func writtenMessage(_ input: inout Input) throws {
        var body: [UInt8] = []
        var places: [(name: DomainName, place: Int)] = []
        func write(_ name: DomainName, abbreviated: Bool) {
            if abbreviated, let known = places.last(where: { $0.name.labels == name.labels }) {
                body += [0xC0 | UInt8(known.place >> 8), UInt8(known.place & 0xFF)]
            } else {
                places.append((name, 12 + body.count))
                body += name.wire
            }
        }
        func name() -> DomainName {
            let labels = (0...input.number(below: 2)).map { _ in [97 + input.byte() % 3] + input.bytes(1) }
            return DomainName(labels: labels) ?? DomainName(literal: "x")
        }
        var expected: [DNSMessage.Answer] = []
        let count = input.number(below: 6)
        for _ in 0..<count {
            let owner = name(), host = name()
            let (kind, isGone) = (input.number(below: 3), !input.isUsual(oneIn: 8))
            write(owner, abbreviated: input.isUsual())
            body += [0, [33, 16, 1][kind], input.isUsual() ? 0 : 0x80, 1, 0, 0, 0, isGone ? 0 : 120, 0, 0]
            let start = body.count
            var data: [UInt8] = [0, 0, 0, 0, 0, 9]
            if kind == 1 { data = input.content() }
            body += data
            if kind == 0 {
                write(host, abbreviated: input.isUsual())
                data += host.wire
            }
            body[start - 2] = UInt8((body.count - start) >> 8)
            body[start - 1] = UInt8((body.count - start) & 0xFF)
            guard !isGone, kind < 2 else { continue }
            let question = Question(name: owner, type: kind == 0 ? .service : .text)
            expected.append(DNSMessage.Answer(question: question, data: data))
        }
        let bytes = [0, 7, 0x84, 0, 0, 0, 0, UInt8(count), 0, 0, 0, 0] + body
        let found = DNSMessage.answers(in: bytes, to: 7)
        try expect(found == expected, "\(found) in \(bytes), expected \(expected)")
        try expect(DNSMessage.answers(in: bytes, to: 8).isEmpty, "an answer to another question")
        try message(input.edited(bytes))
    }

    // MARK: Services of Bluetooth devices

    /// A device's answers to a search for its services. The search must end in bounded time, and the records that it
    /// finds must be possible ones.
    static func services(_ input: inout Input) throws {
        let part = 1 + input.number(below: 700)
        var edits = Input(input.bytes(6))
        let whole = input.rest()
        var rest = whole[...]
        var search = ServiceSearch(for: "greet")
        var question = search.begin()
        func two(_ number: Int) -> [UInt8] { [UInt8(number >> 8 & 0xFF), UInt8(number & 0xFF)] }
        // This is more questions than an answer may have bytes. A search that still goes on then would never end.
        for _ in 0...ServiceSearch.answerLimit {
            try expect(question.count > 5, "a question of \(question.count) bytes")
            let piece = Array(rest.prefix(part))
            rest = rest.dropFirst(part)
            let content = two(piece.count) + piece + (rest.isEmpty ? [0] : [2, 0xAB, 0xCD])
            let answer = [7] + question[1...2] + two(content.count) + content
            switch search.received(edits.edited(answer)) {
            case .send(let next): question = next
            case .failed: return
            case .done(let records): return try check(records)
            }
            if rest.isEmpty { rest = whole[...] }
        }
        throw Finding(description: "a search that does not end")
    }

    private static func check(_ records: [SessionRecord]) throws {
        try expect(records.count <= ServiceSearch.recordLimit, "\(records.count) records")
        for record in records {
            let isPossible = BluetoothDestination.channels.contains(record.channel)
            try expect(
                isPossible && record.advertisement.service == "greet", "an impossible record: \(record)")
            let destination = BluetoothDestination(record.adapter, channel: record.channel)
            let read = try? BluetoothDestination(destination.transportAddress)
            try expect(read == destination, "\(destination) is not an address")
        }
    }

    // MARK: A serial line

    /// The bytes of a serial line. A frame means the same when it is written again, and noise does not swallow the
    /// frame behind it.
    static func serial(_ input: inout Input) throws {
        var cut = Input(input.bytes(2))
        let valid: [SerialFrame] = [
            .state(.init(id: 1, pipe: 2, finished: 1, advertisement: [1, 0, 2])), .open(pipe: 2, to: 1),
            .refuse(pipe: 2), .packet(pipe: 2, [1, 0, 0, 3]),
        ]
        let written = (0..<input.number(below: 4)).map { _ in input.pick(valid) }
        let line = written.flatMap(\.bytes)
        let noise = input.rest()
        let last = SerialFrame.refuse(pipe: 77)
        var reader = SerialFrameReader()
        let slices = cut.slices(of: line + noise + last.bytes)
        let read = slices.flatMap { piece in piece.withUnsafeBytes { reader.read($0) } }
        try expect(read.starts(with: written) && read.last == last, "\(read) of \(written) and the last")
        for frame in read {
            var reader = SerialFrameReader()
            let again = frame.bytes.withUnsafeBytes { reader.read($0) }
            try expect(again == [frame], "\(frame) is read again as \(again)")
        }
    }
}
