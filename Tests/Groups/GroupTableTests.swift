import NighCore
import NighTestKit
import Testing

@testable import NighGroups

/// Tables of several sessions. What one tells another waits, in order, until a test lets it arrive.
private final class Tables {
    var tables: [GroupTable]
    let ids: [PeerID]
    /// The records that are on their way, by sender and receiver.
    private var underWay: [[[GroupRecord]]]
    var events: [[GroupTable.Event]]
    /// Whether there is room for what one tells another.
    var hasRoom: (Int, Int) -> Bool = { _, _ in true }

    init(_ count: Int) {
        tables = Array(repeating: GroupTable(), count: count)
        ids = (0..<count).map { Identity.ephemeral(seed: UInt64($0 + 1)).peerID }
        underWay = Array(repeating: Array(repeating: [], count: count), count: count)
        events = Array(repeating: [], count: count)
    }

    func index(of id: PeerID) -> Int { ids.firstIndex(of: id)! }

    func connect(_ first: Int, _ second: Int) {
        for (own, other) in [(first, second), (second, first)] {
            underWay[own][other] = []
            tables[own].connected(ids[other])
        }
        flush()
    }

    func disconnect(_ first: Int, _ second: Int) {
        for (own, other) in [(first, second), (second, first)] {
            underWay[own][other] = []
            tables[own].disconnected(ids[other])
        }
        flush()
    }

    func join(
        _ index: Int, _ name: String, context: [UInt8] = [],
        deciding: @escaping GroupTable.Decision = { _, _ in nil }
    ) throws {
        try tables[index].join(#require(GroupName(name)), context: context, deciding: deciding)
        flush()
    }

    func leave(_ index: Int, _ name: String) throws {
        let name = try #require(GroupName(name))
        // The table reports no event for each member when its own session leaves.
        for member in tables[index].members(of: name) { events[index].append(.memberLeft(member, name)) }
        tables[index].leave(name)
        flush()
    }

    func members(_ index: Int, _ name: String) -> [Int] {
        tables[index].members(of: GroupName(name)!).map(self.index(of:)).sorted()
    }

    /// Lets everything arrive, and expects these members of a group, by session.
    func expect(_ name: String, _ members: [[Int]], _ location: SourceLocation = #_sourceLocation) throws {
        try deliverAll()
        #expect(tables.indices.map { self.members($0, name) } == members, sourceLocation: location)
    }

    /// Has each tell the others what it can.
    func flush() {
        for own in tables.indices {
            for id in tables[own].connectedPeers {
                let other = index(of: id)
                _ = tables[own].flush(id) { record in
                    guard hasRoom(own, other) else { return .full }
                    underWay[own][other].append(record)
                    return .sent
                }
            }
            events[own] += tables[own].takeEvents()
        }
    }

    /// Lets the oldest record from one to another arrive. Returns whether there was one.
    func deliver(_ own: Int, _ other: Int) throws -> Bool {
        guard !underWay[own][other].isEmpty else { return false }
        let record = underWay[own][other].removeFirst()
        let read = try record.bytes.withUnsafeBytes { bytes throws(WireError) in
            try GroupRecord(reading: bytes)
        }
        #expect(read == record)
        _ = try tables[other].receive(record, from: ids[own])
        flush()
        return true
    }

    func deliverAll() throws {
        var isMoving = true
        while isMoving {
            isMoving = false
            for own in tables.indices {
                for other in tables.indices where try deliver(own, other) { isMoving = true }
            }
        }
    }
}

@Suite("Groups") struct GroupTableTests {
    @Test func `have as members the connected sessions that have joined them, whoever joined first`() throws {
        let place = Tables(3)
        try place.join(0, "red")
        place.connect(0, 1)
        place.connect(0, 2)
        place.connect(1, 2)
        try place.join(1, "red", context: [7])
        try place.join(2, "blue")
        try place.expect("red", [[1], [0], []])
        try place.expect("blue", [[], [], []])
        #expect(place.events[0] == [.memberJoined(place.ids[1], GroupName("red")!, context: [7])])
        try place.leave(1, "red")
        try place.join(1, "blue")
        try place.expect("red", [[], [], []])
        try place.expect("blue", [[], [2], [1]])
        #expect(place.events[0].last == .memberLeft(place.ids[1], GroupName("red")!))
        place.disconnect(1, 2)
        try place.expect("blue", [[], [], []])
        #expect(place.events[2].last == .memberLeft(place.ids[1], GroupName("blue")!))
    }

