import NighCore
import Testing

@testable import NighBluetooth

/// Tests the requests that ask a device for its sessions, and how any answer is handled.
struct ServiceSearchTests {
    /// Asks a device until it has answered everything; returns the records and the number of requests.
    private func ask(_ keeper: RecordKeeper) throws -> (records: [SessionRecord], questions: Int) {
        var (keeper, search) = (keeper, ServiceSearch(for: Samples.service))
        var question = search.begin()
        while true {
            let answer = keeper.answer(question)
            switch search.received(try #require(answer)) {
            case .send(let next): question = next
            case .done(let records): return (records, keeper.questions)
            case .failed: throw KeptRecord.Unreadable(words: "the search failed")
            }
        }
    }

    private func keep(_ record: SessionRecord) throws -> KeptRecord {
        try KeptRecord(xml: record.xml, handle: record.handle)
    }

    // MARK: Whole answers

    @Test(arguments: [
        "Puma", "<name value=\"0x0100\"/>", "Jürgen & Søn's \"phone\" ]]>", "🐆", "-->", "%s\\0",
        String(repeating: "é", count: 31),
    ])
    func `A record survives writing and reading`(_ name: String) throws {
        let record = Samples.sessionRecord(name: name)
        #expect(try ask(RecordKeeper([try keep(record)])).records == [record])
    }

    @Test func `The largest advertisement fits into a record`() throws {
        let info = try DiscoveryInfo([
            "a": String(repeating: "é", count: 126), "<&\">'": String(repeating: "x", count: 138),
        ])
        #expect(info.byteCount == DiscoveryInfo.maximumByteCount)
        var advertisement = Samples.advertisement(name: String(repeating: "n", count: 63), info: info)
        advertisement.isFull = true
        let record = SessionRecord(
            advertisement, channel: 30, adapter: Samples.device, handle: .max)
        #expect(try ask(RecordKeeper([try keep(record)], share: 100)).records == [record])
    }

    @Test(arguments: [1, 2, 7, 48, 512, 60_000])
    func `An answer in parts is reassembled`(_ share: Int) throws {
        let records = (0..<3).map {
            Samples.sessionRecord($0, name: "Puma \($0)", channel: UInt8($0 + 1), handle: UInt32($0 + 1))
        }
        let answer = try ask(RecordKeeper(try records.map(keep), share: share))
        #expect(answer.records == records)
        #expect((answer.questions == 1) == (share >= 512))
    }

    @Test func `A device without sessions has no records`() throws {
        #expect(try ask(RecordKeeper([])).records.isEmpty)
    }

    @Test func `A record lists its service as its only class`() throws {
        let record = try Samples.record(name: "Puma")
        guard case .sequence(let classes) = try #require(record.value(of: 1)),
            case .uuid(let uuid) = classes[0],
            case .sequence(let groups) = try #require(record.value(of: 5)), case .uuid(let group) = groups[0]
        else {
            Issue.record("no classes")
            return
        }
        #expect(uuid == BluetoothUUID(of: Samples.service).bytes)
        #expect(classes.count == 1)
        #expect(group == [0x10, 0x02])
    }

    @Test func `A request has the form of the specification`() {
        var search = ServiceSearch(for: Samples.service)
        let pattern: [UInt8] = [0x35, 17, 0x1C] + BluetoothUUID(of: Samples.service).bytes
        let attributes: [UInt8] = [
            0x35, 15, 0x09, 0, 0, 0x09, 0, 4, 0x09, 1, 0, 0x09, 3, 0, 0x09, 3, 1,
        ]
        let content = pattern + [0xFF, 0xFF] + attributes + [0]
        #expect(search.begin() == [6, 0, 1, 0, UInt8(content.count)] + content)
    }

    // MARK: Records of other programs

    /// Each case changes one attribute of a session's record. The result is no session.
    @Test(
        arguments: [
            (0x0004, nil), (0x0004, .text([1])), (0x0004, .sequence([])),
            (0x0004, .sequence([.sequence([.uuid([0x01, 0x00])])])),
            (0x0004, .sequence([.sequence([.uuid([0x00, 0x03])])])),
            (0x0004, .sequence([.sequence([.uuid([0x00, 0x03]), .text([3])])])),
            (0x0004, .sequence([.sequence([.uuid([0x00, 0x03]), .unsigned(0, bytes: 1)])])),
            (0x0004, .sequence([.sequence([.uuid([0x00, 0x03]), .unsigned(31, bytes: 1)])])),
            (0x0004, .sequence([.sequence([.uuid([0x00, 0x03]), .unsigned(259, bytes: 2)])])),
            (0x0004, .sequence([.uuid([0x00, 0x03]), .unsigned(3, bytes: 1)])),
            (0x0300, nil), (0x0300, .unsigned(1, bytes: 1)), (0x0300, .text([])), (0x0300, .text([9, 1])),
            (0x0300, .text([UInt8](repeating: 0, count: 2_049))), (0x0300, .text([3, 0x76, 0x3D, 0x31])),
            (0x0301, nil), (0x0301, .text([])), (0x0301, .text(Array("00:AA:01".utf8))),
            (0x0301, .text([0xFF, 0xFE])), (0x0301, .unsigned(0x00AA_0100_0042, bytes: 8)),
        ] as [(UInt64, SentValue?)])
    func recordsThatDescribeNoSessionAreSkipped(_ number: UInt64, _ value: SentValue?) throws {
        let good = try Samples.record(name: "Puma")
        var attributes = good.attributes.filter { $0.number != number }
        if let value { attributes.append((number, value)) }
        let records = try ask(RecordKeeper([KeptRecord(attributes), good])).records
        #expect(records == [Samples.sessionRecord()])
    }

