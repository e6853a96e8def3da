import NighCore
import NighMDNS

/// Names, records and messages of DNS. Bytes are read as each of them, and what was read must be written with the same
/// meaning.
enum RecordTarget {
    static let labels: [[UInt8]] = [
        Array("Puma".utf8), Array("pUMA".utf8), Array("_greet".utf8), Array("_tcp".utf8), Array("local".utf8),
        Array("a.b\\c".utf8), Array("Küche #2".utf8), [0x7F], [UInt8](repeating: 0x61, count: 63),
        Array("h".utf8),
    ]
    static let names = labels.compactMap { DomainName(labels: [$0]) }
    /// Valid data of records of all kinds.
    static let data: [[UInt8]] = {
        let type = DomainName(literal: "_greet._tcp.local")
        let instances = names.compactMap { $0.below(type) }
        let entries = [("v", "1"), ("id", "x"), ("table", "open"), ("Table", "shut")]
            .compactMap { TextEntry(key: $0.0, value: $0.1) }
        return instances.map(\.wire) + names.map { ServiceRecord(port: 4_000, host: $0).data }
            + (0...entries.count).map { TextRecord(entries: Array(entries.prefix($0))).data }
            + [[10, 0, 0, 7], [0xFE, 0x80] + [UInt8](repeating: 0, count: 13) + [9], [0]]
            + [[UInt8](repeating: 1, count: 2_048), [UInt8](repeating: 0, count: 16)]
    }()

    static func run(_ mutator: inout Mutator) throws {
        let bytes = mutator.perhapsChanged(mutator.pick(data), with: data)
        try name(bytes)
        try service(bytes)
        try text(bytes)
        try address(bytes, interface: Int32(truncatingIfNeeded: mutator.pick(Mutator.edges)))
        var words = mutator.pick(names).escaped
        for _ in 0..<mutator.number(below: 4) {
            mutator.change(&words, with: [".", "\\", "\\046", "\\255", "\\999", "local", "é", "\\000"])
        }
        try name(words)
        try message(&mutator)
    }

    private static func name(_ bytes: [UInt8]) throws {
        let plain = plainLabels(bytes)
        guard let name = DomainName(wire: bytes) else {
            if let plain, DomainName(labels: plain) != nil { throw Finding("a name was not read: \(bytes)") }
            return
        }
        if name.wire != bytes || name.labels != plain {
            throw Finding("the name \(bytes) became \(name.wire)")
        }
        try same(name)
    }

    /// Returns the labels of a name, found in the simplest way.
    private static func plainLabels(_ bytes: [UInt8]) -> [[UInt8]]? {
        var labels: [[UInt8]] = []
        var start = 0
        while start < bytes.count, bytes[start] != 0 {
            let end = start + 1 + Int(bytes[start])
            guard end <= bytes.count, bytes[start] < 64 else { return nil }
            labels.append(Array(bytes[start + 1..<end]))
            start = end
        }
        return start == bytes.count - 1 && !labels.isEmpty ? labels : nil
    }

    private static func name(_ words: String) throws {
        if let name = DomainName(escaped: words) { try same(name) }
    }

    /// Checks that a name stays the same in each of its forms.
    private static func same(_ name: DomainName) throws {
        guard name.wire.count <= DomainName.maximumByteCount, !name.labels.isEmpty,
            name.labels.allSatisfy({ (1...DomainName.maximumLabel).contains($0.count) })
        else { throw Finding("no name: \(name.labels)") }
        if DomainName(wire: name.wire)?.labels != name.labels {
            throw Finding("is not decoded as it was encoded: \(name.labels)")
        }
        if DomainName(escaped: name.escaped)?.labels != name.labels {
            throw Finding("\(name.labels) differs as text: \(name.escaped)")
        }
        let shouted = DomainName(
            labels: name.labels.map { $0.map { (97...122).contains($0) ? $0 - 32 : $0 } })
        if shouted != name || shouted?.hashValue != name.hashValue {
            throw Finding("\(name.labels) differs by case")
        }
        guard let below = name.below(names[4]) else { return }
        let isLabel = name.labels.count == 1
        if (below.label(below: names[4]) != nil) != isLabel { throw Finding("\(below.labels) below local") }
    }

    private static func service(_ bytes: [UInt8]) throws {
        guard let service = ServiceRecord(data: bytes) else { return }
        if service.data != bytes { throw Finding("the SRV \(bytes) became \(service.data)") }
        if service.port == 0 { throw Finding("a service without a port") }
    }

