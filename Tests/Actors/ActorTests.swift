import Distributed
import Nigh
import NighActors
import NighTestKit
import Testing

@Suite("Actors") struct ActorTests {
    private let meeting = Meeting()

    @Test func `Actors are found and called by peers, which the actor sees as the caller`() throws {
        let score = try meeting.run(host: { try $0.publishTable() }) { side, _ in
            for await boards in side.actors.listing(of: $Board.self, named: "board") {
                guard let board = boards.first else { continue }
                #expect(board.version == 3 && board.name == "board" && board.peer.name == "Puma")
                try await board.actor.reset()
                #expect(try await board.actor.caller() == "Lynx")
                _ = try await board.actor.play(column: 3)
                return try await board.actor.play(column: 3)
            }
            return Score(discs: -1)
        }
        #expect(score == Score(discs: 2) && NighActors.ActorSystem.currentPeer == nil)
    }

    @Test func `Actors throw errors of the agreed types as they are, and of others only the type`() throws {
        try meeting.play { _, board in
            await #expect(throws: ColumnFull(column: 7)) { try await board.play(column: 7) }
            let error = await #expect(throws: RemoteError.self) { try await board.play(column: 8) }
            #expect(error?.type == "Broken" && error?.text == nil && error?.method == "Board.play(column:)")
            #expect("\(error!)".hasSuffix("Board.play(column:) failed there with Broken"))
        }
    }

    @Test func `Actors keep the figures of their methods at both sides`() throws {
        let figures = try meeting.play { side, board in
            for seconds in [1, 1, 1, 20] { try await board.wait(seconds) }
            _ = try? await board.play(column: 8)
            return side.actors.figures
        }
        #expect(figures.map(\.method) == ["Board.play(column:)", "Board.wait(_:)"])
        #expect(figures.map(\.calls) == [1, 4] && figures.map(\.failures) == [1, 0])
        let times = (figures[1].median, figures[1].percentile99)
        #expect(times.0 > .milliseconds(900) && times.0 < .milliseconds(1_100), "\(times)")
        #expect(times.1 > .seconds(18) && times.1 < .seconds(22), "\(times)")
    }

    // MARK: Access

