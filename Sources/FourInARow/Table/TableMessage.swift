import NighCore

/// The messages between the programs at a table. docs/reference/fourinarow-protocol.md describes their bytes.
public enum TableMessage: Hashable, Sendable {
    /// From the host to a visitor that arrives: the whole table, and whether the visitor has the seat.
    case welcome(Table, seated: Bool)
    /// From the host to everybody: the next event.
    case happened(number: UInt32, Table.Event)
    /// From the guest to the host: an action that the guest wants to perform.
    case request(Request)
    /// From the guest to the host: the host's report cannot be true.
    case protest(Breach)
    /// From a host that took over the table, to a visitor that can stay at a table without its host: the whole table.
    case continued(Table, seated: Bool)
    /// From the host to the visitors that can stay at the table without it: the list of them.
    case people(TablePeople)
    /// From the host to a watcher: news about the seat of a player that left.
    case seat(SeatNote)
    /// From a watcher to the host: whether it takes the seat that it was offered.
    case answer(takesSeat: Bool)

    /// A host's news about a free seat, for a watcher.
    public enum SeatNote: UInt8, Hashable, Sendable {
        /// The watcher may have the seat. Others may be offered it as well.
        case offered = 1
        /// The watcher has the seat from the next `resumed` on.
        case given = 2
    }

    /// A guest's request for an action.
    public struct Request: Hashable, Sendable {
        /// The number of events that the guest knew of when it sent the request.
        var after: UInt32
        /// The number of the game that the request is meant for.
        var game: UInt32
        var action: Action
        /// The result of the move, as the guest claims it; `goesOn` for all other actions.
        var claim: Claim
    }

    /// The version of the protocol that this program uses.
    static let version: UInt8 = 1

    private enum Kind {
        static let welcome: UInt8 = 1
        static let happened: UInt8 = 2
        static let continued: UInt8 = 3
        static let people: UInt8 = 4
        static let seat: UInt8 = 5
        static let request: UInt8 = 16
        static let protest: UInt8 = 17
        static let answer: UInt8 = 18
    }

    private enum EventCode {
        static let moved: UInt8 = 1
        static let resigned: UInt8 = 2
        static let rematch: UInt8 = 3
        static let said: UInt8 = 4
        static let sat: UInt8 = 5
        static let left: UInt8 = 6
        static let brokenOff: UInt8 = 7
        static let watched: UInt8 = 8
        static let resumed: UInt8 = 9
    }

    private enum EndingCode {
        /// As the moves have it: the game goes on, or has ended by a line or a full board.
        static let byMoves: UInt8 = 0
        static let resigned: UInt8 = 1
        static let left: UInt8 = 2
        static let brokenOff: UInt8 = 3
    }

    // MARK: Writing

    /// The encoded message.
    public var bytes: [UInt8] {
        var writer = ByteWriter()
        writer.byte(Self.version)
        switch self {
        case .welcome(let table, let seated):
            writer.byte(Kind.welcome)
            Self.write(table, seated: seated, to: &writer)
        case .happened(let number, let event):
            writer.byte(Kind.happened)
            writer.number(number)
            Self.write(event, to: &writer)
        case .request(let request):
            writer.byte(Kind.request)
            writer.number(request.after)
            writer.number(request.game)
            // A request is encoded like the event that it asks for, without the colour.
            switch request.action {
            case .move(let column):
                writer.byte(EventCode.moved)
                writer.byte(UInt8(column.index))
                writer.byte(request.claim.rawValue)
            case .resign: writer.byte(EventCode.resigned)
            case .rematch: writer.byte(EventCode.rematch)
            case .say(let text):
                writer.byte(EventCode.said)
                writer.text(text)
            }
        case .protest(let breach):
            writer.byte(Kind.protest)
            writer.byte(breach.rawValue)
        case .continued(let table, let seated):
            writer.byte(Kind.continued)
            writer.byte(table.hostDisc.rawValue)
            Self.write(table, seated: seated, to: &writer)
        case .people(let people):
            writer.byte(Kind.people)
            writer.byte(people.guest == nil ? 0 : 1)
            if let guest = people.guest { writer.peer(guest) }
            writer.byte(UInt8(people.watchers.count))
            for watcher in people.watchers { writer.peer(watcher) }
        case .seat(let note):
            writer.byte(Kind.seat)
            writer.byte(note.rawValue)
        case .answer(let takesSeat):
            writer.byte(Kind.answer)
            writer.byte(takesSeat ? 1 : 0)
        }
        return writer.bytes
    }