    private static func text(_ bytes: [UInt8]) throws {
        guard let text = TextRecord(data: bytes) else { return }
        let keys = Set(text.entries.map { $0.key.lowercased() })
        if keys.count != text.entries.count { throw Finding("a key twice in \(bytes)") }
        if text.data.count > max(bytes.count, 1) { throw Finding("the TXT \(bytes) grew") }
        if TextRecord(data: text.data) != text { throw Finding("the TXT \(bytes) became \(text.data)") }
        if text.entries.contains(where: { TextEntry(key: $0.key, value: $0.value) != $0 }) {
            throw Finding("an invalid pair in \(bytes)")
        }
    }

    private static func address(_ bytes: [UInt8], interface: Int32) throws {
        guard let address = HostAddress(bytes: bytes, interface: interface) else { return }
        let isLocal = bytes.count == 16 && bytes[0] == 0xFE && bytes[1] >> 6 == 2
        if address.bytes != bytes || (!isLocal && address.scope != 0) { throw Finding("address \(address)") }
        if isLocal, interface > 0, address.scope != UInt32(interface) { throw Finding("scope of \(address)") }
    }

    // MARK: Messages

    private static func message(_ mutator: inout Mutator) throws {
        var writer = MessageWriter(number: 7)
        for _ in 0..<mutator.number(below: 5) { writer.add(&mutator) }
        let valid = writer.bytes
        let found = DNSMessage.answers(in: valid, to: 7)
        if found != writer.expected {
            throw Finding("\(found) in \(valid), expected \(writer.expected)")
        }
        if !DNSMessage.answers(in: valid, to: 8).isEmpty { throw Finding("an answer to another question") }
        var bytes = valid
        for _ in 0...mutator.number(below: 4) { mutator.change(&bytes, with: data + [valid]) }
        let answers = DNSMessage.answers(in: bytes, to: 7)
        if answers.count > DNSMessage.maximumRecords { throw Finding("\(answers.count) answers") }
        for answer in answers {
            try same(answer.question.name)
            switch answer.question.type {
            case .text: if answer.data.count > bytes.count { throw Finding("more text than arrived") }
            case .service:
                guard answer.data.count > 6, DomainName(wire: answer.data[6...]) != nil else {
                    throw Finding("an SRV that does not stand alone: \(answer.data)")
                }
            default: throw Finding("an answer that nobody asked for: \(answer)")
            }
        }
    }
}

/// Writes answers as other programs do, with names abbreviated that have come before.
private struct MessageWriter {
    private var head: [UInt8]
    private var body: [UInt8] = []
    private var count = 0
    private(set) var expected: [DNSMessage.Answer] = []
    /// The offsets of names that may be pointed at.
    private var places: [(name: DomainName, place: Int)] = []

    init(number: UInt8) { head = [0, number, 0x84, 0, 0, 0] }

    var bytes: [UInt8] { head + [0, UInt8(count), 0, 0, 0, 0] + body }

    mutating func add(_ mutator: inout Mutator) {
        count += 1
        let owner = mutator.pick(RecordTarget.names).below(mutator.pick(RecordTarget.names))!
        let kind = mutator.number(below: 4)
        write(owner, &mutator)
        let isGone = mutator.oneIn(8)
        body += [0, [33, 16, 1, 33][kind], mutator.oneIn(2) ? 0x80 : 0, 1, 0, 0, 0, isGone ? 0 : 120]
        let start = body.count
        body += [0, 0]
        switch kind {
        case 0, 3:
            let service = ServiceRecord(port: 9, host: mutator.pick(RecordTarget.names))
            body += service.data.prefix(6)
            write(service.host, &mutator)
            if !isGone { expect(owner, .service, service.data) }
        case 1:
            let text = mutator.pick(RecordTarget.data)
            body += text
            if !isGone { expect(owner, .text, text) }
        default: body += [10, 0, 0, 1]
        }
        let length = body.count - start - 2
        body[start] = UInt8(length >> 8)
        body[start + 1] = UInt8(length & 0xFF)
    }

    private mutating func expect(_ name: DomainName, _ type: RecordType, _ data: [UInt8]) {
        expected.append(DNSMessage.Answer(question: Question(name: name, type: type), data: data))
    }

    private mutating func write(_ name: DomainName, _ mutator: inout Mutator) {
        if mutator.oneIn(2), let known = places.last(where: { $0.name.labels == name.labels }),
            known.place < 0x4000
        {
            body += [0xC0 | UInt8(known.place >> 8), UInt8(known.place & 0xFF)]
            return
        }
        places.append((name, 12 + body.count))
        body += name.wire
    }
}
