import Glibc
import FourInARow
import NighCore

func seconds() -> Double {
    var t = timespec()
    clock_gettime(CLOCK_MONOTONIC, &t)
    return Double(t.tv_sec) + Double(t.tv_nsec) / 1e9
}

func say(_ text: String) { _ = text.withCString { write(2, $0, strlen($0)) } }

/// The `fourinarow-solver` command: holds the board and the bot of the game to what is known otherwise.
enum SolverProgram {
    static func main(_ arguments: [String]) {
        if arguments.first == "match" {
            let m = Match(Int(arguments[1])!, against: Int(arguments[2])!, games: Int(arguments[3])!)
            print(arguments[1], arguments[2], m.won, m.drawn, m.lost, m.slowest)
            return
        }
        if arguments.first == "book" {
            let start = seconds()
            var last = start
            var lastDiscs = -1
            let digits = OpeningBook.make(bucketBits: Int(arguments[1])!) { discs, waiting in
                if seconds() > last + 5 || discs != lastDiscs {
                    last = seconds()
                    lastDiscs = discs
                    say("\(discs) discs, \(waiting) waiting, \(Int(last - start)) s\n")
                }
            }
            print(digits)
            say("\(digits.utf8.count) digits, \(Int(seconds() - start)) s\n")
            return
        }
        for discs in arguments.dropFirst().map({ Int($0)! }) {
            var random = SeededGenerator(seed: UInt64(discs))
            var times: [Double] = []
            var total: UInt64 = 0
            var counts: [Outcome: Int] = [:]
            for _ in 0..<Int(arguments[0])! {
                var board = Board()
                var disc = Disc.red
                while true {
                    board = Board()
                    disc = .red
                    while board.count < discs, board.winner == nil {
                        if board.drop(disc, in: Column.allCases[Int(random.next() % 7)]) != nil {
                            disc = disc.other
                        }
                    }
                    if board.winner == nil { break }
                }
                var solver = Solver()
                let start = seconds()
                counts[solver.outcome(of: board, toMove: disc)!, default: 0] += 1
                times.append(seconds() - start)
                total += solver.positions
            }
            times.sort()
            let sum = times.reduce(0, +)
            print(
                discs, "median", times[times.count / 2], "max", times.last!, "positions", total, "per s",
                Double(total) / sum, counts.map { "\($0.key) \($0.value)" }.sorted())
        }
    }
}
