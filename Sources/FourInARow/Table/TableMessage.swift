/// What programs at a table say to each other; docs/fourinarow-protocol.md has the bytes.
package enum TableMessage: Hashable, Sendable {
    /// To whoever comes in: all there is to know, and whether the seat is theirs.
    case welcome(Table, seated: Bool)
    /// From the host to everybody: the next thing has happened.
    case happened(number: UInt32, Table.Happening)
    /// From the guest to the host: it wants to do that.
    case request(Request)
    /// From the guest to the host: what was told cannot be so.
    case protest(Breach)

    /// What a guest wants to do.
    package struct Request: Hashable, Sendable {
        /// How many things had happened when it wanted that.
        var after: UInt32
        /// In which game.
        var game: UInt32
        var action: Action
        /// What the guest says comes of its move; `goesOn` for everything else.
        var claim: Claim
    }

    /// The version of the protocol that this program speaks.
    static let version: UInt8 = 1

    private enum Kind {
        static let welcome: UInt8 = 1
        static let happened: UInt8 = 2
        static let request: UInt8 = 16
        static let protest: UInt8 = 17
    }

    private enum Deed {
        static let moved: UInt8 = 1
        static let resigned: UInt8 = 2
        static let rematch: UInt8 = 3
        static let said: UInt8 = 4
        static let sat: UInt8 = 5
        static let left: UInt8 = 6
        static let brokenOff: UInt8 = 7
        static let watched: UInt8 = 8
    }

    private enum EndingCode {
        /// As the moves have it: it goes on, or has ended by a line or a full board.
        static let byMoves: UInt8 = 0
        static let resigned: UInt8 = 1
        static let left: UInt8 = 2
        static let brokenOff: UInt8 = 3
    }

    // MARK: Writing

    /// As it travels.
    package var bytes: [UInt8] {
        var writer = ByteWriter()
        writer.byte(Self.version)
        switch self {
        case .welcome(let table, let seated):
            writer.byte(Kind.welcome)
            writer.number(table.happeningCount)
            writer.byte(seated ? 1 : 0)
            writer.short(UInt16(clamping: table.watcherCount))
            writer.words(table.guest)
            Self.write(table.game, to: &writer)
        case .happened(let number, let happening):
            writer.byte(Kind.happened)
            writer.number(number)
            Self.write(happening, to: &writer)
        case .request(let request):
            writer.byte(Kind.request)
            writer.number(request.after)
            writer.number(request.game)
            // What a guest does looks as what has happened does, without the colour.
            switch request.action {
            case .move(let column):
                writer.byte(Deed.moved)
                writer.byte(UInt8(column.index))
                writer.byte(request.claim.rawValue)
            case .resign: writer.byte(Deed.resigned)
            case .rematch: writer.byte(Deed.rematch)
            case .say(let words):
                writer.byte(Deed.said)
                writer.words(words)
            }
        case .protest(let breach):
            writer.byte(Kind.protest)
            writer.byte(breach.rawValue)
        }
        return writer.bytes
    }

    private static func write(_ game: Game?, to writer: inout ByteWriter) {
        guard let game else { return writer.byte(0) }
        writer.byte(1)
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

    private static func write(_ happening: Table.Happening, to writer: inout ByteWriter) {
        switch happening {
        case .moved(let disc, let column, let claim):
            writer.byte(Deed.moved)
            writer.byte(disc.rawValue)
            writer.byte(UInt8(column.index))
            writer.byte(claim.rawValue)
        case .resigned(let disc):
            writer.byte(Deed.resigned)
            writer.byte(disc.rawValue)
        case .rematch(let disc):
            writer.byte(Deed.rematch)
            writer.byte(disc.rawValue)
        case .said(let disc, let words):
            writer.byte(Deed.said)
            writer.byte(disc.rawValue)
            writer.words(words)
        case .sat(let name):
            writer.byte(Deed.sat)
            writer.words(name)
        case .left: writer.byte(Deed.left)
        case .brokenOff(let disc, let breach):
            writer.byte(Deed.brokenOff)
            writer.byte(disc.rawValue)
            writer.byte(breach.rawValue)
        case .watched(let count):
            writer.byte(Deed.watched)
            writer.short(count)
        }
    }

    // MARK: Reading

    /// What `bytes` say. Throws `garbage` for anything that is not exactly a message, and for a board that no game comes to.
    package init(_ bytes: [UInt8]) throws(Breach) {
        var reader = ByteReader(bytes)
        guard try reader.byte() == Self.version else { throw .garbage }
        switch try reader.byte() {
        case Kind.welcome: self = try Self.welcome(from: &reader)
        case Kind.happened:
            self = .happened(number: try reader.number(), try Self.happening(from: &reader))
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

    private static func welcome(from reader: inout ByteReader) throws(Breach) -> TableMessage {
        var table = Table()
        table.happeningCount = try reader.number()
        let seated = try reader.flag()
        table.watcherCount = Int(try reader.short())
        table.guest = try reader.optionalWords()
        guard try reader.flag() else {
            guard table.guest == nil, !seated else { throw .garbage }
            return .welcome(table, seated: false)
        }
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
        table.game = game
        guard table.guest != nil || (game.ending != nil && !seated) else { throw .garbage }
        return .welcome(table, seated: seated)
    }

    private static func happening(from reader: inout ByteReader) throws(Breach) -> Table.Happening {
        switch try reader.byte() {
        case Deed.moved: .moved(try reader.disc(), try reader.column(), try reader.claim())
        case Deed.resigned: .resigned(try reader.disc())
        case Deed.rematch: .rematch(try reader.disc())
        case Deed.said: .said(try reader.disc(), try reader.words())
        case Deed.sat: .sat(try reader.words())
        case Deed.left: .left
        case Deed.brokenOff: .brokenOff(try reader.disc(), try reader.breach())
        case Deed.watched: .watched(by: try reader.short())
        default: throw .garbage
        }
    }

    private static func action(from reader: inout ByteReader, claim: inout Claim) throws(Breach) -> Action {
        switch try reader.byte() {
        case Deed.moved:
            let column = try reader.column()
            claim = try reader.claim()
            return .move(column)
        case Deed.resigned: return .resign
        case Deed.rematch: return .rematch
        case Deed.said: return .say(try reader.words())
        default: throw .garbage
        }
    }
}

extension ByteReader {
    fileprivate mutating func disc() throws(Breach) -> Disc { try value(Disc.init(rawValue:)) }

    fileprivate mutating func breach() throws(Breach) -> Breach { try value(Breach.init(rawValue:)) }

    fileprivate mutating func claim() throws(Breach) -> Claim { try value(Claim.init(rawValue:)) }

    fileprivate mutating func column() throws(Breach) -> Column { try value { Column(Int($0)) } }

    private mutating func value<Value>(_ make: (UInt8) -> Value?) throws(Breach) -> Value {
        guard let value = make(try byte()) else { throw .garbage }
        return value
    }
}