    @Test func `Optional attributes may be missing`() throws {
        let attributes = try Samples.record(name: "Puma").attributes.filter {
            ![0, 0x0100].contains($0.number)
        }
        let record = try #require(try ask(RecordKeeper([KeptRecord(attributes)])).records.first)
        #expect(record.handle == 0)
        #expect(record.channel == 3)
        #expect(!record.advertisement.name.description.isEmpty)
    }

    @Test func `The number of records is bounded`() throws {
        let records = (0..<80).map { Samples.sessionRecord(channel: UInt8($0 % 30 + 1), handle: UInt32($0)) }
        let found = try ask(RecordKeeper(try records.map(keep), share: 3_000)).records
        #expect(found == Array(records.prefix(ServiceSearch.recordLimit)))
    }

    // MARK: Hostile answers

    private func step(_ packet: (_ number: [UInt8]) -> [UInt8]) -> ServiceSearch.Step {
        var search = ServiceSearch(for: Samples.service)
        return search.received(packet(Array(search.begin()[1...2])))
    }

    @Test func `Truncated and overlong answers are rejected`() throws {
        let lists = SentValue.sequence([try Samples.record(name: "Puma").list(of: Set(0...0xFFFF))]).bytes
        let whole = RecordKeeper.packet(lists, [0], number: [0, 1])
        #expect(step { _ in whole } == .done([Samples.sessionRecord()]))
        for count in 0..<whole.count { #expect(step { _ in Array(whole.prefix(count)) } == .failed) }
        #expect(step { _ in whole + [0] } == .failed)
    }

    @Test func `Answers to other requests are rejected`() {
        #expect(step { RecordKeeper.packet([0x35, 0], [0], number: $0) } == .done([]))
        #expect(step { _ in RecordKeeper.packet([0x35, 0], [0], number: [0, 2]) } == .failed)
        // A refusal, and a request.
        for message in [1, 6] as [UInt8] {
            #expect(
                step { [message] + RecordKeeper.packet([0x35, 0], [0], number: $0).dropFirst() } == .failed)
        }
    }

    @Test func `Wrong lengths are detected`() {
        // The length of the packet, of the lists in it, and of the continuation.
        #expect(step { [7] + $0 + [0, 4, 0, 2, 0x35, 0, 0] } == .failed)
        #expect(step { [7] + $0 + [0, 6, 0, 2, 0x35, 0, 0] } == .failed)
        #expect(step { [7] + $0 + [0, 5, 0, 3, 0x35, 0, 0] } == .failed)
        #expect(step { [7] + $0 + [0, 5, 0xFF, 0xFF, 0x35, 0, 0] } == .failed)
        #expect(step { [7] + $0 + [0, 5, 0, 2, 0x35, 0, 1] } == .failed)
        #expect(step { RecordKeeper.packet([0x35, 0], [1, 5, 5], number: $0) } == .failed)
        #expect(
            step { RecordKeeper.packet([0x35, 0], [17] + [UInt8](repeating: 1, count: 17), number: $0) }
                == .failed)
    }

    @Test(arguments: [[], [0x35, 5], [0x08, 1], [0x35, 2, 0x08, 1], [0x00]] as [[UInt8]])
    func `Invalid lists yield no records`(_ bytes: [UInt8]) {
        #expect(step { RecordKeeper.packet(bytes, [0], number: $0) } == .done([]))
    }

    @Test func `An endless answer is abandoned`() {
        #expect(step { RecordKeeper.packet([], [1, 1], number: $0) } == .failed)
        var search = ServiceSearch(for: Samples.service)
        var question = search.begin()
        var asked = 0
        while asked <= ServiceSearch.answerLimit {
            let packet = RecordKeeper.packet(
                [UInt8](repeating: 0, count: 1_024), [1, 1], number: Array(question[1...2]))
            guard case .send(let next) = search.received(packet) else { break }
            question = next
            asked += 1
        }
        #expect(asked == ServiceSearch.answerLimit / 1_024)
    }

    @Test func `A repeated answer is rejected`() throws {
        var search = ServiceSearch(for: Samples.service)
        var keeper = RecordKeeper([try Samples.record(name: "Puma")], share: 10)
        let question = search.begin()
        let answer = keeper.answer(question)
        let first = try #require(answer)
        guard case .send = search.received(first) else {
            Issue.record("it does not go on")
            return
        }
        #expect(search.received(first) == .failed)
    }
}