    private static func write(_ table: Table, seated: Bool, to writer: inout ByteWriter) {
        writer.number(table.eventCount)
        writer.byte(seated ? 1 : 0)
        writer.short(UInt16(clamping: table.watcherCount))
        writer.text(table.guest)
        write(table.game, to: &writer)
    }

    private static func write(_ game: Game?, to writer: inout ByteWriter) {
        guard let game else { return writer.byte(0) }
        writer.byte(1)
        write(game, to: &writer)
    }

    static func write(_ game: Game, to writer: inout ByteWriter) {
        writer.number(game.number)
        writer.byte(game.starter.rawValue)
        switch game.ending {
        case nil, .line, .draw: writer.byte(EndingCode.byMoves)
        case .resigned(let disc):
            writer.byte(EndingCode.resigned)
            writer.byte(disc.rawValue)
        case .left(let disc):
            writer.byte(EndingCode.left)
            writer.byte(disc.rawValue)
        case .brokenOff(let disc, let breach):
            writer.byte(EndingCode.brokenOff)
            writer.byte(disc.rawValue)
            writer.byte(breach.rawValue)
        }
        writer.byte(UInt8(game.moves.count))
        for column in game.moves { writer.byte(UInt8(column.index)) }
    }

    private static func write(_ event: Table.Event, to writer: inout ByteWriter) {
        switch event {
        case .moved(let disc, let column, let claim):
            writer.byte(EventCode.moved)
            writer.byte(disc.rawValue)
            writer.byte(UInt8(column.index))
            writer.byte(claim.rawValue)
        case .resigned(let disc):
            writer.byte(EventCode.resigned)
            writer.byte(disc.rawValue)
        case .rematch(let disc):
            writer.byte(EventCode.rematch)
            writer.byte(disc.rawValue)
        case .said(let disc, let text):
            writer.byte(EventCode.said)
            writer.byte(disc.rawValue)
            writer.text(text)
        case .sat(let name):
            writer.byte(EventCode.sat)
            writer.text(name)
        case .left: writer.byte(EventCode.left)
        case .brokenOff(let disc, let breach):
            writer.byte(EventCode.brokenOff)
            writer.byte(disc.rawValue)
            writer.byte(breach.rawValue)
        case .watched(let count):
            writer.byte(EventCode.watched)
            writer.short(count)
        case .resumed(let name):
            writer.byte(EventCode.resumed)
            writer.text(name)
        }
    }

    // MARK: Reading

    /// Decodes a message. Throws `garbage` for bytes that are not exactly one message, and for a board that no game can
    /// reach.
    public init(_ bytes: [UInt8]) throws(Breach) {
        var reader = ByteReader(bytes)
        guard try reader.byte() == Self.version else { throw .garbage }
        switch try reader.byte() {
        case Kind.welcome:
            let (table, seated) = try Self.table(from: &reader)
            guard !table.isWaiting else { throw .garbage }
            self = .welcome(table, seated: seated)
        case Kind.continued:
            let hostDisc = try reader.disc()
            var (table, seated) = try Self.table(from: &reader)
            table.hostDisc = hostDisc
            self = .continued(table, seated: seated)
        case Kind.people:
            let guest = try reader.flag() ? try reader.peer() : nil
            let count = Int(try reader.byte())
            guard count <= HostTable.watcherLimit else { throw .garbage }
            var watchers: [PeerID] = []
            for _ in 0..<count { watchers.append(try reader.peer()) }
            self = .people(TablePeople(guest: guest, watchers: watchers))
        case Kind.seat: self = .seat(try reader.seatNote())
        case Kind.answer: self = .answer(takesSeat: try reader.flag())
        case Kind.happened:
            self = .happened(number: try reader.number(), try Self.event(from: &reader))
        case Kind.request:
            let (after, game) = (try reader.number(), try reader.number())
            var claim = Claim.goesOn
            let action = try Self.action(from: &reader, claim: &claim)
            self = .request(Request(after: after, game: game, action: action, claim: claim))
        case Kind.protest: self = .protest(try reader.breach())
        default: throw .garbage
        }
        try reader.end()
    }

