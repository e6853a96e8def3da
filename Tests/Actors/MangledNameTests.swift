import Distributed
import Nigh
import Testing

@testable import NighActors

/// A contract whose methods share words with the types around them, and with each other.
@Resolvable protocol WordBoard: DistributedActor where ActorSystem == NighActors.ActorSystem {
    distributed func board() -> Int
    distributed func wordBoard(board: Int, wordScore: Score) -> [String: [Score]]
    distributed func actorsTestsBoard(_ a: String, tests: String, _ b: String) -> String?
    distributed func snake_case_board(HTTPServer: UInt8, iOSBoard: Bool, x2Board3: Double) -> (Score?)
    distributed func board_() async throws -> [[WordBoardScore]]
    distributed func boardBoardBoard(_ wordBoardScore: WordBoardScore, scoreBoard: WordBoardScore)
    distributed func spielbrettÜberprüfen(größe: Int) -> Bool
    distributed func play(with: $WordBoard, and: NighActors.ActorSystem.ActorID, at: Set<Int>, _: [UInt8])
    distributed func introduce(_ one: $WordBoard, to other: $WordBoard, _ score: Score, _ same: Score)
        -> $WordBoard
    distributed func score(_ score: Score, _ board: $WordBoard, _ same: Score) -> [Score]
    distributed func itself() throws -> $WordBoard
}

struct WordBoardScore: Codable, Sendable { var word: Int }

distributed actor BoardOfWords: WordBoard {
    distributed func board() -> Int { 0 }
    distributed func wordBoard(board: Int, wordScore: Score) -> [String: [Score]] { [:] }
    distributed func actorsTestsBoard(_ a: String, tests: String, _ b: String) -> String? { a + tests + b }
    distributed func snake_case_board(HTTPServer: UInt8, iOSBoard: Bool, x2Board3: Double) -> (Score?) { nil }
    distributed func board_() async throws -> [[WordBoardScore]] { [] }
    distributed func boardBoardBoard(_ wordBoardScore: WordBoardScore, scoreBoard: WordBoardScore) {}
    distributed func spielbrettÜberprüfen(größe: Int) -> Bool { true }
    distributed func play(with: $WordBoard, and: NighActors.ActorSystem.ActorID, at: Set<Int>, _: [UInt8]) {}
    distributed func introduce(
        _ one: $WordBoard, to other: $WordBoard, _ score: Score, _ same: Score
    ) -> $WordBoard { one }
    distributed func score(_ score: Score, _ board: $WordBoard, _ same: Score) -> [Score] { [score, same] }
    distributed func itself() throws -> $WordBoard { try actorSystem.share(self, through: $WordBoard.self) }
}

@Resolvable protocol Doubling: DistributedActor where ActorSystem == NighActors.ActorSystem {
    distributed func double(_ number: UInt64, _ same: UInt64) -> UInt64
    distributed func itself(_ one: $Doubling, _ other: $Doubling, _ number: UInt64, _ same: UInt64) -> UInt64
}

enum Nest {
    final class Nested {
        distributed actor Doubler: Doubling {
            distributed func double(_ number: UInt64, _ same: UInt64) -> UInt64 { number * 2 }
            distributed func itself(
                _ one: $Doubling, _ other: $Doubling, _ number: UInt64, _ same: UInt64
            ) -> UInt64 { same }
        }
    }
}

/// A contract that has a word in common with the type of its method's argument.
@Resolvable protocol CardTable: DistributedActor where ActorSystem == NighActors.ActorSystem {
    distributed func welcome(_ player: $CardPlayer) async throws -> String
}

@Resolvable protocol CardPlayer: DistributedActor where ActorSystem == NighActors.ActorSystem {
    distributed func name() -> String
}

distributed actor Croupier: CardTable {
    distributed func welcome(_ player: $CardPlayer) async throws -> String { try await player.name() }
}

distributed actor Gambler: CardPlayer {
    distributed func name() -> String { "Lynx" }
}

@Suite("Names of methods") struct MangledNameTests {
    /// Calls every method.
    private static func callAll(_ board: some WordBoard, _ reference: $WordBoard) async throws {
        _ = try await board.board()
        _ = try await board.wordBoard(board: 1, wordScore: Score(discs: 1))
        #expect(try await board.actorsTestsBoard("a", tests: "b", "c") == "abc")
        _ = try await board.snake_case_board(HTTPServer: 1, iOSBoard: true, x2Board3: 2)
        _ = try await board.board_()
        try await board.boardBoardBoard(WordBoardScore(word: 1), scoreBoard: WordBoardScore(word: 2))
        #expect(try await board.spielbrettÜberprüfen(größe: 1))
        try await board.play(with: reference, and: reference.id, at: [1], [2])
        let score = Score(discs: 1)
        #expect(try await board.introduce(reference, to: reference, score, score).id == reference.id)
        #expect(try await board.score(score, reference, score).count == 2)
        _ = try await board.itself()
    }

    @Test func `Names find their methods, whatever words they share with other names`() throws {
        let figures = try Meeting().run { side in
            let board = BoardOfWords(actorSystem: side.actors)
            try side.actors.publish(board, as: "board", through: $WordBoard.self)
            try side.actors.publish(BoardOfWords(actorSystem: side.actors), as: "own")
            let doubler = Nest.Nested.Doubler(actorSystem: side.actors)
            try side.actors.publish(doubler, as: "doubler", through: $Doubling.self)
            let table = Croupier(actorSystem: side.actors)
            try side.actors.publish(table, as: "table", through: $CardTable.self)
        } guest: { side, peer in
            let board = try side.actors.actor($WordBoard.self, named: "board", on: peer)
            try await Self.callAll(board, board)
            try await Self.callAll(try side.actors.actor(BoardOfWords.self, named: "own", on: peer), board)
            let gambler = Gambler(actorSystem: side.actors)
            let table = try side.actors.actor($CardTable.self, named: "table", on: peer)
            #expect(try await table.welcome(side.actors.share(gambler, through: $CardPlayer.self)) == "Lynx")
            withExtendedLifetime(gambler) {}
            // A type that lies in others.
            let doubler = try side.actors.actor($Doubling.self, named: "doubler", on: peer)
            #expect(try await doubler.double(4, 4) == 8)
            #expect(try await doubler.itself(doubler, doubler, 4, 5) == 5)
            return side.actors.figures
        }
        #expect(figures.count == 26 && figures.allSatisfy { $0.calls == 1 && $0.failures == 0 }, "\(figures)")
    }

    @Test func `Names mean the same behind any type once they are spelled out`() throws {
        let types = ["$s11ActorsTests10$WordBoardC", "$s4Word05BoardA5OfAllC", "$s1a1bC"]
        let names = [
            "5resetyyYaKFTE", "5board04wordD0SS_SStYaKFTE", "05boardB_SaySiGtYaKF", "00abc", "1aS2SSg_A2BtF",
        ]
        for name in names {
            for type in types {
                guard let read = MangledName(name, behind: type) else { continue }
                let spelled = try #require(MangledName(read.spelledOut))
                for other in types {
                    let abbreviated = spelled.abbreviated(behind: other)
                    #expect(
                        MangledName(abbreviated, behind: other)?.spelledOut == read.spelledOut,
                        "\(name) \(other)")
                }
            }
        }
        for wrong in [
            "0", "0z", "9abc", "005", "00", "5", "a b", "é", "0A", "123456789012345678901234567890a",
        ] {
            #expect(MangledName(wrong) == nil, "\(wrong)")
        }
    }
}