    @Test func `keep out for both sides whom either refuses, and say why`() throws {
        let place = Tables(2)
        place.connect(0, 1)
        try place.join(0, "red") { _, context in context == [1, 2] ? nil : "say the word" }
        try place.join(1, "red", context: [3])
        try place.expect("red", [[], []])
        #expect(place.events[0] == [])
        #expect(place.events[1].last == .refused(by: place.ids[0], GroupName("red")!, reason: "say the word"))
        // It joins anew, with the word.
        try place.leave(1, "red")
        try place.join(1, "red", context: [1, 2])
        try place.expect("red", [[1], [0]])
        // The other one joins anew, and decides anew.
        try place.leave(0, "red")
        try place.join(0, "red") { _, _ in "no" }
        try place.expect("red", [[], []])
        try place.leave(0, "red")
        try place.join(0, "red")
        try place.expect("red", [[1], [0]])
    }

    @Test func `deliver messages of members only`() throws {
        let place = Tables(2)
        place.connect(0, 1)
        try place.join(0, "red")
        try place.join(1, "red")
        try place.deliverAll()
        let number = try #require(place.tables[0].number(of: GroupName("red")!))
        let receive = { try place.tables[1].receive(.message(number: number), from: place.ids[0]) }
        #expect(try receive() == GroupName("red"))
        // A late message is dropped: the receiver has left.
        try place.leave(1, "red")
        #expect(try receive() == nil)
        #expect(throws: WireError.self) {
            try place.tables[1].receive(.message(number: number + 1), from: place.ids[0])
        }
    }

    @Test func `end with an error at what no sound peer says`() throws {
        let place = Tables(2)
        place.connect(0, 1)
        let red = GroupName("red")!
        func receive(_ record: GroupRecord) throws {
            _ = try place.tables[1].receive(record, from: place.ids[0])
        }
        try receive(.join(number: 4, name: red, context: []))
        let wrong: [GroupRecord] = [
            .join(number: 5, name: red, context: []), .join(number: 4, name: GroupName("blue")!, context: []),
            .leave(number: 3), .refuse(number: 1, reason: ""), .message(number: 5),
        ]
        for record in wrong { #expect(throws: WireError.self, "\(record)") { try receive(record) } }
        for number in 5..<UInt32(4 + GroupTable.mostGroups) {
            try receive(.join(number: number, name: GroupName("\(number)")!, context: []))
        }
        #expect(throws: WireError.self) {
            try receive(.join(number: 99, name: GroupName("more")!, context: []))
        }
    }

    @Test func `are bounded in number, and each is joined once`() throws {
        let place = Tables(1)
        for number in 0..<GroupTable.mostGroups { try place.join(0, "\(number)") }
        #expect(throws: NighError.self) { try place.join(0, "more") }
        try place.leave(0, "3")
        #expect(throws: NighError.self) { try place.join(0, "4") }
        try place.join(0, "more")
        #expect(GroupName("") == nil && GroupName("a\u{7}") == nil)
        for count in [63, 64] {
            #expect((GroupName(String(repeating: "x", count: count)) != nil) == (count == 63))
        }
    }

    /// Whatever is joined, left, refused, cut and delayed, and in whatever order: once everything has arrived, two
    /// connected sessions agree on whether they are members of the same group.
    @Test(arguments: 0..<300 as Range<UInt64>) func `agree in the end`(_ seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let place = Tables(5)
        let names = ["red", "blue"]
        var connected: Set<[Int]> = []
        place.hasRoom = { _, _ in Int.random(in: 0..<3, using: &random) > 0 }
        for _ in 0..<400 {
            let (own, other) = (Int.random(in: 0..<5, using: &random), Int.random(in: 0..<5, using: &random))
            let name = names.randomElement(using: &random)!
            switch Int.random(in: 0..<12, using: &random) {
            case 0 where own < other:
                if connected.insert([own, other]).inserted { place.connect(own, other) }
            case 1 where own < other:
                if connected.remove([own, other]) != nil { place.disconnect(own, other) }
            case 2, 3:
                let refused = Bool.random(using: &random) ? place.ids[other] : nil
                // It may have joined already.
                try? place.join(own, name) { id, _ in id == refused ? "not you" : nil }
            case 4: try place.leave(own, name)
            case 5: place.flush()
            default: _ = try place.deliver(own, other)
            }
        }
        place.hasRoom = { _, _ in true }
        place.flush()
        try place.deliverAll()
        for name in names {
            for own in 0..<5 {
                for other in place.members(own, name) {
                    #expect(place.members(other, name).contains(own), "\(own) has \(other) in \(name)")
                }
                // The events tell the same as the table.
                var reported: Set<Int> = []
                for event in place.events[own] {
                    switch event {
                    case .memberJoined(let id, let group, _) where group.description == name:
                        #expect(reported.insert(place.index(of: id)).inserted)
                    case .memberLeft(let id, let group) where group.description == name:
                        #expect(reported.remove(place.index(of: id)) != nil)
                    default: break
                    }
                }
                #expect(reported.sorted() == place.members(own, name))
            }
        }
    }
}