    private static func table(from reader: inout ByteReader) throws(Breach) -> (Table, seated: Bool) {
        var table = Table()
        table.eventCount = try reader.number()
        let seated = try reader.flag()
        table.watcherCount = Int(try reader.short())
        table.guest = try reader.optionalText()
        guard try reader.flag() else {
            guard table.guest == nil, !seated else { throw .garbage }
            return (table, seated: false)
        }
        table.game = try game(from: &reader)
        guard table.guest != nil || !seated else { throw .garbage }
        return (table, seated: seated)
    }

    static func game(from reader: inout ByteReader) throws(Breach) -> Game {
        var game = Game(number: try reader.number(), starter: try reader.disc())
        let ending: Game.Ending? =
            switch try reader.byte() {
            case EndingCode.byMoves: nil
            case EndingCode.resigned: .resigned(try reader.disc())
            case EndingCode.left: .left(try reader.disc())
            case EndingCode.brokenOff: .brokenOff(try reader.disc(), try reader.breach())
            default: throw .garbage
            }
        for _ in 0..<(try reader.byte()) {
            let column = try reader.column()
            guard let turn = game.turn, (try? game.play(column, by: turn)) != nil else { throw .garbage }
        }
        if let ending {
            guard game.ending == nil else { throw .garbage }
            game.end(ending)
        }
        return game
    }

    private static func event(from reader: inout ByteReader) throws(Breach) -> Table.Event {
        switch try reader.byte() {
        case EventCode.moved: .moved(try reader.disc(), try reader.column(), try reader.claim())
        case EventCode.resigned: .resigned(try reader.disc())
        case EventCode.rematch: .rematch(try reader.disc())
        case EventCode.said: .said(try reader.disc(), try reader.text())
        case EventCode.sat: .sat(try reader.text())
        case EventCode.left: .left
        case EventCode.brokenOff: .brokenOff(try reader.disc(), try reader.breach())
        case EventCode.watched: .watched(by: try reader.short())
        case EventCode.resumed: .resumed(try reader.text())
        default: throw .garbage
        }
    }

    private static func action(from reader: inout ByteReader, claim: inout Claim) throws(Breach) -> Action {
        switch try reader.byte() {
        case EventCode.moved:
            let column = try reader.column()
            claim = try reader.claim()
            return .move(column)
        case EventCode.resigned: return .resign
        case EventCode.rematch: return .rematch
        case EventCode.said: return .say(try reader.text())
        default: throw .garbage
        }
    }
}

extension ByteReader {
    fileprivate mutating func disc() throws(Breach) -> Disc { try value(Disc.init(rawValue:)) }

    fileprivate mutating func breach() throws(Breach) -> Breach { try value(Breach.init(rawValue:)) }

    fileprivate mutating func seatNote() throws(Breach) -> TableMessage.SeatNote {
        try value(TableMessage.SeatNote.init(rawValue:))
    }

    fileprivate mutating func claim() throws(Breach) -> Claim { try value(Claim.init(rawValue:)) }

    fileprivate mutating func column() throws(Breach) -> Column { try value { Column(Int($0)) } }

    private mutating func value<Value>(_ make: (UInt8) -> Value?) throws(Breach) -> Value {
        guard let value = make(try byte()) else { throw .garbage }
        return value
    }
}