    @Test func `Actors are reached by no method outside the contract, and by no made-up one`() throws {
        try meeting.run(host: { try $0.publishTable() }) { side, peer in
            // The type of the actor itself was not published.
            let table = try side.actors.actor(Table.self, named: "board", on: peer)
            for call in [{ _ = try await table.secret() }, { try await table.reset() }] {
                let error = await #expect(throws: NighError.self) { try await call() }
                guard case .unsupported = error?.cause else { return _ = Issue.record("\(error!)") }
            }
            let names = [
                "Board.secret() 6secretSSyYaKFTE", "Board.secret() 6secretSSyYaKF", "Board.reset() ",
                "Board. x", "Board.reset() 5resetyyYaKFTE 6secretSSyYaKFTE", " ", "", "x",
                ". 5resetyyYaKFTE", "Table.secret() 6secretSSyYaKFTE", "Board.x 5InnerC3fooyyYaKFTE",
                "Board.\u{1B}[2J 5resetyyYaKFTE\0", "Board.reset() " + String(repeating: "5", count: 900),
            ]
            for name in names {
                let outcome = try await side.call(name, on: "@board", of: peer)
                #expect(outcome == .refused(.noMethod), "\(name)")
            }
            #expect(
                try await side.call("Board.reset() 5resetyyYaKFTE", on: "@board", of: peer) == .answer([]))
            for actor in ["@", "#", "#0", "#zz", "#FFFFFFFFFFFFFFFFFF", "@other", "#1"] {
                let outcome = try await side.call("Board.reset() 5resetyyYaKFTE", on: actor, of: peer)
                #expect(outcome == .refused(.noActor) || outcome == .refused(.noMethod), "\(actor)")
            }
        }
    }

    @Test func `Actors are called with the types of their own methods, whatever a peer sends`() throws {
        try meeting.run(host: { try $0.publishTable() }) { side, peer in
            let name = "Board.play(column:) 4play6columnAA5ScoreVSi_tYaKFTE"
            #expect(try await side.call(name, [3], on: "@board", of: peer) != .refused(.noMethod))
            let wrong: [[UInt8]] = [
                [], [0xFF], [0x61], [0x61, 0x78], [0x9F], [0xBB, 1, 2, 3, 4, 5, 6, 7, 8], [0xF6],
            ]
            for bytes in wrong {
                let outcome = try await side.call(name, bytes, on: "@board", of: peer)
                #expect(outcome == .refused(.unreadable), "\(bytes)")
            }
            #expect(try await side.board(of: peer).played() == [3])
        }
    }

    @Test func `Actors that only some peers may call are not listed for others, and refuse them`() throws {
        try meeting.run { side in
            for (name, access) in [
                ("paired", ActorAccess.paired), ("nobody", .peers { _ in false }),
                ("lynx", .peers { $0.name == "Lynx" }),
            ] {
                try side.actors.publish(Table(side.actors), as: name, through: $Board.self, for: access)
            }
        } guest: { side, peer in
            for await boards in side.actors.listing(of: $Board.self) where !boards.isEmpty {
                #expect(boards.map(\.name) == ["lynx"])
                break
            }
            for name in ["paired", "nobody"] {
                let board = try side.actors.actor($Board.self, named: name, on: peer)
                let error = await #expect(throws: NighError.self) { try await board.reset() }
                guard case .declined = error?.cause else { return _ = Issue.record("\(error!)") }
            }
        }
    }

    @Test func `A call that finds no actor or no method says which`() throws {
        try meeting.run { side in
            try side.actors.publish(Human(side.actors, name: "Ann"), as: "ann", through: $Player.self)
        } guest: { side, peer in
            for (name, words) in [
                ("board", "does not support the actor \"board\""),
                ("ann", "does not support the method Board.reset()"),
            ] {
                let board = try side.actors.actor($Board.self, named: name, on: peer)
                let error = await #expect(throws: NighError.self) { try await board.reset() }
                #expect("\(error!)".contains(words), "\(error!)")
            }
        }
    }

    @Test func `Actors can be passed to peers and called back, as long as they live`() throws {
        try meeting.play { side, board in
            var me: Human? = Human(side.actors, name: "Bob")
            let reference = try side.actors.share(me!, through: $Player.self)
            #expect(try await board.join(reference) == "Welcome, Bob")
            // Also by this program itself, as if from outside.
            #expect(try await reference.name() == "Bob")
            me = nil
            await #expect(throws: (any Error).self) { try await board.join(reference) }
            // One that was not shared cannot be reached.
            let other = Human(side.actors, name: "Eve")
            let unshared = try $Player.resolve(id: other.id, using: side.actors)
            await #expect(throws: (any Error).self) { try await board.join(unshared) }
        }
    }

    @Test func `Actors that call each other back again and again do not wait for each other`() throws {
        let depth = try meeting.run { side in
            try side.actors.publish(Human(side.actors, name: "Ann"), as: "ann", through: $Player.self)
        } guest: { side, peer in
            let me = Human(side.actors, name: "Bob")
            let ann = try side.actors.actor($Player.self, named: "ann", on: peer)
            return try await ann.ping(200, try side.actors.share(me, through: $Player.self))
        }
        #expect(depth == 200)
    }

    @Test func `Actors are published once under a name, through a protocol of theirs`() throws {
        try meeting.run { side in
            let actors = side.actors
            try actors.publish(Table(actors), as: "board", through: $Board.self)
            #expect(throws: NighError.self) { try actors.publish(Table(actors), as: "board") }
            #expect(throws: NighError.self) { try actors.publish(Table(actors), as: "") }
            #expect(throws: NighError.self) {
                try actors.publish(Table(actors), as: "a", through: $Player.self)
            }
            #expect(throws: NighError.self) {
                try actors.publish(Table(actors), as: "a", through: Human.self)
            }
            actors.unpublish("board")
            try actors.publish(Table(actors), as: "board")
            #expect(throws: NighError.self) { try ActorSystem(side.session) }
            for number in 1..<256 { try actors.publish(Table(actors), as: "\(number)") }
            #expect(throws: NighError.self) { try actors.publish(Table(actors), as: "one more") }
        } guest: { side, peer in
            let table = try side.actors.actor(Table.self, named: "board", on: peer)
            #expect(try await table.secret() == "secret")
        }
    }

    @Test func `Actors are listed as they come and go`() throws {
        let names = try meeting.run { side in
            try side.actors.publish(Human(side.actors, name: "Ann"), as: "ann", through: $Player.self)
            for number in 1...3 {
                try await side.sleep(.seconds(10))
                try side.actors.publish(Table(side.actors), as: "\(number)", through: $Board.self)
            }
            try await side.sleep(.seconds(10))
            side.actors.unpublish("2")
        } guest: { side, peer in
            var lists: [[String]] = []
            for await boards in side.actors.listing(of: $Board.self) {
                lists.append(boards.map(\.name))
                if lists.last == ["1", "3"] { break }
            }
            return lists
        }
        #expect(names == [[], ["1"], ["1", "2"], ["1", "2", "3"], ["1", "3"]])
    }
}
