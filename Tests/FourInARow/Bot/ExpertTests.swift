import NighCore
import Testing

@testable import FourInARow
@testable import fourinarow_solver

@Suite struct ExpertTests {
    @Test func `The book begins in the middle, and answers a mirror image with the mirror image`() throws {
        #expect(OpeningBook.standard.count > 1_000)
        func answer(_ letters: String) throws -> String? {
            let (board, disc) = try position(letters)
            return OpeningBook.standard.column(for: Position(board, toMove: disc))?.description
        }
        #expect(try answer("") == "d")
        let letters = "abcdefg"
        let mirror = Dictionary(
            uniqueKeysWithValues: zip(letters.map(String.init), letters.reversed().map(String.init)))
        var lopsided = 0
        for beginning in ["", "d"] {
            for letter in "abc" {
                let left = try #require(try answer(beginning + String(letter)))
                let right = try answer(beginning + (mirror[String(letter)] ?? ""))
                #expect(right == mirror[left])
                if left != "d" { lopsided += 1 }
            }
        }
        #expect(lopsided > 0)
        // When a line can be completed, there is nothing to look up.
        #expect(try answer("dadada") == nil)
    }

    @Test func `A text with too few digits, too many, or invalid moves is not a book`() {
        let digits = OpeningMoves.digits
        #expect(OpeningBook(digits: digits) != nil)
        #expect(OpeningBook(digits: digits + "3") == nil)
        #expect(OpeningBook(digits: String(digits.dropLast())) == nil)
        #expect(OpeningBook(digits: "7" + digits.dropFirst()) == nil)
        #expect(OpeningBook(digits: "") == nil)
    }

    @Test(arguments: 0..<4) func `Whoever moves first, the highest level wins every won game and loses none`(
        seed: UInt64
    ) {
        var solver = Solver()
        // The opponent is level 1, which soon leaves the book and soon loses.
        let game = PerfectGame(seed: seed, solver: &solver)
        #expect(game.faults.isEmpty)
        #expect(game.winner != game.bot.other)
    }

    @Test func `Without its book it keeps the outcome, also where a short search would not`() {
        var random = SeededGenerator(seed: 3)
        var solver = Solver()
        var expert = Expert(book: .empty)
        var table = HorizonTable(entryBits: 17)
        for _ in 0..<150 {
            let drawn = RandomPosition(discs: 18, random: &random)
            let position = Position(drawn.board, toMove: drawn.toMove)
            let column = expert.choose(position, &table)
            var after = drawn.board
            #expect(after.drop(drawn.toMove, in: column) != nil)
            guard after.winner == nil else { continue }
            let before = solver.outcome(of: drawn.board, toMove: drawn.toMove)
            #expect(solver.outcome(of: after, toMove: drawn.toMove.other)?.forOpponent == before)
        }
    }

    @Test func `On a board that its own play never reaches, it still answers in bounded time`() throws {
        let (board, disc) = try position("aagg")
        var expert = Expert(book: .empty)
        var table = HorizonTable(entryBits: 17)
        let column = expert.choose(Position(board, toMove: disc), &table, budget: 2_000)
        #expect(board.hasRoom(in: column))
    }
}