@Suite("The members of a group") struct MemberListTests {
    /// Counts how often members are compared. It is an object of one test, so tests that run beside it do not count.
    private final class Steps {
        var count = 0
    }

    private struct Member: Hashable, Comparable {
        let number: Int
        let steps: Steps

        static func < (left: Member, right: Member) -> Bool {
            left.steps.count += 1
            return left.number < right.number
        }

        static func == (left: Member, right: Member) -> Bool { left.number == right.number }

        func hash(into hasher: inout Hasher) { hasher.combine(number) }
    }

    @Test func `are in order, each once`() {
        let steps = Steps()
        var list = MemberList<Member>()
        #expect(list.sorted().isEmpty)
        for number in [3, 1, 2, 1] { list.insert(Member(number: number, steps: steps)) }
        #expect(list.sorted().map(\.number) == [1, 2, 3])
        list.remove(Member(number: 2, steps: steps))
        list.remove(Member(number: 7, steps: steps))
        #expect(list.sorted().map(\.number) == [1, 3])
    }

    @Test func `are not compared when one comes or goes, and once when somebody asks for all`() {
        let steps = Steps()
        var list = MemberList<Member>()
        for number in 0..<1_000 { list.insert(Member(number: number, steps: steps)) }
        #expect(steps.count == 0)
        _ = list.sorted()
        let once = steps.count
        #expect(once > 0)
        for _ in 0..<100 { _ = list.sorted() }
        for number in 0..<500 { list.remove(Member(number: number, steps: steps)) }
        #expect(steps.count == once)
    }
}

@Suite("A record of groups") struct GroupRecordTests {
    private let samples: [(record: GroupRecord, bytes: [UInt8])] = [
        (
            .join(number: 1, name: GroupName("red")!, context: []),
            [1, 0, 0, 0, 1, 3] + Array("red".utf8) + [0, 0]
        ),
        (
            .join(number: 5, name: GroupName("red")!, context: [0xAB, 0xCD]),
            [1, 0, 0, 0, 5, 3] + Array("red".utf8) + [0, 2, 0xAB, 0xCD]
        ),
        (.refuse(number: 1, reason: "full"), [3, 0, 0, 0, 1, 4] + Array("full".utf8)),
        (.leave(number: 1), [2, 0, 0, 0, 1]),
        (.message(number: 1), [4, 0, 0, 0, 1]),
    ]

    private func read(_ bytes: [UInt8]) throws -> GroupRecord? {
        try bytes.withUnsafeBytes { bytes throws(WireError) in try GroupRecord(reading: bytes) }
    }

    @Test func `is written and read as the page of the protocol says`() throws {
        for (record, bytes) in samples {
            #expect(record.bytes == bytes)
            #expect(try read(bytes) == record)
        }
        #expect(try read([4, 0, 0, 0, 1] + Array("hi".utf8)) == .message(number: 1))
        #expect(try read([5, 1, 2, 3]) == nil)
    }

    @Test func `is refused if it is cut, too long, or names no group`() {
        for (record, bytes) in samples {
            for count in 0..<bytes.count {
                #expect(throws: WireError.self) { try read(Array(bytes.prefix(count))) }
            }
            if case .message = record { continue }
            #expect(throws: WireError.self) { try read(bytes + [0]) }
        }
        for name in [[], [7], [UInt8](repeating: 0x78, count: 64), [0xFF]] as [[UInt8]] {
            let bytes = [1, 0, 0, 0, 1, UInt8(name.count)] + name + [0, 0]
            #expect(throws: WireError.self, "\(name)") { try read(bytes) }
        }
        let long = [1, 0, 0, 0, 1, 1, 0x78, 4, 1] + [UInt8](repeating: 0, count: 1_025)
        #expect(throws: WireError.self) { try read(long) }
    }
}
