import NighCore
import NighTestKit
import Testing

@testable import NighGroups

/// Tables of several sessions. What one tells another waits, in order, until a test lets it arrive.
private final class Tables {
    var tables: [GroupTable]
    let ids: [PeerID]
    /// What is on its way, by sender and receiver.
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
    @Test("have as members the connected sessions that have joined them, whoever joined first")
    func members() throws {
        let place = Tables(3)
        try place.join(0, "red")
        place.connect(0, 1)
        place.connect(0, 2)
        place.connect(1, 2)
        try place.join(1, "red", context: [7])
        try place.join(2, "blue")
        try place.deliverAll()
        #expect(
            place.members(0, "red") == [1] && place.members(1, "red") == [0] && place.members(2, "blue") == []
        )
        #expect(place.events[0] == [.memberJoined(place.ids[1], GroupName("red")!, context: [7])])
        try place.leave(1, "red")
        try place.join(1, "blue")
        try place.deliverAll()
        #expect(place.members(0, "red") == [] && place.members(2, "blue") == [1])
        #expect(place.events[0].last == .memberLeft(place.ids[1], GroupName("red")!))
        place.disconnect(1, 2)
        #expect(place.members(2, "blue") == [] && place.members(1, "blue") == [])
        #expect(place.events[2].last == .memberLeft(place.ids[1], GroupName("blue")!))
    }

    @Test("keep out for both sides whom either refuses, and say why")
    func refusals() throws {
        let place = Tables(2)
        place.connect(0, 1)
        try place.join(0, "red") { _, context in context == [1, 2] ? nil : "say the word" }
        try place.join(1, "red", context: [3])
        try place.deliverAll()
        #expect(place.members(0, "red") == [] && place.members(1, "red") == [])
        #expect(place.events[0] == [])
        #expect(place.events[1].last == .refused(by: place.ids[0], GroupName("red")!, reason: "say the word"))
        // It joins anew, with the word.
        try place.leave(1, "red")
        try place.join(1, "red", context: [1, 2])
        try place.deliverAll()
        #expect(place.members(0, "red") == [1] && place.members(1, "red") == [0])
        // The other one joins anew, and decides anew.
        try place.leave(0, "red")
        try place.join(0, "red") { _, _ in "no" }
        try place.deliverAll()
        #expect(place.members(0, "red") == [] && place.members(1, "red") == [])
        try place.leave(0, "red")
        try place.join(0, "red")
        try place.deliverAll()
        #expect(place.members(0, "red") == [1] && place.members(1, "red") == [0])
    }

    @Test("deliver messages of members only")
    func messages() throws {
        let place = Tables(2)
        place.connect(0, 1)
        try place.join(0, "red")
        try place.join(1, "red")
        try place.deliverAll()
        let number = try #require(place.tables[0].number(of: GroupName("red")!))
        let receive = { try place.tables[1].receive(.message(number: number), from: place.ids[0]) }
        #expect(try receive() == GroupName("red"))
        // What is late is dropped: the receiver has left.
        try place.leave(1, "red")
        #expect(try receive() == nil)
        #expect(throws: WireError.self) {
            try place.tables[1].receive(.message(number: number + 1), from: place.ids[0])
        }
    }

    @Test("end with an error at what no sound peer says")
    func violations() throws {
        let place = Tables(2)
        place.connect(0, 1)
        let red = GroupName("red")!
        _ = try place.tables[1].receive(.join(number: 4, name: red, context: []), from: place.ids[0])
        let wrong: [GroupRecord] = [
            .join(number: 5, name: red, context: []), .join(number: 4, name: GroupName("blue")!, context: []),
            .leave(number: 3), .refuse(number: 1, reason: ""), .message(number: 5),
        ]
        for record in wrong {
            #expect(throws: WireError.self, "\(record)") {
                try place.tables[1].receive(record, from: place.ids[0])
            }
        }
        for number in 5..<UInt32(4 + GroupTable.mostGroups) {
            let record = GroupRecord.join(number: number, name: GroupName("\(number)")!, context: [])
            _ = try place.tables[1].receive(record, from: place.ids[0])
        }
        #expect(throws: WireError.self) {
            try place.tables[1].receive(
                .join(number: 99, name: GroupName("more")!, context: []), from: place.ids[0])
        }
    }

    @Test("are bounded in number, and each is joined once")
    func limits() throws {
        let place = Tables(1)
        for number in 0..<GroupTable.mostGroups { try place.join(0, "\(number)") }
        #expect(throws: NighError.self) { try place.join(0, "more") }
        try place.leave(0, "3")
        #expect(throws: NighError.self) { try place.join(0, "4") }
        try place.join(0, "more")
        #expect(GroupName("") == nil && GroupName("a\u{7}") == nil)
        #expect(
            GroupName(String(repeating: "x", count: 63)) != nil
                && GroupName(String(repeating: "x", count: 64)) == nil)
    }

    /// Whatever is joined, left, refused, cut and delayed, and in whatever order: once everything has arrived, two
    /// connected sessions agree on whether they are members of the same group.
    @Test("agree in the end", arguments: 0..<300 as Range<UInt64>)
    func agreement(_ seed: UInt64) throws {
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
                var told: Set<Int> = []
                for event in place.events[own] {
                    switch event {
                    case .memberJoined(let id, let group, _) where group.description == name:
                        #expect(told.insert(place.index(of: id)).inserted)
                    case .memberLeft(let id, let group) where group.description == name:
                        #expect(told.remove(place.index(of: id)) != nil)
                    default: break
                    }
                }
                #expect(told.sorted() == place.members(own, name))
            }
        }
    }
}
